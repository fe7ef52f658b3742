//! Deleting: a tombstone, reserved names, and no dangling dependents.

use pml_tests::{Ask, Database};

#[test]
fn what_is_deleted_no_longer_resolves_but_stays_in_history() {
    let mut db = Database::new().connect();
    let fqdn = db.text("SELECT pml_register('return 1', 'a')", &[]).unwrap();
    db.batch_execute("SELECT pml_rename('a', 'b'); SELECT pml_delete('b')").unwrap();
    for spec in ["a", "b", &fqdn] {
        let error = db.refusal(&format!("SELECT pml_resolve('{spec}')"));
        assert_eq!(
            (error.code().code(), error.message()),
            ("PM001", format!("Capability not found: {spec}").as_str())
        );
    }
    assert_eq!(db.number("SELECT count(*) FROM pml_list()"), 0);
    assert_eq!(
        db.number("SELECT count(*) FROM pml.capability_versions WHERE capability_fqdn LIKE 'local.%'"),
        1
    );
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_aliases"), 0);
    assert_eq!(
        db.text("SELECT deleted_by FROM pml.capability_records WHERE deleted_at IS NOT NULL", &[]).unwrap(),
        "postgres"
    );
    assert_eq!(
        db.refusal("UPDATE pml.capability_records SET deleted_at = NULL WHERE display_name = 'b'")
            .code()
            .code(),
        "PM007"
    );
}

#[test]
fn its_names_stay_reserved_for_a_while() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register('return 1', 'a'); SELECT pml_rename('a', 'b'); SELECT pml_delete('b')",
    )
    .unwrap();
    for name in ["a", "b"] {
        let error = db.refusal(&format!("SELECT pml_register('return 2', '{name}')"));
        assert_eq!(error.code().code(), "PM003");
        assert_eq!(error.message(), format!("Capability name '{name}' is reserved in scope local.default"));
    }
    let days = db.number(
        "SELECT round(extract(epoch FROM reserved_until - now()) / 86400)::bigint FROM pml.name_claims WHERE name = 'a'",
    );
    assert_eq!(days, 30);

    db.batch_execute(
        "SET pml.name_reservation = 0; SELECT pml_register('return 2', 'c'); SELECT pml_delete('c')",
    )
    .unwrap();
    let again = db.text("SELECT pml_register('return 3', 'c')", &[]).unwrap();
    assert_eq!(db.text("SELECT pml_resolve('c')", &[]).unwrap(), again);
    // Whoever has it now can give it up for good, though the deleted one had it first.
    db.batch_execute("SELECT pml_rename('c', 'd'), pml_release_alias('c')").unwrap();
    assert_eq!(db.refusal("SELECT pml_resolve('c')").code().code(), "PM001");
    db.batch_execute("SELECT pml_register('return 4', 'c')").unwrap();
}

#[test]
fn the_code_can_be_registered_again_under_another_name() {
    let mut db = Database::new().connect();
    let first = db.text("SELECT pml_register('return 1', 'a')", &[]).unwrap();
    db.batch_execute("SELECT pml_delete('a')").unwrap();
    let second = db.text("SELECT pml_register('return 1', 'b')", &[]).unwrap();
    assert_ne!(first, second);
    let unnamed = db.text("SELECT pml_register('return 2')", &[]).unwrap();
    db.query("SELECT pml_delete($1)", &[&unnamed]).unwrap();
    let again = db.text("SELECT pml_register('return 2')", &[]).unwrap();
    assert_ne!(unnamed, again);
}

#[test]
fn what_others_depend_on_needs_force() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register('return 1', 'base'); SELECT pml_register('return 2', 'caller');
         INSERT INTO pml.capability_dependencies (from_fqdn, to_fqdn) VALUES (pml_resolve('caller'), pml_resolve('base'))",
    )
    .unwrap();
    let error = db.refusal("SELECT pml_delete('base')");
    assert_eq!(error.code().code(), "2BP01");
    assert_eq!(error.detail(), Some("It is called by: caller."));
    let error =
        db.refusal("UPDATE pml.capability_records SET deleted_at = now() WHERE display_name = 'base'");
    assert_eq!(error.code().code(), "2BP01");
    db.batch_execute("SELECT pml_delete('base', force => true)").unwrap();
    assert_eq!(db.text("SHOW pml.force_delete", &[]).unwrap(), "off");
}
