//! Saving compiles: links survive renames, and everything derived from the code is stored.

use pml_tests::{Ask, Database};
use postgres::Client;
use serde_json::{Value as Json, json};

fn json(db: &mut Client, query: &str) -> Json {
    db.query_one(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}")).get(0)
}

#[test]
fn names_survive() {
    let mut db = Database::new().connect();
    let callee = db.text("SELECT pml_register('return args.path', 'fs:read_json')", &[]).unwrap();
    let caller = db
        .text("SELECT pml_register('return await mcp.fs.readJson({ path: args.p })', 'app:config')", &[])
        .unwrap();
    db.batch_execute("SELECT pml_rename('fs:read_json', 'data:load')").unwrap();
    for version in 2..12 {
        db.batch_execute(&format!("SELECT pml_update('data:load', 'return {version}')")).unwrap();
    }
    db.batch_execute("SELECT pml_rename('app:config', 'app:settings')").unwrap();
    let stored =
        db.text("SELECT code_snippet FROM pml.capability_records WHERE id = $1", &[&caller]).unwrap();
    assert_eq!(stored, format!("return await mcp[\"{callee}\"]({{ path: args.p }})"));
    assert_eq!(
        db.text("SELECT pml_code('app:settings')", &[]).unwrap(),
        "return await mcp.data.load({ path: args.p })"
    );
    assert_eq!(db.texts("SELECT display_name FROM pml_dependents('data:load')"), ["app:settings"]);
    let whois = json(&mut db, "SELECT pml_whois('app:settings')");
    assert_eq!(whois["dependencies"], json!([callee]));
    assert_eq!(whois["capabilities_used"], json!([callee]));
    assert_eq!(whois["code_snippet"], "return await mcp.data.load({ path: args.p })");
    // Saved again as it is shown, it is the same code: no new version, and the same capability.
    let again = "SELECT pml_update('app:settings', pml_code('app:settings'))::text";
    assert_eq!(db.text(again, &[]).unwrap(), "1");
    let again = "SELECT pml_register(pml_code('app:settings'))";
    assert_eq!(db.text(again, &[]).unwrap(), caller);
    assert_eq!(db.refusal("SELECT pml_delete('data:load')").code().code(), "2BP01");
    db.batch_execute("SELECT pml_update('app:settings', 'return 1'); SELECT pml_delete('data:load')")
        .unwrap();
}

#[test]
fn names_are_those_that_the_saver_sees() {
    let database = Database::new();
    let mut admin = database.connect();
    let ann = database.create_role("ann", &[]);
    let bob = database.create_role("bob", &[]);
    admin
        .batch_execute(&format!(
            "SELECT pml_grant('{ann}', 'local', 'default'); SELECT pml_grant('{bob}', 'local', 'default')"
        ))
        .unwrap();
    let (mut ann, mut bob) = (database.connect_as("ann"), database.connect_as("bob"));
    ann.batch_execute("SELECT pml_register('return 1', 'fs:mine'); SELECT pml_register('return 2', 'fs:ours', visibility => 'project')")
        .unwrap();
    let code = "'await mcp.fs.mine(); return mcp.fs.ours()'";
    let uses = format!("SELECT pml_analyze({code}) -> 'capabilities'");
    assert_eq!(json(&mut ann, &uses).as_array().map(Vec::len), Some(2));
    assert_eq!(json(&mut bob, &uses).as_array().map(Vec::len), Some(1));
    assert_eq!(json(&mut bob, &format!("SELECT pml_analyze({code}) -> 'tools'")), json!(["fs:mine"]));
    // The same words mean different things to the two, so they are two capabilities.
    ann.batch_execute(&format!("SELECT pml_register({code}, 'a:one', visibility => 'project')")).unwrap();
    bob.batch_execute(&format!("SELECT pml_register({code}, 'b:one')")).unwrap();
    // What Bob can't see has no name for him.
    let shown = bob.text("SELECT pml_code('a:one')", &[]).unwrap();
    assert_eq!(shown, "await mcp.unknown.capability(); return mcp.fs.ours()");
}

#[test]
fn a_capability_of_another_scope_is_named_with_it() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'fs:read', visibility => 'public')").unwrap();
    db.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'").unwrap();
    let code = r#"return await mcp["local.default:fs:read"](args)"#;
    db.execute("SELECT pml_register($1, 'a')", &[&code]).unwrap();
    assert_eq!(db.text("SELECT pml_code('a')", &[]).unwrap(), code);
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_dependencies"), 1);
}

#[test]
fn versions_in_the_code_stay() {
    let mut db = Database::new().connect();
    let callee = db.text("SELECT pml_register('return 1', 'fs:read')", &[]).unwrap();
    db.execute("SELECT pml_register($1, 'a')", &[&r#"return mcp["fs:read@v1"]()"#]).unwrap();
    let used = "SELECT capabilities_used[1] FROM pml.capability_records WHERE display_name = 'a'";
    assert_eq!(db.text(used, &[]).unwrap(), format!("{callee}@v1"));
    assert_eq!(db.text("SELECT pml_code('a')", &[]).unwrap(), r#"return mcp["fs:read@v1"]()"#);
}

#[test]
fn circles_are_refused_with_their_path() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register('return 1', 'x:a'); SELECT pml_register('return mcp.x.a()', 'x:b');
         SELECT pml_register('return mcp.x.b()', 'x:c')",
    )
    .unwrap();
    let error = db.refusal("SELECT pml_update('x:a', 'return mcp.x.c()')");
    assert_eq!(error.code().code(), "PM005");
    assert!(error.message().ends_with("x:a → x:c → x:b → x:a"), "{}", error.message());
    let error = db.refusal(
        "UPDATE pml.capability_records SET code_snippet = 'return mcp.x.a()' WHERE display_name = 'x:a'",
    );
    assert!(error.message().ends_with("x:a → x:a"), "{}", error.message());
    assert_eq!(db.text("SELECT pml_code('x:a')", &[]).unwrap(), "return 1");
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_dependencies"), 2);
}

#[test]
fn a_circle_that_two_sessions_close_together_is_refused_too() {
    let database = Database::new();
    let (mut one, mut two) = (database.connect(), database.connect());
    one.batch_execute("SELECT pml_register('return 1', 'x:a'); SELECT pml_register('return 2', 'x:b')")
        .unwrap();
    one.batch_execute("BEGIN; SELECT pml_update('x:a', 'return mcp.x.b()')").unwrap();
    let second =
        std::thread::spawn(move || two.batch_execute("SELECT pml_update('x:b', 'return mcp.x.a()')"));
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while database.connect().number(waits) == 0 {
        std::thread::yield_now();
    }
    one.batch_execute("COMMIT").unwrap();
    let error = second.join().unwrap().expect_err("a circle");
    assert_eq!(error.code().unwrap().code(), "PM005");
}

#[test]
fn a_rollback_means_what_the_version_meant() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register('return mcp.fs.read(args)', 'a'); SELECT pml_update('a', 'return 2');
         SELECT pml_register('return 3', 'fs:read')",
    )
    .unwrap();
    db.batch_execute("SELECT pml_rollback('a@v1')").unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_dependencies"), 0);
    assert_eq!(
        db.texts("SELECT unnest(tools_used) FROM pml.capability_records WHERE display_name = 'a'"),
        ["fs:read"]
    );
    // Saved anew, the same words mean the capability that has the name now.
    db.batch_execute("SELECT pml_update('a', 'return mcp.fs.read(args)')").unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_dependencies"), 1);
}

#[test]
fn what_follows_from_the_code_cannot_be_forged() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return args.a', 'a')").unwrap();
    for change in ["executable = 'return 666'", "capabilities_used = '{x.y.z.a.1234}'", "code_hash = 'x'"] {
        let error =
            db.refusal(&format!("UPDATE pml.capability_records SET {change} WHERE display_name = 'a'"));
        assert_eq!(error.code().code(), "PM007", "{change}");
    }
    db.batch_execute(
        "INSERT INTO pml.capability_records (display_name, code_snippet, executable, structure)
         VALUES ('b', 'return args.b as string', 'return 666', '{}')",
    )
    .unwrap();
    let stored =
        db.text("SELECT executable FROM pml.capability_records WHERE display_name = 'b'", &[]).unwrap();
    assert_eq!(stored.trim_end(), "return __pml.returned((args.b))");
    db.batch_execute(
        "UPDATE pml.capability_records SET structure = '{\"nodes\": []}' WHERE display_name = 'b'",
    )
    .unwrap();
    let structure = json(&mut db, "SELECT structure FROM pml.capability_records WHERE display_name = 'b'");
    assert_eq!(structure, json!({ "nodes": [], "edges": [] }));
}

#[test]
fn parameters_follow_the_code_until_somebody_gives_them() {
    let mut db = Database::new().connect();
    let schema =
        "SELECT parameters_schema -> 'properties' FROM pml.capability_records WHERE display_name = 'a'";
    db.batch_execute("SELECT pml_register('return args.n * 2', 'a')").unwrap();
    assert_eq!(json(&mut db, schema), json!({ "n": { "type": "number" } }));
    db.batch_execute("SELECT pml_update('a', 'return args.text.trim()')").unwrap();
    assert_eq!(json(&mut db, schema), json!({ "text": { "type": "string" } }));
    let given = r#"{"type": "object", "properties": {"mine": {}}}"#;
    db.batch_execute(&format!("SELECT pml_update('a', 'return args.x', parameters_schema => '{given}')"))
        .unwrap();
    db.batch_execute("SELECT pml_update('a', 'return args.y')").unwrap();
    assert_eq!(json(&mut db, schema), json!({ "mine": {} }));
    db.batch_execute("SELECT pml_rollback('a@v2'); SELECT pml_update('a', 'return args.z')").unwrap();
    assert_eq!(json(&mut db, schema), json!({ "z": {} }));
}

#[test]
fn secrets_are_lifted_and_not_kept() {
    let mut db = Database::new().connect();
    let code = r#"return mcp.http.get({ url: "https://example.com/a", token: "ghp_0123456789abcdefghij" })"#;
    db.execute("SELECT pml_register($1, 'a', lift_literals => true)", &[&code]).unwrap();
    let everything = "SELECT r::text || v::text FROM pml.capability_records r JOIN pml.capability_versions v ON v.capability_fqdn = r.id WHERE r.display_name = 'a'";
    assert!(!db.text(everything, &[]).unwrap().contains("ghp_"));
    let schema = json(&mut db, "SELECT pml_whois('a') -> 'parameters_schema'");
    assert_eq!(schema["required"], json!(["token"]));
    assert_eq!(schema["properties"]["url"]["default"], "https://example.com/a");
}

#[test]
fn a_tool_and_a_dag_are_capabilities_too() {
    let mut db = Database::new().connect();
    let tool = r#"{"type": "tool", "toolId": "temporal:startWorkflow", "defaultArgs": {"workflowId": "deploy-prod-v2"}}"#;
    db.batch_execute(&format!("SELECT pml_register(source => '{tool}', name => 'ops:deploy')")).unwrap();
    assert_eq!(
        json(&mut db, "SELECT pml_whois('ops:deploy') -> 'source'"),
        serde_json::from_str::<Json>(tool).unwrap()
    );
    assert_eq!(
        db.text("SELECT pml_code('ops:deploy')", &[]).unwrap().trim(),
        r#"return await mcp.temporal.startWorkflow({ workflowId: "deploy-prod-v2", ...args });"#
    );
    // What the tool takes is what the capability takes, if it is known.
    let schema = r#"{"type": "object", "properties": {"workflowId": {"type": "string"}, "at": {"type": "string"}}, "required": ["workflowId", "at"]}"#;
    db.batch_execute(&format!(
        "SELECT pml_register_tool('temporal', 'startWorkflow', NULL, '{schema}');
         SELECT pml_update('ops:deploy', source => jsonb_set('{tool}', '{{defaultArgs,workflowId}}', '\"v3\"'))"
    ))
    .unwrap();
    assert_eq!(
        json(&mut db, "SELECT pml_whois('ops:deploy') -> 'parameters_schema'"),
        json!({
            "type": "object",
            "properties": { "workflowId": { "type": "string", "default": "v3" }, "at": { "type": "string" } },
            "required": ["at"]
        })
    );
    let dag = r#"{"type": "dag", "dagStructure": {"tasks": [
        {"id": "read", "tool": "fs:read", "arguments": {"path": {"type": "parameter", "parameterName": "path"}}},
        {"id": "parse", "tool": "json:parse", "arguments": {"json": {"type": "reference", "expression": "read.content"}}}]}}"#;
    db.batch_execute(&format!("SELECT pml_register(source => '{dag}', name => 'fs:load')")).unwrap();
    let whois = json(&mut db, "SELECT pml_whois('fs:load')");
    assert_eq!(whois["source"]["type"], "dag");
    assert_eq!(whois["tools_used"], json!(["fs:read", "json:parse"]));
    assert_eq!(
        whois["structure"]["nodes"][1]["arguments"]["json"],
        json!({ "type": "reference", "expression": "n1.content" })
    );
    // Given code, it is code from then on; its old version is what it was.
    db.batch_execute("SELECT pml_update('fs:load', 'return 1')").unwrap();
    assert_eq!(
        json(&mut db, "SELECT pml_whois('fs:load') -> 'source'"),
        json!({ "type": "code", "code": "return 1" })
    );
    db.batch_execute("SELECT pml_rollback('fs:load@v1')").unwrap();
    assert_eq!(json(&mut db, "SELECT pml_whois('fs:load') -> 'source'")["type"], "dag");
    for source in [
        "[]",
        r#"{"type": "dag"}"#,
        r#"{"type": "tool"}"#,
        r#"{"type": "x"}"#,
        r#"{"type": "tool", "toolId": "a:b", "defaultArgs": 1}"#,
    ] {
        assert_eq!(
            db.refusal(&format!("SELECT pml_register(source => '{source}')")).code().code(),
            "22023",
            "{source}"
        );
    }
}

#[test]
fn merging_makes_a_pipeline_of_what_fits() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register('return { text: String(args.path) }', 'fs:load');
         SELECT pml_register('return { ok: args.text.length > 3 }', 'data:check');
         SELECT pml_merge(ARRAY['fs:load', 'data:check'], 'fs:load_checked')",
    )
    .unwrap();
    let code = "const step1 = await mcp.fs.load({ path: args.path });\nconst step2 = await mcp.data.check({ text: step1.text });\nreturn step2;\n";
    assert_eq!(db.text("SELECT pml_code('fs:load_checked')", &[]).unwrap(), code);
    assert_eq!(db.number("SELECT count(*) FROM pml_dependents('fs:load')"), 1);
    let error = db.refusal("SELECT pml_merge(ARRAY['data:check', 'fs:load'], 'x')");
    assert_eq!(error.code().code(), "22023");
    assert!(error.message().contains("`fs:load` doesn't fit after `data:check`"), "{}", error.message());
    db.batch_execute(
        "SELECT pml_merge(ARRAY['data:check', 'fs:load'], 'x', 'await cap_data_check({ text: \"a\" }); return cap_fs_load(args)')",
    )
    .unwrap();
    assert_eq!(
        db.number("SELECT count(*) FROM pml.capability_dependencies WHERE from_fqdn = pml_resolve('x')"),
        2
    );
    assert_eq!(db.refusal("SELECT pml_merge(ARRAY['nothing', 'fs:load'], 'y')").code().code(), "PM001");
    assert_eq!(db.refusal("SELECT pml_merge(ARRAY['fs:load'], 'y')").code().code(), "22004");
    assert_eq!(db.refusal("SELECT pml_merge(ARRAY['fs:load', 'mcp:shell'], 'y')").code().code(), "22023");
}

const READ: &str = "SELECT pml_register_tool('fs', 'read', NULL, '{\"type\": \"object\", \"properties\": {\"path\": {\"type\": \"string\"}}, \"required\": [\"path\"]}', '{\"type\": \"object\", \"properties\": {\"content\": {\"type\": \"string\"}}}')";
const PARSE: &str = "SELECT pml_register_tool('json', 'parse', NULL, '{\"type\": \"object\", \"properties\": {\"json\": {\"type\": \"string\"}}, \"required\": [\"json\"]}', '{\"type\": \"object\", \"properties\": {\"data\": {\"type\": \"object\"}}}')";
const POST: &str = "SELECT pml_register_tool('http', 'post', NULL, '{\"type\": \"object\", \"properties\": {\"url\": {\"type\": \"string\"}, \"body\": {\"type\": \"object\"}}, \"required\": [\"url\", \"body\"]}')";

#[test]
fn provides_edges_follow_the_schemas() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('const f = await mcp.fs.read(args); return mcp.json.parse({ json: f.content })', 'a')")
        .unwrap();
    let edges = "SELECT jsonb_path_query_array(structure, '$.edges[*] ? (@.type == \"provides\")') FROM pml.capability_records WHERE display_name = 'a'";
    assert_eq!(json(&mut db, edges), json!([]));
    let before = db.text(
        "SELECT version || ' ' || updated_at FROM pml.capability_records WHERE display_name = 'a'",
        &[],
    );
    for tool in [READ, PARSE, POST] {
        db.batch_execute(tool).unwrap();
    }
    assert_eq!(
        json(&mut db, edges),
        json!([{ "from": "n1", "to": "n2", "type": "provides", "coverage": "strict" }])
    );
    let table = "SELECT from_tool || ' ' || to_tool || ' ' || coverage FROM pml_provides()";
    assert_eq!(db.texts(table), ["fs:read json:parse strict", "json:parse http:post partial"]);
    let mapping = json(&mut db, "SELECT field_mapping FROM pml_provides('fs:read')");
    assert_eq!(mapping, json!([{ "fromField": "content", "toField": "json", "typeCompatible": true }]));
    // Another schema, other edges; nothing else about the capability has changed.
    db.batch_execute(&READ.replace("content", "mtime")).unwrap();
    assert_eq!(json(&mut db, edges), json!([]));
    assert_eq!(db.texts(table), ["json:parse http:post partial"]);
    db.batch_execute("DELETE FROM pml.tool_schema").unwrap();
    assert_eq!(db.texts(table), [""; 0]);
    assert_eq!(
        db.text(
            "SELECT version || ' ' || updated_at FROM pml.capability_records WHERE display_name = 'a'",
            &[]
        ),
        before
    );
}

#[test]
fn transforming_touches_nothing_else_and_only_once() {
    let mut db = Database::new().connect();
    let fqdn = db.text("SELECT pml_register('return 1', 'fs:read_json')", &[]).unwrap();
    let code = "\u{feff}// mcp.fs.read_json()\r\nconst é = `mcp.fs.read_json(${\"ü\"})`;\r\nawait mcp.fs.readJson(é), mcp.other.tool()";
    let linked = db.text("SELECT pml_transform($1)", &[&code]).unwrap();
    assert_eq!(linked, code.replace("mcp.fs.readJson(é)", &format!("mcp[\"{fqdn}\"](é)")));
    assert_eq!(db.text("SELECT pml_transform($1)", &[&linked]).unwrap(), linked);
    let shown = db.text("SELECT pml_display_code($1)", &[&linked]).unwrap();
    assert_eq!(shown, code.replace("readJson", "read_json"));
}

#[test]
fn no_input_hurts_the_backend() {
    let database = Database::new();
    let mut db = database.connect();
    let backend = db.number("SELECT pg_backend_pid()::bigint");
    for function in [
        "pml_analyze",
        "pml_transform",
        "pml_infer_parameters",
        "pml_code_hash",
        "pml_compile",
        "pml_lift_literals",
    ] {
        for code in [
            "repeat('(', 100000)",
            "repeat('x;', 5000000)",
            "'`${'",
            "'return ]'",
            "repeat('a?', 100000)",
            "'<a>b</a>'",
            "repeat('[', 399) || repeat(']', 398)",
        ] {
            let error = db.refusal(&format!("SELECT {function}({code})"));
            assert_eq!(error.code().code(), "PM005", "{function}({code}): {error}");
            assert!(error.message().len() < 500);
        }
        assert!(db.text(&format!("SELECT {function}(NULL)::text"), &[]).is_none());
    }
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_records WHERE record_type = 'capability'"), 0);
    assert_eq!(db.number("SELECT pg_backend_pid()::bigint"), backend);
}

#[test]
fn a_compile_can_be_cancelled() {
    let mut db = Database::new().connect();
    db.batch_execute("SET statement_timeout = '1ms'").unwrap();
    let error = db.refusal("SELECT pml_compile(repeat('if (args.x) mcp.a.b(); ', 11000))");
    assert_eq!(error.code().code(), "57014", "{error}");
}

#[test]
fn a_merged_capability_has_the_parameters_of_its_first_source_and_what_the_rest_needs() {
    let mut db = Database::new().connect();
    let path = r#"{"type": "object", "properties": {"path": {"type": "string", "description": "Where it is"}}, "required": ["path"]}"#;
    let validate = r#"{"type": "object", "properties": {"data": {"type": "object"}, "schema": {"type": "object"}, "strict": {"type": "boolean", "default": false}}, "required": ["data", "schema"]}"#;
    db.batch_execute(&format!(
        "SELECT pml_register('const file = await mcp.filesystem.read_text_file({{ path: args.path }}); return JSON.parse(file.content)', 'fs:read_json', parameters_schema => '{path}');
         SELECT pml_register('for (const key of args.schema.required) if (!(key in args.data)) throw new Error(key); return args.data', 'transform:validate_schema', parameters_schema => '{validate}');
         SELECT pml_merge(ARRAY['cap:fs:read_json', 'cap:transform:validate_schema'], 'fs:read_validated_json')"
    ))
    .unwrap();
    let code = "const step1 = await mcp.fs.read_json({ path: args.path });\n\
                const step2 = await mcp.transform.validate_schema({ data: step1, schema: args.schema, strict: args.strict });\n\
                return step2;\n";
    assert_eq!(db.text("SELECT pml_code('fs:read_validated_json')", &[]).unwrap(), code);
    assert_eq!(
        json(&mut db, "SELECT pml_whois('fs:read_validated_json') -> 'parameters_schema'"),
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "Where it is" },
                "schema": { "type": "object" },
                "strict": { "type": "boolean", "default": false }
            },
            "required": ["path", "schema"]
        })
    );
    // With code: what it hands on needs what the first source needs; the sources may be called by the beginning of a name.
    db.batch_execute(
        "SELECT pml_merge(ARRAY['cap:fs:read_json', 'cap:transform:validate_schema'], 'fs:read_validated',
                          'const data = await cap_fs_read_json(args); return cap_transform_validate(data);');
         SELECT pml_merge(ARRAY['fs:read_json', 'transform:validate_schema'], 'fs:fixed',
                          'return cap_fs_read_json({ path: \"/etc/\" + args.file });')",
    )
    .unwrap();
    let merged = json(&mut db, "SELECT pml_whois('fs:read_validated')");
    assert_eq!(merged["parameters_schema"]["required"], json!(["path"]));
    assert_eq!(merged["parameters_schema"]["properties"]["path"]["description"], "Where it is");
    assert_eq!(merged["dependencies"].as_array().unwrap().len(), 2);
    let fixed = json(&mut db, "SELECT pml_whois('fs:fixed') -> 'parameters_schema' -> 'properties'");
    assert_eq!(fixed.as_object().unwrap().keys().collect::<Vec<_>>(), ["file"]);
}

#[test]
fn a_source_is_taken_as_whois_gives_it() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register('return args.a', 'a:a', parameters_schema => '{\"type\": \"object\"}');
         SET pml.project = 'other';
         SELECT pml_register(source => (SELECT w -> 'source' FROM (SELECT '{\"source\": {\"type\": \"code\", \"code\": \"return args.a\"}}'::jsonb AS w) AS x), name => 'a:b');
         SET pml.project = 'default';
         SELECT pml_register(source => pml_whois('a:a') -> 'source', name => 'a:a');
         SELECT pml_update('a:a', source => '{\"type\": \"code\", \"code\": \"return args.b\"}')",
    )
    .unwrap();
    assert_eq!(
        json(&mut db, "SELECT pml_whois('a:a') -> 'source'"),
        json!({ "type": "code", "code": "return args.b" })
    );
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_records WHERE source <> '{\"type\": \"code\"}' AND record_type = 'capability'"), 0);
    let error = db.refusal("SELECT pml_register(source => '{\"type\": \"code\"}')");
    assert_eq!((error.code().code(), error.message()), ("22023", "The source has no code"));
}

#[test]
fn parameters_are_those_of_an_object() {
    let mut db = Database::new().connect();
    for schema in
        ["{\"type\": \"string\"}", "{\"type\": [\"string\", \"null\"]}", "true", "[]", "{\"enum\": [1]}"]
    {
        let error = db.refusal(&format!("SELECT pml_register('return 1', parameters_schema => '{schema}')"));
        assert_eq!(error.code().code(), "22023", "{schema}");
    }
    db.batch_execute(
        "SELECT pml_register('return 1', 'a:a', parameters_schema => '{\"properties\": {\"a\": {}}}');
         SELECT pml_register('return 2', 'a:b', parameters_schema => '{\"type\": \"object\"}')",
    )
    .unwrap();
    let error =
        db.refusal("SELECT pml_update('a:a', 'return 3', parameters_schema => '{\"type\": \"number\"}')");
    assert_eq!(error.message(), "Invalid parameters_schema: it must be the schema of an object");
}

#[test]
fn a_nul_that_code_writes_as_an_escape_is_kept_in_the_code_alone() {
    let mut db = Database::new().connect();
    for code in [
        r"return args.text.split('\0')",
        r"return args.text ?? '\x00'",
        r"return { '\u0000': args['\0'], a: `\0` }",
        r"const { a = '\0' } = args; return mcp.fs.read({ path: 'a\0b', note: `x${args.y}\0`, deep: { '\0': ['\0'] } })",
        r"type T = { a: 'x\0' }; const t = args as T; return t.a",
        r"if (args.a === '\0') return mcp['\0:x'](args); switch (args.b) { case '\0': return 1 }",
        r"return mcp['fs:read\0']({}) || capabilities['\0'](args)",
        r"enum E { A = '\0', 'b\0' = 2 } return E.A",
    ] {
        let fqdn = db.text("SELECT pml_register($1)", &[&code]).unwrap_or_else(|| panic!("{code}"));
        assert_eq!(db.text("SELECT pml_code($1)", &[&fqdn]).unwrap(), code);
        for function in ["pml_analyze", "pml_infer_parameters", "pml_lift_literals", "pml_compile"] {
            let result = db.query_one(&format!("SELECT {function}($1)::text"), &[&code]);
            assert!(result.is_ok(), "{function} {code}: {result:?}");
        }
    }
    let default = "SELECT pml_infer_parameters($1) #>> '{properties,sep,default}'";
    assert_eq!(db.text(default, &[&r"return args.sep ?? '\0'"]), None);
    assert_eq!(db.text(default, &[&r"return args.sep ?? ','"]).as_deref(), Some(","));
}

/// Reading, linking, hashing and everything else that a save keeps comes from one parse.
#[test]
fn code_is_parsed_once_for_each_save() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute("SELECT pml_register('return 1', 'num:one')").unwrap();
    let parses = |db: &mut Client, statement: &str| {
        let before = db.number("SELECT pml_internal.pml_parses()");
        db.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        db.number("SELECT pml_internal.pml_parses()") - before
    };
    for (count, statement) in [
        (1, "SELECT pml_register('return await mcp.num.one({}) + 1', 'num:two')"),
        // The same once more, and the same code otherwise written.
        (1, "SELECT pml_register('return await mcp.num.one({}) + 1', 'num:two')"),
        (
            1,
            "SELECT pml_register('return (await mcp.num.one({})) + args.n', 'num:sum', parameters_schema => '{\"type\": \"object\"}')",
        ),
        (1, "SELECT pml_update('num:two', 'return await mcp.num.one({}) + 2')"),
        (1, "SELECT pml_update('num:two', 'return await mcp.num.one({}) + 2')"),
        // By hand nobody is trusted to have compiled it.
        (1, "UPDATE pml.capability_records SET code_snippet = 'return 3' WHERE display_name = 'num:two'"),
        (0, "SELECT pml_rename('num:two', description => 'two')"),
        // Once to run it, once to keep it, and no more when it is there already.
        (
            2,
            "SELECT pml_finish((pml_begin('{\"code\": \"return await mcp.num.one({})\"}') ->> 'workflow_id')::uuid, '{\"success\": true}')",
        ),
        (
            1,
            "SELECT pml_finish((pml_begin('{\"code\": \"return await mcp.num.one({})\"}') ->> 'workflow_id')::uuid, '{\"success\": true}')",
        ),
    ] {
        assert_eq!(parses(&mut db, statement), count, "{statement}");
    }
}

/// What follows from the code can't be given in its place, whoever writes.
#[test]
fn what_is_handed_over_as_compiled_is_believed_from_the_extension_only() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'num:one')").unwrap();
    let forged = "jsonb_build_object('linked', 'return 2', 'hash', 'x', 'executable', 'return 666', 'structure', '{}'::jsonb,
        'unresolved', '[]'::jsonb, 'capabilities', '[]'::jsonb, 'tools', '[]'::jsonb)";
    db.batch_execute(&format!(
        "UPDATE pml.capability_records SET code_snippet = 'return 2', structure = {forged} WHERE display_name = 'num:one';
         INSERT INTO pml.capability_records (display_name, code_snippet, structure) VALUES ('num:two', 'return 2', {forged})"
    ))
    .unwrap();
    let executables =
        db.texts("SELECT DISTINCT executable FROM pml.capability_records WHERE display_name LIKE 'num:%'");
    assert_eq!(executables, ["return 2"]);
}
