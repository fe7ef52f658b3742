//! pml_begin: a request becomes a plan, or an error that says what to do.

use pml_tests::{Ask, Database, Run};
use postgres::Client;
use serde_json::{Value, json};

fn database() -> Client {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SET client_min_messages = error;
         SELECT pml_register('return args.a + 1', 'math:inc', version_tag => 'v1.0.0',
           parameters_schema => '{\"type\": \"object\", \"required\": [\"a\"], \"properties\": {\"a\": {\"type\": \"number\"}, \"step\": {\"default\": 1}}}');
         SELECT pml_register('return mcp.math.inc({ a: await mcp.fs.count({}) })', 'math:next');
         SELECT pml_register('return [await mcp.math.next({}), await mcp[\"math:inc@v1\"]({ a: 1 })]', 'math:both');
         SELECT pml_register_tools('fs', '[{\"name\": \"count\", \"description\": \"Counts files\"}]')",
    )
    .unwrap();
    db
}

#[test]
fn a_capability_is_called_by_any_spec() {
    let mut db = database();
    let fqdn = db.text("SELECT pml_resolve('math:inc')", &[]).unwrap();
    db.batch_execute("SELECT pml_update('math:inc', 'return args.a + 2', 'v2.0.0')").unwrap();
    for (spec, version, code) in [
        ("math:inc", 2, "return args.a + 2"),
        ("math:inc@v1", 1, "return args.a + 1"),
        ("math:inc@v2.0.0", 2, "return args.a + 2"),
        ("local.default:math:inc@v1.0.0", 1, "return args.a + 1"),
        (&fqdn, 2, "return args.a + 2"),
        ("mcp__math__inc", 2, "return args.a + 2"),
    ] {
        let plan = db.begin(&json!({"capability": spec, "args": {"a": 1}}));
        assert_eq!((&plan["status"], &plan["mode"]), (&json!("run"), &json!("call_by_name")));
        assert_eq!((&plan["name"], &plan["version"]), (&json!("math:inc"), &json!(version)), "{spec}");
        assert_eq!((plan["executable"].as_str(), plan["fqdn"].as_str()), (Some(code), Some(fqdn.as_str())));
        assert_eq!(plan["args"], json!({"a": 1, "step": 1}), "with defaults");
    }
    db.batch_execute("SELECT pml_rename('math:inc', 'math:add_one')").unwrap();
    for request in [
        json!({"capability": "math:inc", "args": {"a": 1}}),
        json!({"tool": "mcp__math__inc", "args": {"a": 1}}),
    ] {
        let plan = db.begin(&request);
        assert_eq!((&plan["name"], &plan["via_alias"]), (&json!("math:add_one"), &json!("math:inc")));
    }
    let plan =
        db.begin(&json!({"tool": "mcp__math__add_one", "args": {"a": 1}, "options": {"timeout": 500}}));
    assert_eq!((&plan["via_alias"], &plan["timeout_ms"]), (&Value::Null, &json!(500)));
}

#[test]
fn only_declared_defaults_are_filled_in() {
    let mut db = database();
    for (index, code) in [
        "const { n }: { n?: number } = args; return n ?? 'none'",
        "return [args.n ?? 1, args.n ?? 2]",
        "return { given: args.n !== undefined, n: args.n ?? 5 }",
        "return ['n' in args, args.n ?? 5]",
        "const { a = { b: 2 } } = args; return a.b ?? 7",
    ]
    .iter()
    .enumerate()
    {
        let name = format!("inferred:c{index}");
        db.execute("SELECT pml_register($1, $2)", &[code, &name]).unwrap();
        assert_eq!(db.begin(&json!({"capability": name}))["args"], json!({}), "{code}");
        let calling = format!("return [await mcp[\"{name}\"]({{}}), await mcp.math.inc({{ a: 1 }})]");
        let plan = db.begin(&json!({"code": calling}));
        let explicit = |name: &str| {
            let all = plan["capabilities"].as_object().unwrap();
            all.values().find(|called| called["name"] == name).unwrap()["parameters_explicit"].clone()
        };
        assert_eq!((explicit(&name), explicit("math:inc")), (json!(false), json!(true)), "{code}");
    }
    let refused =
        db.refusal("SELECT pml_begin('{\"capability\": \"inferred:c0\", \"args\": {\"n\": \"x\"}}')");
    assert_eq!(refused.message(), "Invalid arguments: \"n\" is not of type \"number\"");
}

#[test]
fn what_is_not_there_is_told_as_in_the_documents() {
    let mut db = database();
    for (request, code, message) in [
        (json!({"capability": "non-existent"}), "PM001", "Capability not found: non-existent"),
        (json!({"capability": "math:inc@v9"}), "PM002", "Version v9 not found for math:inc"),
        (
            json!({"capability": "a b"}),
            "PM004",
            "Invalid capability name: \"a b\". Must be alphanumeric with underscores, hyphens, and colons only.",
        ),
        (
            json!({"code": "return 1", "name": "a b"}),
            "PM004",
            "Invalid capability name: \"a b\". Must be alphanumeric with underscores, hyphens, and colons only.",
        ),
        (
            json!({"code": "return 1", "name": "math:inc"}),
            "PM003",
            "Capability name 'math:inc' already exists in scope local.default",
        ),
        (
            json!({"code": "return args.a + 1 // same", "name": "other"}),
            "PM003",
            "This code is already capability \"math:inc\" in scope local.default",
        ),
        (json!({"tool": "mcp__math__none"}), "PM001", "Capability not found: math:none"),
        (json!({"tool": "none"}), "PM008", "Tool not found: none"),
        (json!({"capability": "mcp__math__none"}), "PM001", "Capability not found: mcp__math__none"),
        (json!({"capability": "mcp:shell"}), "22023", "\"pml.std:mcp:shell\" is a server, not a capability"),
    ] {
        let error = db.begin_fails(&request);
        assert_eq!((error.code().code(), error.message()), (code, message), "{request}");
        assert!(error.hint().is_some(), "{request}");
    }
    assert_eq!(
        db.begin_fails(&json!({"tool": "mcp__math__inx"})).hint(),
        Some("Did you mean \"mcp__math__inc\"?")
    );
    assert_eq!(db.number("SELECT count(*) FROM pml.workflow_state"), 0);
}

#[test]
fn a_request_is_one_thing_and_says_what() {
    let mut db = database();
    for (request, message) in [
        (
            json!({"code": "return 1", "capability": "math:inc"}),
            "Give either \"code\" or \"capability\", not both",
        ),
        (
            json!({"code": "return 1", "tool": "mcp__math__inc"}),
            "Give \"tool\" without \"code\", \"source\" and \"capability\"",
        ),
        (json!({}), "Give \"code\" to run, \"capability\" to call, or \"intent\" for suggestions"),
        (
            json!({"intent": "  ", "code": null}),
            "Give \"code\" to run, \"capability\" to call, or \"intent\" for suggestions",
        ),
        (json!({"intent": "x", "name": "y"}), "A \"name\" is given to \"code\""),
        (json!({"intent": "x", "cod": "y"}), "The request has no argument \"cod\""),
        (json!({"intent": 5}), "\"intent\" must be a string"),
        (json!({"capability": "math:inc", "args": [1]}), "\"args\" must be an object"),
        (
            json!({"capability": "math:inc", "args": {"a": "hunter2"}}),
            "Invalid arguments: \"a\" is not of type \"number\"",
        ),
        (json!({"capability": "math:inc"}), "Invalid arguments: \"a\" is missing"),
        (json!({"intent": "x", "options": {"tmeout": 5}}), "options has no argument \"tmeout\""),
        (
            json!({"intent": "x", "options": {"timeout": 0}}),
            "\"timeout\" must be from 1 to 86400000 milliseconds",
        ),
        (json!({"intent": "x", "options": {"timeout": 1e20}}), "\"timeout\" must be an integer"),
        (json!({"intent": "x", "servers": ["a", 1]}), "\"servers\" must be a list of strings"),
        (json!([]), "The request: expected an object, found a list"),
        (json!("x"), "The request: expected an object, found a string"),
    ] {
        let error = db.begin_fails(&request);
        assert_eq!((error.code().code(), error.message()), ("22023", message), "{request}");
        assert!(!format!("{error:?}").contains("hunter2"));
    }
    assert_eq!(db.refusal("SELECT pml_begin(NULL)").code().code(), "22023");
    for code in ["", " ", "return (", "import x from 'y'"] {
        assert_eq!(db.begin_fails(&json!({"code": code})).code().code(), "PM005", "{code}");
    }
    let huge = "x".repeat(1 << 20);
    for key in ["code", "capability", "tool"] {
        db.begin_fails(&json!({key: huge}));
    }
    assert_eq!(db.number("SELECT count(*) FROM pml.workflow_state"), 0);
}

#[test]
fn new_code_is_compiled_and_nothing_is_saved_yet() {
    let mut db = database();
    let plan = db.begin(&json!({"code": "const n: number = await mcp.math.inc(args); return n", "name": "math:again", "intent": "count", "args": {"a": null}}));
    assert_eq!(
        (&plan["mode"], &plan["name"], &plan["fqdn"]),
        (&json!("direct"), &json!("math:again"), &Value::Null)
    );
    assert!(!plan["executable"].as_str().unwrap().contains(": number"));
    assert_eq!(plan["args"], json!({"a": null}), "as they were given");
    assert_eq!(plan["dag"]["nodes"], json!([{"id": "n1", "type": "capability", "capability": "math:inc"}]));
    assert_eq!(plan["capabilities"].as_object().unwrap().len(), 1);
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_records WHERE display_name = 'math:again'"), 0);
    assert_eq!(
        db.number("SELECT count(*) FROM pml.workflow_state WHERE mode = 'direct' AND intent = 'count'"),
        1
    );
}

#[test]
fn everything_that_is_called_comes_along_under_the_key_that_the_code_uses() {
    let mut db = database();
    let plan = db.begin(&json!({"capability": "math:both"}));
    let capabilities = plan["capabilities"].as_object().unwrap();
    assert_eq!(capabilities.len(), 3, "math:next, math:inc that it calls, and math:inc@v1");
    for (key, capability) in capabilities {
        assert_eq!(key.split('@').next(), capability["fqdn"].as_str());
        assert!(capability["executable"].is_string() && capability["parameters_schema"].is_object());
        if key.contains("@v1") {
            assert!(plan["executable"].as_str().unwrap().contains(&format!("mcp[\"{key}\"]")), "{plan}");
        }
    }
    assert_eq!(plan["tools"], json!(["fs:count"]));
    assert!(!plan["dag"].to_string().contains("local.default."), "{}", plan["dag"]);
}

#[test]
fn a_called_capability_that_one_may_not_see_is_left_out() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute("SET pml.actor = 'alice'; SELECT pml_register('return 42', 'secret:answer'); SELECT pml_register('return mcp.secret.answer({})', 'open:ask', visibility => 'project')").unwrap();
    database.create_role("gate", &["pml_proxy"]);
    let mut gate = database.connect_as("gate");
    gate.batch_execute("SET pml.actor = 'bob'").unwrap();
    let plan = gate.begin(&json!({"capability": "open:ask"}));
    assert_eq!(plan["capabilities"], json!({}));
    assert_eq!(plan["dag"]["nodes"][0]["capability"], "unknown:capability");
    assert!(!plan.to_string().contains("return 42") && !plan.to_string().contains("secret:answer"));
}

#[test]
fn a_tool_of_a_server_is_passed_on() {
    let mut db = database();
    let plan = db.begin(&json!({"tool": "mcp__fs__count", "args": {"any": null}}));
    assert_eq!(plan, json!({"status": "tool", "server": "fs", "tool": "count", "args": {"any": null}}));
    assert_eq!(db.number("SELECT count(*) FROM pml.workflow_state"), 0);
}

#[test]
fn an_intent_alone_gets_suggestions() {
    let mut db = database();
    let answer = db.begin(&json!({"intent": "count the files, next"}));
    assert_eq!((&answer["status"], &answer["mode"]), (&json!("suggestions"), &json!("suggestion")));
    let (tool, capability) = (&answer["suggestions"]["tools"][0], &answer["suggestions"]["capabilities"][0]);
    assert_eq!(
        (&tool["name"], &tool["tool"], &tool["description"]),
        (&json!("fs:count"), &json!("mcp__fs__count"), &json!("Counts files"))
    );
    assert_eq!(tool["inputSchema"]["type"], "object");
    assert_eq!(
        (&capability["name"], &capability["tool"], &capability["usageCount"]),
        (&json!("math:next"), &json!("mcp__math__next"), &json!(0))
    );
    assert!(capability["parameters"].is_object() && capability["score"].as_f64().unwrap() > 0.0);
    assert!(!answer.to_string().contains("local.default."));
    let elsewhere = db.begin(&json!({"intent": "count files", "servers": ["github"]}));
    assert_eq!(elsewhere["suggestions"]["tools"], json!([]));
    assert_eq!(
        db.begin(&json!({"intent": "zebra"}))["suggestions"],
        json!({"tools": [], "capabilities": []})
    );
}

#[test]
fn a_name_that_someone_else_holds_unseen_is_taken_and_no_more_is_said() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute("SET client_min_messages = error; SET pml.actor = 'alice'; SELECT pml_register('return 1', 'hush'); SELECT pml_rename('hush', 'quiet'); SELECT pml_register('return 2', 'gone'); SELECT pml_delete('gone')").unwrap();
    database.create_role("gate", &["pml_proxy"]);
    let mut gate = database.connect_as("gate");
    gate.batch_execute("SET pml.actor = 'bob'").unwrap();
    for name in ["hush", "quiet", "gone"] {
        let error = gate.begin_fails(&json!({"code": "return 3", "name": name}));
        assert_eq!(error.code().code(), "PM003");
        let said = format!("{} {:?} {:?}", error.message(), error.detail(), error.hint());
        assert!(
            !said.contains("alice")
                && !said.contains("alias")
                && (name == "quiet" || !said.contains("quiet")),
            "{said}"
        );
    }
    gate.begin(&json!({"code": "return 3", "name": "free"}));
    // In a scope that isn't one's own nothing is said at all.
    database.create_role("guest", &[]);
    let error = database.connect_as("guest").begin_fails(&json!({"code": "return 3", "name": "hush"}));
    assert_eq!(error.code().code(), "PM006");
}

#[test]
fn a_name_called_like_a_tool_is_that_capability() {
    let mut db = database();
    db.batch_execute("SELECT pml_register('return \"impostor\"', 'mcp__math__inc')").unwrap();
    assert_eq!(db.begin(&json!({"capability": "mcp__math__inc"}))["name"], "mcp__math__inc");
    assert_eq!(db.begin(&json!({"tool": "mcp__math__inc", "args": {"a": 1}}))["name"], "math:inc");
}
