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
                 WHERE attrelid = ('pml.' || $1::text)::regclass AND attnum > 0 AND NOT attisdropped",
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
