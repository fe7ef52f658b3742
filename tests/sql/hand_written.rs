//! Hand-written statements of admins on the tables of records and tools: odd values are refused in words, not by a constraint.

use pml_tests::{Ask, Database};

use crate::odd_arguments::{Findings, try_out};

const SETUP: &str = r#"
SET client_min_messages = error;
SELECT pml_register('return { a: args.a }', 'known:one', 'one', version_tag => 'v1.0.0', tags => '{x}');
SELECT pml_register('return args.b + 1', 'known:two', visibility => 'project'), pml_register('return mcp.known.two({ b: 1 })', 'known:caller');
SELECT pml_register('return 1', 'old:one'), pml_rename('old:one', 'new:one'), pml_register('return 7'), pml_register_server('files', 'local');
SELECT pml_register_tools('files', '[{"name": "read", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}]')"#;

/// The tables that admins may write, each with a row that could be inserted.
const TABLES: [(&str, &str); 3] = [
    ("capability_records", "display_name => 'fresh:one', code_snippet => 'return 5'"),
    (
        "capability_aliases",
        "org => 'local', project => 'default', alias => 'fresh:one', target_fqdn => id_of('known:one')",
    ),
    (
        "tool_schema",
        "org => 'local', project => 'default', tool_id => 'files:write', server_id => 'files', name => 'write'",
    ),
];

/// Every run updates these, so that no trigger looks at them.
const COUNTS: [&str; 3] = ["usage_count", "success_count", "total_latency_ms"];

fn odd_values(kind: &str) -> Vec<&'static str> {
    let mut values = match kind {
        "text" => vec![
            "''",
            "' '",
            "'a b'",
            "'..'",
            "'known:one'",
            "'known:two'",
            "'old:one'",
            "'mcp:files'",
            "'files:read'",
            "'private'",
            "'org'",
            "'local'",
            "'v1.0.0'",
            "'v2'",
            "'return 1'",
            "'return ('",
            "repeat('x', 100000)",
        ],
        "jsonb" | "json" => vec![
            "'null'",
            "'5'",
            "'1e400'",
            "'[]'",
            "'{}'",
            "'{\"type\": \"nonsense\"}'",
            "'{\"type\": \"object\", \"default\": 1e400}'",
            "(repeat('[', 500) || repeat(']', 500))",
            "'{\"nodes\": 5}'",
            "'{\"type\": \"dag\"}'",
            "'{\"type\": \"tool\", \"toolId\": \"files:read\"}'",
            "'{\"name\": \"x\\u0001\"}'",
        ],
        "text[]" => vec!["'{}'", "'{NULL}'", "'{{a},{b}}'", "'{known:one}'", "'{x,x}'"],
        "boolean" => vec!["true", "false"],
        "integer" | "bigint" => vec!["0", "-1", "2147483647"],
        "timestamp with time zone" => vec!["now()", "'infinity'", "'-infinity'"],
        "tsvector" => vec!["''", "'x'"],
        other => panic!("no odd values of type {other}"),
    };
    values.push("NULL");
    values
}

#[test]
fn odd_values_are_refused_in_words() {
    let mut db = Database::new().connect();
    db.batch_execute(SETUP).unwrap();
    db.batch_execute(
        "CREATE FUNCTION pg_temp.id_of(text) RETURNS text LANGUAGE sql AS 'SELECT id FROM pml.capability_records WHERE display_name = $1'",
    )
    .unwrap();
    let mut findings = Findings::default();
    db.batch_execute("SET statement_timeout = '60s'; BEGIN").unwrap();
    for (table, row) in TABLES {
        let columns = db
            .query(
                "SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute
                 WHERE attrelid = ('pml.' || $1::text)::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
                &[&table],
            )
            .unwrap();
        let given: Vec<(&str, &str)> = row.split(", ").map(|part| part.split_once(" => ").unwrap()).collect();
        for column in &columns {
            let (column, kind): (String, String) = (column.get(0), column.get(1));
            let is_count = COUNTS.contains(&column.as_str());
            for value in odd_values(&kind) {
                let value = format!("{value}::{kind}");
                let rows = db.texts(&format!("SELECT ctid::text FROM pml.{table} WHERE org <> 'pml'"));
                for ctid in rows.into_iter().filter(|_| !is_count) {
                    let update = format!("UPDATE pml.{table} SET {column} = {value} WHERE ctid = '{ctid}'");
                    try_out(&mut db, &mut findings, &update, &[]);
                }
                let others = given.iter().filter(|(name, _)| *name != column);
                let (names, values): (Vec<&str>, Vec<&str>) = others.copied().unzip();
                let insert = format!(
                    "INSERT INTO pml.{table} ({column}, {}) VALUES ({value}, {})",
                    names.join(", "),
                    values.join(", ").replace("id_of", "pg_temp.id_of")
                );
                try_out(&mut db, &mut findings, &insert, &[]);
            }
        }
    }
    findings.check();
}

/// What foreign keys would refuse; there are none, so that a dump can be loaded in any order.
#[test]
fn references_stay_whole() {
    let database = Database::new();
    database.create_role("admin", &["pml_admin"]);
    let mut db = database.connect();
    db.batch_execute(SETUP).unwrap();
    db.batch_execute(
        "SELECT pml_register('return 9', 'gone:one'), pml_delete('gone:one');
         INSERT INTO pml.execution_trace (id, org, project, user_id, success, duration_ms, parent_trace_id)
         VALUES ('00000000-0000-0000-0000-00000000000a', 'local', 'default', 'me', true, 1, '00000000-0000-0000-0000-00000000000b'),
                ('00000000-0000-0000-0000-00000000000b', 'local', 'default', 'me', true, 1, NULL)",
    )
    .unwrap();
    assert_eq!(
        db.texts("SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f' AND connamespace = 'pml'::regnamespace"),
        [""; 0],
        "pg_restore -j loads tables in any order"
    );
    let refused = [
        ("PM001", "INSERT INTO pml.capability_dependencies (from_fqdn, to_fqdn) SELECT id, 'a.b.c.d.e' FROM pml.capability_records"),
        ("PM001", "INSERT INTO pml.capability_usage (capability_fqdn, uses, successes, latency_ms) VALUES ('a.b.c.d.e', 1, 1, 1)"),
        ("PM001", "INSERT INTO pml.capability_rename_history (capability_id, new_name) VALUES ('a.b.c.d.e', 'x')"),
        ("PM004", "INSERT INTO pml.capability_aliases (org, project, alias, target_fqdn) VALUES ('local', 'default', 'x:y', 'a.b.c.d.e')"),
        ("PM001", "INSERT INTO pml.tool_usage (org, project, actor, server_id, tool_id, capability_fqdn, success, duration_ms) VALUES ('local', 'default', 'me', 's', 't', 'a.b.c.d.e', true, 1)"),
        ("PM001", "INSERT INTO pml.execution_trace (capability_id, org, project, user_id, success, duration_ms) VALUES ('a.b.c.d.e', 'local', 'default', 'me', true, 1)"),
        ("PM001", "INSERT INTO pml.execution_trace (parent_trace_id, org, project, user_id, success, duration_ms) VALUES (gen_random_uuid(), 'local', 'default', 'me', true, 1)"),
        ("PM001", "INSERT INTO pml.capability_records (id, org, project, namespace, action, hash, code_hash, display_name, created_by, updated_by, code_snippet, parent_id)
                   VALUES ('local.default.x.y.1234', 'local', 'default', 'x', 'y', '1234', '1234', 'x:y', 'me', 'me', 'return 3', 'a.b.c.d.e')"),
        ("PM001", "UPDATE pml.capability_dependencies SET to_fqdn = 'a.b.c.d.e'"),
        ("PM001", "UPDATE pml.capability_rename_history SET capability_id = 'a.b.c.d.e'"),
        ("PM001", "UPDATE pml.execution_trace SET parent_trace_id = gen_random_uuid()"),
        ("PM007", "DELETE FROM pml.execution_trace WHERE parent_trace_id IS NULL"),
        ("PM007", "UPDATE pml.execution_trace SET id = gen_random_uuid() WHERE parent_trace_id IS NULL"),
        ("PM007", "DELETE FROM pml.capability_records"),
        ("PM007", "DELETE FROM pml.capability_versions"),
        ("PM007", "DELETE FROM pml.name_claims WHERE name = 'known:one'"),
        ("PM007", "DELETE FROM pml.name_claims WHERE name = 'old:one'"),
        ("PM007", "DELETE FROM pml.name_claims WHERE name = 'gone:one'"),
        ("PM007", "UPDATE pml.name_claims SET name = 'known:three' WHERE name = 'known:one'"),
        ("PM007", "UPDATE pml.name_claims SET org = 'acme'"),
        ("PM007", "DELETE FROM pml.tool_names WHERE kind = 'tool'"),
        ("PM007", "DELETE FROM pml.tool_names WHERE kind = 'capability'"),
        ("PM007", "UPDATE pml.tool_names SET tool_name = 'x' WHERE name = 'known:one'"),
    ];
    for mut client in [database.connect(), database.connect_as("admin")] {
        for (code, statement) in refused {
            let error = client.refusal(statement);
            assert_eq!(error.code().code(), code, "{statement}: {error:?}");
            assert!(error.hint().is_some() && error.constraint().is_none(), "{statement}: {error:?}");
        }
    }
    for table in ["capability_records", "name_claims", "tool_names", "capability_versions"] {
        let error = db.refusal(&format!("TRUNCATE pml.{table} CASCADE"));
        assert_eq!(error.code().code(), "PM007", "{table}");
    }
    // The settings of a dump are for what admins load; nobody else's names go unclaimed for them.
    database.create_role("bob", &[]);
    db.batch_execute(&format!("SELECT pml_grant('{}', 'local', 'default')", database.role("bob"))).unwrap();
    for mut client in [database.connect(), database.connect_as("bob")] {
        client
            .batch_execute("SET check_function_bodies = off; SELECT set_config('search_path', '', false)")
            .unwrap();
        let name = client.text("SELECT 'loaded:' || left(current_user, 3)", &[]).unwrap();
        client.execute("SELECT public.pml_register('return ' || quote_literal($1), $1)", &[&name]).unwrap();
        let error = client.refusal(&format!("SELECT public.pml_register('return 0', '{name}')"));
        assert_eq!(error.code().code(), "PM003");
    }
    // What nothing refers to may go, and a family of traces as a whole.
    let mut client = database.connect_as("admin");
    client.batch_execute("DELETE FROM pml.execution_trace; UPDATE pml.name_claims SET reserved_until = now() WHERE name = 'gone:one'").unwrap();
    db.batch_execute("SELECT pml_register('return 10', 'gone:one')").unwrap();
}
