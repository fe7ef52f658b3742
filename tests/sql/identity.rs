//! FQDNs, hashes, deduplication, unnamed records.

use std::collections::BTreeSet;

use pml_tests::{Ask, Database};

#[test]
fn an_fqdn_is_made_of_its_parts_and_the_hash_of_the_code() {
    let mut db = Database::new().connect();
    let hash = db.text("SELECT pml_code_hash('return 1')", &[]).unwrap();
    assert_eq!(hash.len(), 64);
    let fqdn = db.text("SELECT pml_fqdn('local', 'default', 'fs', 'read_json', 'return 1')", &[]).unwrap();
    assert_eq!(fqdn, format!("local.default.fs.read_json.{}", &hash[..4]));
    let parts = db.query_one("SELECT * FROM pml_parse_fqdn('acme.webapp.fs.read_json.a7f3')", &[]).unwrap();
    let parts: Vec<String> = (0..5).map(|column| parts.get(column)).collect();
    assert_eq!(parts, ["acme", "webapp", "fs", "read_json", "a7f3"]);
}

#[test]
fn a_name_gives_namespace_and_action() {
    let mut db = Database::new().connect();
    for (code, name, start) in [
        ("return 1", "fs:read_json", "local.default.fs.read_json."),
        ("return 2", "my-reader", "local.default.util.my-reader."),
        ("return await mcp.filesystem.read(args)", "reader", "local.default.fs.reader."),
        ("return 3", "a:b:c", "local.default.a.b_c."),
        ("return 4", "9lives:1st", "local.default._9lives._1st."),
    ] {
        let fqdn = db.text("SELECT pml_register($1, $2)", &[&code, &name]).unwrap();
        assert!(fqdn.starts_with(start), "{name}: {fqdn}");
        assert_eq!(db.text("SELECT pml_resolve($1)", &[&name]).unwrap(), fqdn);
    }
}

#[test]
fn code_without_a_name_gets_a_placeholder() {
    let mut db = Database::new().connect();
    let hash = db.text("SELECT pml_code_hash('return 1')", &[]).unwrap();
    let fqdn = db.text("SELECT pml_register('return 1')", &[]).unwrap();
    assert_eq!(fqdn, format!("local.default.util.exec_{}.{}", &hash[..8], &hash[..4]));
    let name = db.text("SELECT display_name FROM pml_lookup($1)", &[&fqdn]).unwrap();
    assert_eq!(name, format!("unnamed_{}", &hash[..8]));
    assert_eq!(db.text("SELECT pml_resolve($1)", &[&name]).unwrap(), fqdn);
}

#[test]
fn the_same_code_is_the_same_capability() {
    let mut db = Database::new().connect();
    let first = db.text("SELECT pml_register('return a + b')", &[]).unwrap();
    let again = db.text("SELECT pml_register('// sum\nreturn a+b;')", &[]).unwrap();
    assert_eq!(first, again);
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_records WHERE org = 'local'"), 1);
    assert_eq!(db.number("SELECT usage_count FROM pml.capability_records WHERE org = 'local'"), 1);

    // The unnamed record gets the name, and keeps its placeholder as an alias.
    let named = db.text("SELECT pml_register('return a + b', 'math:add')", &[]).unwrap();
    assert_eq!(first, named);
    assert_eq!(db.text("SELECT pml_resolve('math:add')", &[]).unwrap(), first);
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_aliases"), 1);

    // Named otherwise: an error that names the one there is.
    let error = db.refusal("SELECT pml_register('return a + b', 'math:plus')");
    assert_eq!(error.code().code(), "PM003");
    assert!(error.message().contains("\"math:add\""), "{}", error.message());
    assert!(error.hint().unwrap().contains("pml_fork"), "{:?}", error.hint());
}

#[test]
fn other_scopes_have_their_own_record_of_the_same_code() {
    let mut db = Database::new().connect();
    let here = db.text("SELECT pml_register('return 1', 'one')", &[]).unwrap();
    db.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'").unwrap();
    let there = db.text("SELECT pml_register('return 1', 'one')", &[]).unwrap();
    assert!(here.starts_with("local.default.") && there.starts_with("acme.webapp."), "{here} {there}");
}

/// Two codes whose hashes start with the same four digits, found by trying.
fn colliding_codes(db: &mut postgres::Client) -> (String, String, usize) {
    let row = db
        .query_one(
            "WITH tried AS (SELECT 'return ' || i AS code, pml_code_hash('return ' || i) AS hash
                            FROM generate_series(1, 3000) AS i)
             SELECT a.code, b.code, a.hash, b.hash
             FROM tried a JOIN tried b ON left(a.hash, 4) = left(b.hash, 4) AND a.code < b.code
             LIMIT 1",
            &[],
        )
        .unwrap();
    let (a, b): (String, String) = (row.get(2), row.get(3));
    let shared = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    (row.get(0), row.get(1), shared)
}

#[test]
fn a_collision_makes_the_hash_longer() {
    let mut db = Database::new().connect();
    let (one, other, shared) = colliding_codes(&mut db);
    // The same first four parts: a name that is freed and given again.
    let first = db.text("SELECT pml_register($1, 'fs:read')", &[&one]).unwrap();
    db.batch_execute("SELECT pml_rename('fs:read', 'fs:older'); SELECT pml_release_alias('fs:read')")
        .unwrap();
    let second = db.text("SELECT pml_register($1, 'fs:read')", &[&other]).unwrap();
    let length = |fqdn: &str| fqdn.rsplit('.').next().unwrap().len();
    assert_eq!((length(&first), length(&second)), (4, shared + 1), "{first} {second}");
    assert_eq!(db.text("SELECT pml_resolve('fs:older')", &[]).unwrap(), first);
    assert_eq!(db.text("SELECT pml_resolve('fs:read')", &[]).unwrap(), second);
    assert_eq!(db.text("SELECT pml_code($1)", &[&first]).unwrap(), one);
    assert_eq!(db.text("SELECT pml_code($1)", &[&second]).unwrap(), other);
}

#[test]
fn many_who_keep_the_same_code_to_themselves_each_get_a_record() {
    let database = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    let mut db = database.connect_as("proxy");
    let mut fqdns = BTreeSet::new();
    for number in 0..100 {
        db.batch_execute(&format!("SET pml.actor = 'actor_{number}'")).unwrap();
        let fqdn = db.text("SELECT pml_register('return 1')", &[]).unwrap();
        assert_eq!(db.text("SELECT pml_resolve($1)", &[&fqdn]).as_ref(), Some(&fqdn));
        fqdns.insert(fqdn);
    }
    assert_eq!(fqdns.len(), 100);
    let longest = fqdns.iter().max_by_key(|fqdn| fqdn.len()).unwrap();
    let hash = db.text("SELECT pml_code_hash('return 1')", &[]).unwrap();
    assert!(longest.rsplit('.').next().unwrap().starts_with(&hash), "{longest}");
}

#[test]
fn a_record_that_moved_on_is_never_pointed_at_its_old_code_again() {
    let mut db = Database::new().connect();
    let first = db.text("SELECT pml_register('return 1', 'fs:read')", &[]).unwrap();
    db.batch_execute("SELECT pml_update('fs:read', 'return 2')").unwrap();
    // The old code is nobody's current code now; under the same parts it needs a longer hash.
    db.batch_execute("SELECT pml_rename('fs:read', 'fs:moved'); SELECT pml_release_alias('fs:read')")
        .unwrap();
    let second = db.text("SELECT pml_register('return 1', 'fs:read')", &[]).unwrap();
    assert!(second.starts_with(&first) && second.len() == first.len() + 1, "{first} {second}");
    assert_eq!(db.text("SELECT pml_code($1)", &[&first]).unwrap(), "return 2");
}

#[test]
fn an_identity_never_changes() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'one')").unwrap();
    for column in ["id", "org", "project", "namespace", "action", "hash", "created_by"] {
        let error = db.refusal(&format!(
            "UPDATE pml.capability_records SET {column} = 'other' WHERE display_name = 'one'"
        ));
        assert_eq!(error.code().code(), "PM007", "{column}: {error}");
        assert!(error.message().contains(column), "{error}");
    }
    let error = db.refusal("DELETE FROM pml.capability_records WHERE display_name = 'one'");
    assert_eq!(error.code().code(), "PM007");
}

#[test]
fn a_hand_written_insert_gets_the_same_identity() {
    let mut db = Database::new().connect();
    let fqdn = db
        .text(
            "INSERT INTO pml.capability_records (display_name, code_snippet)
             VALUES ('fs:hand', 'return await mcp.filesystem.read(args)') RETURNING id",
            &[],
        )
        .unwrap();
    assert!(fqdn.starts_with("local.default.fs.hand."));
    let row = db.query_one("SELECT version, routing FROM pml_lookup('fs:hand')", &[]).unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, String>(1)), (1, "local".to_owned()));
}
