//! Physical and logical replicas resolve, and keep working after a failover.

use std::{thread, time::Duration};

use pml_tests::{Ask, Cluster};
use postgres::Client;

fn wait_until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        thread::sleep(Duration::from_millis(20));
    }
}

fn content(db: &mut Client) {
    db.batch_execute(
        "SELECT pml_register('return 1', 'a', version_tag => 'v1.0.0'); SELECT pml_update('a', 'return 2');
         SELECT pml_rename('a', 'b'); SELECT pml_register('return 3', 'gone'); SELECT pml_delete('gone');
         SELECT pml_token_add(repeat('ab', 32), 'acme', 'web', 'alice');
         SELECT pml_finish((pml_begin('{\"capability\": \"b\"}') ->> 'workflow_id')::uuid, '{\"success\": true, \"result\": 1}')",
    )
    .unwrap();
}

#[test]
fn a_streaming_standby_resolves_and_registers_after_promotion() {
    let primary = Cluster::new();
    let mut writer = primary.database_with_extension("app");
    content(&mut writer);
    let standby = primary.standby();
    let mut reader = standby.connect("app");
    reader.batch_execute("SET client_min_messages = error").unwrap();
    let fqdn = writer.text("SELECT pml_resolve('b')", &[]).unwrap();
    for spec in ["a", "b", "b@v1.0.0", "b@v1", "b@2999-01-01", &fqdn, "local.default:a@v2"] {
        assert_eq!(reader.text("SELECT pml_resolve($1)", &[&spec]).unwrap(), fqdn, "{spec}");
    }
    assert_eq!(reader.text("SELECT pml_code('b@v1.0.0')", &[]).unwrap(), "return 1");
    reader.query("SELECT * FROM pml_list(), pml_lookup('b'), pml_history('b')", &[]).unwrap();
    assert_eq!(reader.refusal("SELECT pml_resolve('bb')").hint(), Some("Did you mean \"b\"?"));
    assert_eq!(reader.refusal("SELECT pml_register('return 4')").code().code(), "25006");
    for reading in [
        "SELECT tool_name FROM pml_tools()",
        "SELECT name FROM pml_internal.pml_tool('mcp__util__b')",
        "SELECT name FROM pml_discover('b')",
        "SELECT pml_cap('cap_list', '{}')::text",
        "SELECT pml_cap('cap_whois', '{\"name\": \"b\"}')::text",
        "SELECT pml_begin('{\"intent\": \"b\"}')::text",
        "SELECT actor FROM pml_act_as('local', 'default', 'alice', 'r') AS acts, pml_token_check(repeat('ab', 32))",
        "SELECT pml_task_result(workflow_id, 'result')::text FROM pml.workflow_state",
        "SELECT pml_stats()::text",
        "SELECT pml_check_args('true', '{}')::text",
    ] {
        assert_eq!(reader.texts(reading).len(), 1, "{reading}");
    }

    // What is committed later arrives.
    writer.batch_execute("SELECT pml_register('return 5', 'late')").unwrap();
    wait_until(|| reader.query("SELECT pml_resolve('late')", &[]).is_ok());

    standby.promote();
    reader.batch_execute("SELECT pml_register('return 6', 'after'); SELECT pml_rename('b', 'c'); SELECT pml_update('c', 'return 7')").unwrap();
    assert_eq!(reader.text("SELECT pml_resolve('a')", &[]).unwrap(), fqdn);
}

#[test]
fn logical_replication_carries_all_tables() {
    let (publisher, subscriber) = (Cluster::new(), Cluster::new());
    let mut source = publisher.database_with_extension("app");
    content(&mut source);
    let mut target = subscriber.database_with_extension("app");
    source.batch_execute("CREATE PUBLICATION everything FOR ALL TABLES").unwrap();
    // The base servers are there already; the publisher's rows take their place.
    target
        .batch_execute(
            "SET session_replication_role = replica;
             DELETE FROM pml.capability_records; DELETE FROM pml.capability_versions; DELETE FROM pml.name_claims",
        )
        .unwrap();
    target
        .batch_execute(&format!(
            "CREATE SUBSCRIPTION everything CONNECTION 'host={} user=postgres dbname=app' PUBLICATION everything",
            publisher.folder().display()
        ))
        .unwrap();
    let mut reader = subscriber.connect("app");
    reader.batch_execute("SET client_min_messages = error").unwrap();
    wait_until(|| reader.query("SELECT pml_resolve('a'), pml_resolve('mcp:shell')", &[]).is_ok());
    // Changes of every kind follow.
    source
        .batch_execute("SELECT pml_update('b', 'return 9', 'v2.0.0'); SELECT pml_rename('b', 'c'); SELECT pml_release_alias('a'); SELECT pml_register_tool('fs', 'x')")
        .unwrap();
    wait_until(|| reader.query("SELECT pml_resolve('c@v2.0.0')", &[]).is_ok());
    wait_until(|| reader.query("SELECT pml_resolve('a')", &[]).is_err());
    wait_until(|| reader.number("SELECT count(*) FROM pml.tool_schema") == 1);
    let tables = source.texts(
        "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'pml'::regnamespace AND relkind = 'r'",
    );
    for table in tables {
        let all = format!("SELECT t::text FROM {table} t ORDER BY 1");
        wait_until(|| reader.texts(&all) == source.texts(&all));
    }
    target.batch_execute("DROP SUBSCRIPTION everything").unwrap();
}
