//! Odd fields in the JSON that public functions and agent tools take: each answers, or fails with an error of ours.

use pml_tests::Database;
use serde_json::{Map, Value, json};

use crate::{
    hostile::quoted,
    odd_arguments::{Findings, JSONS, try_out, world},
};

/// The object with one of its keys, or one of those inside it, changed to each odd value, and without each.
fn variations(object: &Value, values: &[Value]) -> Vec<Value> {
    let mut variations = Vec::new();
    match object {
        Value::Object(fields) => {
            for (key, inner) in fields {
                let with = |value: Option<&Value>| {
                    let mut changed: Map<String, Value> = fields.clone();
                    changed.remove(key);
                    changed.extend(value.map(|value| (key.clone(), value.clone())));
                    Value::Object(changed)
                };
                variations.push(with(None));
                variations.extend(values.iter().map(|value| with(Some(value))));
                variations.extend(variations_inside(inner, values).iter().map(|value| with(Some(value))));
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                for value in values.iter().cloned().chain(variations_inside(item, values)) {
                    let mut changed = items.clone();
                    changed[at] = value;
                    variations.push(Value::Array(changed));
                }
            }
        }
        _ => {}
    }
    variations
}

fn variations_inside(value: &Value, values: &[Value]) -> Vec<Value> {
    if value.is_object() || value.is_array() { variations(value, values) } else { Vec::new() }
}

/// What JSON that agents and proxies send may hold; a number that is too large for Rust's JSON is put in as text.
fn odd_values() -> Vec<Value> {
    let mut values: Vec<Value> = JSONS.iter().filter_map(|text| text.parse().ok()).collect();
    values.extend([
        json!("x".repeat(10_000)),
        json!("a\u{1}b"),
        json!("1e400 as a number"),
        json!("null char"),
    ]);
    values
}

fn as_sql(value: &Value, kind: &str) -> String {
    let text = value.to_string().replace("\"1e400 as a number\"", "1e400");
    let text = if kind == "json" { text.replace("null char", "null\\u0000char") } else { text };
    format!("{}::{kind}", quoted(&text))
}

/// What reads schemas and code that were kept.
const READERS: [&str; 9] = [
    "SELECT * FROM pml_provides()",
    "SELECT * FROM pml_tools()",
    "SELECT * FROM pml_discover('read one')",
    "SELECT pml_whois(fqdn) FROM pml_list()",
    "SELECT pml_begin(jsonb_build_object('capability', name)) FROM pml_list()",
    "SELECT pml_register('return await mcp.files.read({ path: args.p })', 'fresh:two')",
    "SELECT pml_register('return await mcp.fresh.one({ a: args.p })', 'fresh:two')",
    "SELECT pml_merge(ARRAY['known:one', 'known:two'], 'fresh:two')",
    "SELECT pml_register_tools('files', '[{\"name\": \"read\"}]')",
];

#[test]
fn objects_with_odd_fields_are_refused_with_an_error_of_ours() {
    let world = world();
    let mut sessions = world.sessions();
    let mut findings = Findings::default();
    let dag = json!({"type": "dag", "dagStructure": {"tasks": [
        {"id": "a", "tool": "files:read", "arguments": {"path": {"type": "literal", "value": "x"}}, "dependsOn": []},
        {"id": "b", "tool": "files:read", "arguments": {"path": {"type": "reference", "expression": "a"}}, "dependsOn": ["a"]}]}});
    let tool = json!({"type": "tool", "toolId": "files:read", "defaultArgs": {"path": "x"}});
    let outcome = json!({"success": true, "result": {"n": 1}, "duration_ms": 3, "path": ["n1"], "logs": [],
        "decisions": [{"nodeId": "d1", "outcome": "true"}], "error": {"message": "x", "line": 1},
        "tasks": [{"node": "n1", "kind": "tool", "target": "files:read", "args": {"path": "x"}, "result": "y", "success": true,
                   "duration_ms": 1, "error": "x", "awaited": false, "line": 1,
                   "run": {"success": false, "fqdn": "x", "version": 1, "tasks": [
                     {"kind": "capability", "target": "known:one", "success": true}]}}]});
    let cases = [
        (
            "pml_begin(",
            "jsonb",
            ")",
            json!({"code": "return args.a", "name": "fresh:one", "intent": "x", "args": {"a": 1}, "description": "x", "options": {"timeout": 5}}),
        ),
        ("pml_begin(", "jsonb", ")", json!({"source": dag, "name": "fresh:one", "args": {}})),
        ("pml_begin(", "jsonb", ")", json!({"source": tool, "name": "fresh:one", "args": {}})),
        (
            "pml_begin(",
            "jsonb",
            ")",
            json!({"capability": "known:one", "args": {"a": 1}, "servers": ["files"]}),
        ),
        ("pml_begin(", "jsonb", ")", json!({"tool": "mcp__files__read", "args": {"path": 1}})),
        ("pml_begin(", "jsonb", ")", json!({"intent": "read", "servers": ["files"]})),
        ("pml_register(source => ", "jsonb", ", name => 'fresh:one')", dag.clone()),
        ("pml_register(source => ", "jsonb", ", name => 'fresh:one')", tool.clone()),
        ("pml_update('known:one', source => ", "jsonb", ")", tool),
        ("pml_update('known:one', source => ", "jsonb", ")", dag),
        (
            "pml_register('return args.a', 'fresh:one', parameters_schema => ",
            "jsonb",
            ")",
            json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}, "required": ["a"]}),
        ),
        (
            "pml_register('return args.a', 'fresh:one', output_schema => ",
            "jsonb",
            ")",
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        ),
        (
            "pml_check_args('{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}}}', ",
            "jsonb",
            ")",
            json!({"a": 1}),
        ),
        (
            "pml_register_tools('files', ",
            "json",
            ")",
            json!([{"name": "read", "description": "x", "title": "x", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}, "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]),
        ),
        (
            "pml_register_tool('files', 'read', input_schema => ",
            "jsonb",
            ")",
            json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        ),
        (
            "pml_tools_used(gen_random_uuid(), ",
            "jsonb",
            ")",
            json!([{"server": "files", "tool": "read", "success": true, "duration_ms": 1, "error": "x", "ago_ms": 5}]),
        ),
        (&format!("pml_finish('{}', ", world.workflow), "json", ")", outcome),
    ];
    let values = odd_values();
    for (before, kind, after, object) in &cases {
        for variation in variations(object, &values) {
            let statement = format!("SELECT {before}{}{after}", as_sql(&variation, kind));
            let is_kept = before.starts_with("pml_register") || before.starts_with("pml_update");
            let (admins, others) = sessions.split_at_mut(1);
            try_out(&mut admins[0], &mut findings, &statement, &[]);
            try_out(&mut others[0], &mut findings, &statement, if is_kept { &READERS } else { &[] });
        }
    }
    findings.check();
}

/// Rust reads 127 levels; Postgres and the compiler allow more.
#[test]
fn what_is_nested_deep_holds_up_nothing_else() {
    let mut db = Database::new().connect();
    let lists = |depth| ["[".repeat(depth), "]".repeat(depth)].concat();
    let objects = ["{ a: ".repeat(150), "1".to_owned(), " }".repeat(150)].concat();
    db.batch_execute(&format!(
        r#"SELECT pml_register_tools('files', '[{{"name": "read"}}]');
           SELECT pml_register('return mcp.files.read({{ path: {} }})', 'deep:literal'), pml_register('return {objects}', 'deep:output')"#,
        lists(200)
    ))
    .unwrap();
    let schema = r#"{"type": "object", "properties": {"path": {"type": "string"}}}"#;
    db.batch_execute(&format!(
        r#"SELECT pml_register_tools('files', '[{{"name": "read", "inputSchema": {schema}}}]');
           SELECT pml_register('return mcp.deep.output()', 'deep:caller'); SELECT * FROM pml_provides();
           SELECT pml_begin('{{"capability": "deep:literal"}}'), pml_whois('deep:literal')"#
    ))
    .unwrap();
    let mut findings = Findings::default();
    db.batch_execute("BEGIN").unwrap();
    for statement in [
        "SELECT pml_merge(ARRAY['deep:output', 'deep:caller'], 'deep:merged')".to_owned(),
        format!(
            "SELECT pml_register_tools('files', '[{{\"name\": \"read\", \"inputSchema\": {{\"default\": {}}}}}]')",
            lists(200)
        ),
        format!(
            "SELECT pml_register_tool('files', 'read', input_schema => '{{\"default\": {}}}')",
            lists(200)
        ),
    ] {
        try_out(&mut db, &mut findings, &statement, &[]);
    }
    findings.check();
}

#[test]
fn tools_of_agents_refuse_odd_arguments_with_an_error_of_ours() {
    let world = world();
    let mut sessions = world.sessions();
    let mut findings = Findings::default();
    let rows =
        sessions[0].query("SELECT name, definition -> 'inputSchema' FROM pml_agent_tools()", &[]).unwrap();
    let values = odd_values();
    for row in rows {
        let (tool, schema): (String, Value) = (row.get(0), row.get(1));
        // pml_execute is what pml_begin takes.
        if tool == "pml_execute" {
            continue;
        }
        let good: Map<String, Value> = schema["properties"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, property)| {
                let value = match (key.as_str(), property["type"].as_str()) {
                    ("sources", _) => json!(["known:one", "known:two"]),
                    ("workflow_id", _) => json!(world.workflow),
                    ("name", _) if !tool.ends_with("fork") && !tool.ends_with("merge") => json!("known:one"),
                    ("name" | "new_name", _) => json!("fresh:one"),
                    ("source", _) => json!("known:one"),
                    (_, Some("integer" | "number")) => json!(1),
                    (_, Some("boolean")) => json!(false),
                    (_, Some("array")) => json!(["x"]),
                    _ => property["enum"][0].as_str().map_or(json!("x"), |first| json!(first)),
                };
                (key.clone(), value)
            })
            .collect();
        for variation in variations(&Value::Object(good), &values) {
            let statement = format!("SELECT pml_ask({}, {})", quoted(&tool), as_sql(&variation, "jsonb"));
            for db in &mut sessions {
                try_out(db, &mut findings, &statement, &[]);
            }
        }
    }
    findings.check();
}
