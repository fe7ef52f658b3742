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

#[test]
fn whatever_takes_an_alias_warns_of_it_once() {
    let (mut db, notices) = Database::new().connect_with_notices();
    db.batch_execute(
        "SELECT pml_register('return 1', 'a:new'); SELECT pml_register('return args.text', 'b:new');
         SELECT pml_rename('a:new', 'a:newer'); SELECT pml_rename('b:new', 'b:newer')",
    )
    .unwrap();
    for (statement, warnings) in [
        ("SELECT pml_resolve('a:new')", 1),
        ("SELECT * FROM pml_lookup('a:new')", 1),
        ("SELECT pml_code('a:new')", 1),
        ("SELECT pml_whois('a:new')", 1),
        ("SELECT * FROM pml_history('a:new')", 1),
        ("SELECT * FROM pml_dependents('a:new')", 1),
        ("SELECT pml_begin('{\"capability\": \"a:new\"}')", 1),
        ("SELECT pml_begin('{\"tool\": \"mcp__a__new\"}')", 1),
        ("SELECT pml_cap('cap_lookup', '{\"name\": \"a:new\"}')", 1),
        ("SELECT pml_cap('cap_whois', '{\"name\": \"a:new\"}')", 1),
        ("SELECT pml_cap('cap_history', '{\"name\": \"a:new\"}')", 1),
        ("SELECT pml_cap('cap_rename', '{\"name\": \"a:new\", \"description\": \"x\"}')", 1),
        ("SELECT pml_cap('cap_fork', '{\"source\": \"a:new\", \"name\": \"a:fork\"}')", 1),
        ("SELECT pml_cap('cap_merge', '{\"sources\": [\"a:new\", \"b:new\"], \"name\": \"a:merge\"}')", 2),
        ("SELECT pml_fork('a:new', 'a:fork2')", 1),
        ("SELECT pml_merge(ARRAY['a:new', 'b:new'], 'a:merge2', 'return cap_a_newer(args)')", 2),
        ("SELECT pml_rename('a:new', description => 'y')", 1),
        ("SELECT pml_update('a:new', 'return 2')", 1),
        ("SELECT pml_rollback('a:new@v1')", 1),
        ("SELECT pml_delete('a:new', force => true)", 1),
    ] {
        notices.take();
        db.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        let told: Vec<String> = notices.take().iter().map(|notice| notice.message().to_owned()).collect();
        assert_eq!(told.len(), warnings, "{statement}: {told:?}");
    }
}
