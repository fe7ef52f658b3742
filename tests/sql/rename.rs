//! Renaming: the old names go on working.

use pml_tests::{Ask, Database};

fn database() -> postgres::Client {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'a'); SELECT pml_register('return 2', 'other')")
        .unwrap();
    db
}

#[test]
fn every_old_name_points_straight_at_the_record() {
    let mut db = database();
    let fqdn = db.text("SELECT pml_resolve('a')", &[]).unwrap();
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "d:e")] {
        assert_eq!(db.text("SELECT pml_rename($1, $2)", &[&from, &to]).unwrap(), fqdn);
    }
    for name in ["a", "b", "c", "d:e", &fqdn] {
        assert_eq!(db.text("SELECT pml_resolve($1)", &[&name]).unwrap(), fqdn, "{name}");
    }
    assert_eq!(db.texts("SELECT target_fqdn FROM pml.capability_aliases"), vec![fqdn.clone(); 3]);
    let renames =
        db.texts("SELECT old_name || '>' || new_name FROM pml.capability_rename_history ORDER BY id");
    assert_eq!(renames, ["a>b", "b>c", "c>d:e"]);
}

#[test]
fn renaming_back_drops_the_alias() {
    let mut db = database();
    db.batch_execute("SELECT pml_rename('a', 'b'); SELECT pml_rename('b', 'a')").unwrap();
    assert_eq!(db.texts("SELECT alias FROM pml.capability_aliases"), ["b"]);
    assert_eq!(db.text("SELECT via_alias FROM pml_lookup('a')", &[]), None);
}

#[test]
fn a_placeholder_can_be_taken_back_but_not_made_up() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1')").unwrap();
    let placeholder = db.text("SELECT name FROM pml_list()", &[]).unwrap();
    db.query("SELECT pml_rename($1, 'named')", &[&placeholder]).unwrap();
    db.query("SELECT pml_rename('named', $1)", &[&placeholder]).unwrap();
    assert_eq!(db.refusal("SELECT pml_rename('named', 'unnamed_00000000')").code().code(), "PM004");
}

#[test]
fn a_name_that_is_taken_stays_so() {
    let mut db = database();
    let error = db.refusal("SELECT pml_rename('a', 'other')");
    assert_eq!(error.code().code(), "PM003");
    assert_eq!(error.message(), "Capability name 'other' already exists in scope local.default");
    assert!(error.hint().unwrap().contains("\"other_2\""), "{:?}", error.hint());

    db.batch_execute("SELECT pml_rename('other', 'fresh')").unwrap();
    for statement in ["SELECT pml_rename('a', 'other')", "SELECT pml_register('return 3', 'other')"] {
        let error = db.refusal(statement);
        assert_eq!(error.code().code(), "PM003");
        assert_eq!(error.detail(), Some("It is an alias of \"fresh\"."));
        assert!(error.hint().unwrap().contains("pml_release_alias('other')"), "{:?}", error.hint());
    }
    db.batch_execute("SELECT pml_release_alias('other'); SELECT pml_rename('a', 'other')").unwrap();
    assert_eq!(db.refusal("SELECT pml_release_alias('nothing')").code().code(), "PM001");
}

#[test]
fn only_what_is_given_changes() {
    let mut db = database();
    db.batch_execute("SELECT pml_rename('a', description => 'does a', tags => ARRAY['x', 'y'])").unwrap();
    db.batch_execute("SELECT pml_rename('a', visibility => 'org')").unwrap();
    let whois: serde_json::Value = db.query_one("SELECT pml_whois('a')", &[]).unwrap().get(0);
    assert_eq!(whois["display_name"], "a");
    assert_eq!(whois["description"], "does a");
    assert_eq!(whois["tags"], serde_json::json!(["x", "y"]));
    assert_eq!(whois["visibility"], "org");
    assert_eq!(whois["aliases"], serde_json::json!([]));
    assert_eq!(db.refusal("SELECT pml_rename('a', visibility => 'secret')").code().code(), "22023");
}

#[test]
fn a_hand_written_update_does_all_of_it() {
    let mut db = database();
    let fqdn = db.text("SELECT pml_resolve('a')", &[]).unwrap();
    db.batch_execute("UPDATE pml.capability_records SET display_name = 'hand' WHERE display_name = 'a'")
        .unwrap();
    for name in ["a", "hand"] {
        assert_eq!(db.text("SELECT pml_resolve($1)", &[&name]).unwrap(), fqdn);
    }
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_rename_history"), 1);
    let error = db
        .refusal("UPDATE pml.capability_records SET display_name = 'not valid' WHERE display_name = 'hand'");
    assert_eq!(error.code().code(), "PM004");
    let error =
        db.refusal("UPDATE pml.capability_records SET display_name = 'a' WHERE display_name = 'other'");
    assert_eq!(error.code().code(), "PM003");
}

#[test]
fn aliases_written_by_hand_stay_consistent() {
    let mut db = database();
    let fqdn = db.text("SELECT pml_resolve('a')", &[]).unwrap();
    let insert = |alias: &str, target: &str, project: &str| {
        format!(
            "INSERT INTO pml.capability_aliases (alias, org, project, target_fqdn) VALUES ('{alias}', 'local', '{project}', '{target}')"
        )
    };
    db.batch_execute(&insert("nick", &fqdn, "default")).unwrap();
    assert_eq!(db.text("SELECT pml_resolve('nick')", &[]).unwrap(), fqdn);
    for (statement, code) in [
        (insert("other", &fqdn, "default"), "PM003"),
        (insert("a", &fqdn, "default"), "PM004"),
        (insert("elsewhere", &fqdn, "mobile"), "PM004"),
        (insert("nowhere", "local.default.util.no.abcd", "default"), "PM004"),
        ("UPDATE pml.capability_aliases SET alias = 'x'".to_owned(), "PM007"),
    ] {
        assert_eq!(db.refusal(&statement).code().code(), code, "{statement}");
    }
    db.batch_execute(
        "DELETE FROM pml.capability_aliases WHERE alias = 'nick'; SELECT pml_register('return 9', 'nick')",
    )
    .unwrap();
}
