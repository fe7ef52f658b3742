//! Forking: a copy with its provenance.

use pml_tests::{Ask, Database};

#[test]
fn a_fork_goes_its_own_way() {
    let mut db = Database::new().connect();
    let source =
        db.text("SELECT pml_register('return 1', 'fs:read', 'reads', visibility => 'public')", &[]).unwrap();
    db.batch_execute("SELECT pml_update('fs:read', 'return 2')").unwrap();
    db.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'").unwrap();
    let fork = db.text("SELECT pml_fork('local.default:fs:read@v1', 'fs:read_custom')", &[]).unwrap();
    assert!(fork.starts_with("acme.webapp.fs.read_custom."), "{fork}");
    let whois: serde_json::Value = db.query_one("SELECT pml_whois('fs:read_custom')", &[]).unwrap().get(0);
    assert_eq!(whois["forked_from"], source);
    assert_eq!(whois["parent_id"], source);
    assert_eq!(whois["code_snippet"], "return 1");
    assert_eq!(whois["description"], "reads");
    assert_eq!(whois["visibility"], "private");
    assert_eq!(whois["version"], 1);
    assert_eq!(whois["usage_count"], 0);
    db.batch_execute("SELECT pml_update('fs:read_custom', 'return 3')").unwrap();
    assert_eq!(db.text("SELECT pml_code('local.default:fs:read')", &[]).unwrap(), "return 2");
}

#[test]
fn a_fork_in_the_same_scope_is_a_record_of_its_own() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'a'); SELECT pml_fork('a', 'b')").unwrap();
    assert_ne!(db.text("SELECT pml_resolve('a')", &[]), db.text("SELECT pml_resolve('b')", &[]));
    assert_eq!(db.refusal("SELECT pml_fork('a', 'b')").code().code(), "PM003");
    assert_eq!(db.refusal("SELECT pml_fork('nothing', 'c')").code().code(), "PM001");
}
