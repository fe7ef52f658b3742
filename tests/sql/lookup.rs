//! pml_lookup, pml_whois, pml_dependents.

use pml_tests::{Ask, Database};
use serde_json::{Value, json};

#[test]
fn whois_is_the_whole_record() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register('return await mcp.fs.read(args)', 'fs:a', 'reads', '{\"type\": \"object\"}', ARRAY['t'], version_tag => '1.0.0');
         SELECT pml_rename('fs:a', 'fs:b');
         UPDATE pml.capability_records SET usage_count = 4, success_count = 3, total_latency_ms = 100 WHERE display_name = 'fs:b'",
    )
    .unwrap();
    let whois: Value = db.query_one("SELECT pml_whois('fs:b')", &[]).unwrap().get(0);
    for (key, expected) in [
        ("display_name", json!("fs:b")),
        ("type", json!("capability")),
        ("aliases", json!(["fs:a"])),
        ("tools_used", json!(["fs:read"])),
        ("success_rate", json!(0.75)),
        ("avg_latency_ms", json!(25.0)),
        ("version_tag", json!("v1.0.0")),
        ("versions", json!(1)),
        ("verified", json!(false)),
        ("cache_policy", json!("none")),
        ("tags", json!(["t"])),
        ("created_by", json!("postgres")),
        ("dependencies", json!([])),
    ] {
        assert_eq!(whois[key], expected, "{key}");
    }
    assert_eq!(whois["renames"][0]["old_name"], "fs:a");
    assert_eq!(whois["code_hash"].as_str().unwrap().len(), 64);
}

#[test]
fn dependents_are_found_at_any_depth_and_in_circles() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register('return ' || i, chr(96 + i)) FROM generate_series(1, 4) AS i;
         INSERT INTO pml.capability_dependencies (from_fqdn, to_fqdn)
         SELECT pml_resolve(f), pml_resolve(t) FROM (VALUES ('b', 'a'), ('c', 'b'), ('d', 'a'), ('d', 'c'), ('b', 'd')) AS e (f, t)",
    )
    .unwrap();
    let rows = db.query("SELECT display_name, depth FROM pml_dependents('a')", &[]).unwrap();
    let found: Vec<(String, i32)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(found, [("b".into(), 1), ("d".into(), 1), ("c".into(), 2)]);
    assert_eq!(db.number("SELECT count(*) FROM pml_dependents('a') WHERE display_name = 'a'"), 0);
}
