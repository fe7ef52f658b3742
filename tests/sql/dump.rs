//! pg_dump and pg_restore into a new cluster: row for row the same, and everything goes on working.

use pml_tests::{Ask, Cluster, Database};
use postgres::Client;

/// Something of everything, the base servers changed too.
const CONTENT: &str = "
SELECT pml_register('return ' || i, 'ns:cap_' || i, tags => ARRAY['t' || i % 3], version_tag => 'v1.0.0') FROM generate_series(1, 20) AS i;
SELECT pml_register('return ' || i) FROM generate_series(100, 105) AS i;
SELECT pml_update('ns:cap_1', 'return ' || i, 'v1.' || i - 999 || '.0') FROM generate_series(1000, 1005) AS i;
SELECT pml_rename('ns:cap_2', 'ns:renamed'); SELECT pml_rename('ns:renamed', 'ns:renamed_again');
SELECT pml_delete('ns:cap_3'); SELECT pml_rename('ns:cap_4', 'ns:x'); SELECT pml_delete('ns:x');
SELECT pml_fork('ns:cap_5', 'ns:forked');
INSERT INTO pml.capability_dependencies (from_fqdn, to_fqdn) VALUES (pml_resolve('ns:forked'), pml_resolve('ns:cap_5'));
SELECT pml_register('const a = await mcp.ns.cap_7(); const b = await mcp.fs.read(args); return mcp.json.parse({ json: b.content })', 'ns:caller');
SELECT pml_register(source => '{\"type\": \"tool\", \"toolId\": \"fs:read\"}', name => 'ns:tool');
SELECT pml_register_tool('fs', 'read', NULL, '{\"type\": \"object\"}', '{\"type\": \"object\", \"properties\": {\"json\": {}}}');
SELECT pml_register_tool('json', 'parse', NULL, '{\"type\": \"object\", \"properties\": {\"json\": {}}}');
SELECT pml_register_server('tavily', 'cloud', 'https://example.com', 'v1.0.0');
SELECT pml_register('return \"clash\"', 'ns:cap:5'); SELECT pml_register_tools('ns', '[{\"name\": \"cap_5\"}, {\"name\": \"cap_6\"}]');
SELECT pml_register_tool('tavily', 'search', 'searches', '{\"type\": \"object\"}');
SELECT pml_token_add(repeat('ab', 32), 'acme', 'webapp', 'alice', 'laptop');
SELECT pml_grant('pg_monitor', 'acme', 'webapp');
SET pml.org = 'pml'; SET pml.project = 'std';
SELECT pml_register_server('sqlite', 'cloud', version_tag => 'v2.0.0'); SELECT pml_rename('mcp:shell', 'mcp:sh');
RESET pml.org; RESET pml.project;
INSERT INTO pml.tool_usage (org, project, actor, server_id, tool_id, success, duration_ms) VALUES ('local', 'default', 'me', 's', 't', true, 5);
INSERT INTO pml.execution_trace (org, project, user_id, success, duration_ms, capability_id) SELECT 'local', 'default', 'me', true, 5, pml_resolve('ns:cap_5');
INSERT INTO pml.capability_usage (capability_fqdn, org, project, uses, successes, latency_ms) SELECT pml_resolve('ns:cap_5'), 'acme', 'webapp', 3, 2, 10;
INSERT INTO pml.workflow_state (org, project, actor) VALUES ('local', 'default', 'me');
INSERT INTO pml.task_results (workflow_id, task_id, org, project, actor, result) SELECT workflow_id, 'n1', 'local', 'default', 'me', '1' FROM pml.workflow_state;
";

/// All but the proxies' key, of which a restored database has its own, and the locks, which hold nothing.
fn rows(db: &mut Client) -> Vec<String> {
    let tables = db.texts("SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'pml'::regnamespace AND relkind = 'r' AND relname NOT IN ('proxy_key', 'scope_locks') ORDER BY 1");
    tables
        .iter()
        .flat_map(|table| db.texts(&format!("SELECT '{table} ' || t::text FROM {table} t ORDER BY 1")))
        .collect()
}

fn check_that_it_works(db: &mut Client) {
    db.batch_execute("SET client_min_messages = error").unwrap();
    for spec in [
        "ns:cap_1@v1.3",
        "ns:cap_2",
        "ns:renamed",
        "ns:renamed_again",
        "mcp:shell",
        "mcp:sqlite@v2",
        "mcp:tavily",
    ] {
        let org = if spec.starts_with("mcp:sh") { "pml.std:" } else { "" };
        db.query("SELECT pml_resolve($1)", &[&format!("{org}{spec}")])
            .unwrap_or_else(|error| panic!("{spec}: {error:?}"));
    }
    assert_eq!(db.refusal("SELECT pml_register('return 0', 'ns:cap_3')").code().code(), "PM003");
    assert_eq!(db.refusal("SELECT pml_register('return 0', 'ns:renamed')").code().code(), "PM003");
    assert_eq!(db.refusal("UPDATE pml.capability_versions SET code_snippet = ''").code().code(), "PM007");
    db.batch_execute(
        "SELECT pml_register('return \"new\"', 'ns:new'); SELECT pml_update('ns:new', 'return 0.5'); SELECT pml_rename('ns:new', 'ns:newer');
         SELECT pml_update('ns:cap_6', 'return 6.5'); SELECT pml_register('return 7')",
    )
    .unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml_history('ns:newer')"), 2);
}

#[test]
fn a_dump_restores_row_for_row() {
    let database = Database::new();
    let mut source = database.connect();
    for statement in CONTENT.split_inclusive(";\n") {
        source.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    let target = Cluster::new();
    let folder = target.folder().join("dump");
    let file = folder.to_str().unwrap();
    for (format, name) in [("custom", "restored_custom"), ("plain", "restored_plain")] {
        Cluster::shared().tool("pg_dump", &["-d", &database.name, "-F", format, "-f", file]);
        target.connect("postgres").batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        if format == "custom" {
            target.tool("pg_restore", &["--exit-on-error", "-d", name, file]);
        } else {
            target.tool("psql", &["-Xq", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", "-d", name, "-f", file]);
        }
        let mut restored = target.connect(name);
        assert_eq!(rows(&mut restored), rows(&mut source), "{format}");
        check_that_it_works(&mut restored);
    }
    // Once more, of what was restored: nothing is lost on the second way either.
    Cluster::shared().tool("pg_dump", &["-d", &database.name, "-F", "custom", "-f", file]);
    target.connect("postgres").batch_execute("CREATE DATABASE again").unwrap();
    target.tool("pg_restore", &["--exit-on-error", "--single-transaction", "-d", "again", file]);
    assert_eq!(rows(&mut target.connect("again")), rows(&mut source));
}
