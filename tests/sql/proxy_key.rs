//! The key that the proxies of a database share: one for each database, readable by proxies only.

use pml_tests::{Ask, Database, failure};

#[test]
fn only_proxies_get_it_and_all_get_the_same() {
    let database = Database::new();
    database.create_role("gate", &["pml_proxy"]);
    database.create_role("stranger", &[]);
    let key = "SELECT encode(pml_proxy_key(), 'hex')";
    let (mut first, mut second) = (database.connect_as("gate"), database.connect_as("gate"));
    let shared = first.text(key, &[]).unwrap();
    assert_eq!(shared.len(), 64);
    assert_eq!(second.text(key, &[]).unwrap(), shared);
    // The databases of the tests are copies of one.
    let mut anew = Database::new().connect();
    anew.batch_execute("DROP EXTENSION pml; CREATE EXTENSION pml").unwrap();
    assert_ne!(anew.text(key, &[]).unwrap(), shared);
    for (role, query) in [
        ("stranger", key),
        ("stranger", "SELECT key::text FROM pml.proxy_key"),
        ("gate", "SELECT key::text FROM pml.proxy_key"),
    ] {
        let error = failure(database.connect_as(role).query(query, &[]));
        assert_eq!(error.code().code(), "42501", "{role}: {query}");
    }
}
