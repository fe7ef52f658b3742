//! pml_stats: counts over all scopes, for operators.

use pml_tests::{Ask, Database, Run};
use serde_json::{Value, json};

#[test]
fn everything_is_counted_and_nothing_is_named() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute(
        "SELECT pml_register('return 1', 'a'), pml_register('return 2'); SELECT pml_register('return 3', 'gone'); SELECT pml_delete('gone');
         SET pml.org = 'acme'; SELECT pml_register('return 1', 'secret');
         SELECT pml_register_tool('fs', 'read'); SELECT pml_token_add(repeat('ab', 32), 'acme', 'web', 'alice')",
    )
    .unwrap();
    db.run(&json!({"capability": "secret"}), &json!(1));
    db.begin(&json!({"capability": "secret"}));
    database.create_role("gate", &["pml_proxy"]);
    let stats: Value = database.connect_as("gate").query_one("SELECT pml_stats()", &[]).unwrap().get(0);
    for (key, count) in [
        ("capabilities", 3),
        ("namedCapabilities", 2),
        ("unnamedCapabilities", 1),
        ("servers", 3),
        ("scopes", 3),
        ("usageCount", 1),
        ("successCount", 1),
        ("tools", 1),
        ("runningWorkflows", 1),
        ("expiredRows", 0),
        ("validTokens", 1),
    ] {
        assert_eq!(stats[key], count, "{key}: {stats}");
    }
    assert_eq!(stats["version"], env!("CARGO_PKG_VERSION"));
    assert!(!stats.to_string().contains("acme") && !stats.to_string().contains("secret"));
    database.create_role("guest", &[]);
    assert_eq!(database.connect_as("guest").refusal("SELECT pml_stats()").code().code(), "42501");
}
