//! Calls that code didn't await, and the lines of errors, as agents see them.

use pml_tests::{
    Ask, Database,
    mcp::{Agent, Era, Proxy, text},
};
use serde_json::{Value, json};

#[test]
fn a_call_that_nobody_awaited_is_told_and_its_failure_keeps_the_code_from_being_saved() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute("SELECT pml_register('return args.n', 'math:same', visibility => 'project')").unwrap();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let execute = |name: &str, code: &str| agent.ask("pml_execute", json!({"code": code, "name": name}));

    let answer = execute("math:left", "const a = 1;\nmcp.math.same({ n: 1 });\nreturn 'done'");
    assert_eq!((&answer["result"], &answer["capabilityName"]), (&json!("done"), &json!("math:left")));
    assert_eq!(answer["warning"], "line 2: `math:same` was not awaited");
    assert_eq!(answer["dag"]["tasks"][0]["success"], true, "{answer}");

    let answer = execute("math:lost", "mcp.nowhere.write({});\nreturn 'done'");
    assert_eq!((&answer["result"], &answer["capabilityName"]), (&json!("done"), &Value::Null));
    let warning = answer["warning"].as_str().unwrap();
    assert!(warning.starts_with("line 1: `nowhere:write` was not awaited and failed: "), "{warning}");
    assert!(warning.contains("Not saved"), "{warning}");
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_records WHERE display_name = 'math:lost'"), 0);

    let answer = execute("math:late", "setTimeout(() =>\n  mcp.math.same({ n: 1 }), 60000);\nreturn 'done'");
    assert_eq!((&answer["result"], &answer["capabilityName"]), (&json!("done"), &Value::Null));
    assert_eq!(
        answer["warning"],
        "line 2: `math:same` was not called: its timer was due after the code had returned. \
         Not saved: await every call, and run it again"
    );

    // Inside a nested capability, and in the answer of a capability that is called as a tool.
    let answer = execute("math:outer", "return await mcp.math.left({})");
    assert_eq!(answer["warning"], "line 2 of `math:left`: `math:same` was not awaited");
    let direct = agent.call("mcp__math__left", json!({}));
    assert_eq!(direct.structured_content, Some(json!({"result": "done"})));
    assert!(text(&direct).contains("line 2: `math:same` was not awaited"), "{}", text(&direct));
}

#[test]
fn calls_that_the_code_left_when_it_threw_are_told() {
    let database = Database::new();
    let mut db = database.connect();
    for (name, code) in [
        ("math:same", "return args.n"),
        ("math:slow", "await new Promise((done) => setTimeout(done, 600000)); return 1"),
        ("math:throws", "mcp.math.same({ n: 1 });\nthrow new Error('inside')"),
    ] {
        db.execute("SELECT pml_register($1, $2, visibility => 'project')", &[&code, &name]).unwrap();
    }
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let tasks = |code: &str| {
        let failed = agent.call("pml_execute", json!({"code": code})).structured_content.unwrap();
        let tasks = failed["dag"]["tasks"].as_array().unwrap().clone();
        let told = |task: &Value| json!([task["name"], task["kind"], task["success"], task["error"]]);
        tasks.iter().map(told).collect::<Vec<_>>()
    };
    let not_made = "it was not made: the code had already ended. Await every call";
    let unknown = "the run ended before its answer came; it may have been carried out";
    assert_eq!(
        tasks("mcp.nowhere.write({});\nmcp.math.same({ n: 1 });\nthrow new Error('boom')"),
        [
            json!(["nowhere:write", "tool", false, not_made]),
            json!(["math:same", "capability", false, not_made])
        ]
    );
    assert_eq!(
        tasks("mcp.math.slow({});\nawait mcp.math.same({ n: 1 });\nthrow new Error('boom')"),
        [json!(["math:slow", "capability", false, unknown]), json!(["math:same", "capability", true, null])]
    );
    tasks("return await mcp.math.throws({})");
    let inner = "SELECT task_results ->> 0 FROM pml.execution_trace WHERE parent_trace_id IS NOT NULL AND NOT success";
    assert!(db.texts(inner).iter().any(|task| task.contains(not_made)), "{:?}", db.texts(inner));
}

#[test]
fn an_error_says_its_line_and_shows_it() {
    let database = Database::new();
    let mut db = database.connect();
    let code = "const a: number = 1;\n\n  const b = JSON.parse(args.text); // here\nreturn b";
    db.execute("SELECT pml_register($1, 'json:read', visibility => 'project')", &[&code]).unwrap();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let shown = "const b = JSON.parse(args.text); // here";

    let failed = agent.call("pml_execute", json!({"code": code, "args": {"text": "{"}}));
    let error = &failed.structured_content.as_ref().unwrap()["error"];
    assert_eq!((&error["line"], &error["excerpt"]), (&json!(3), &json!(shown)), "{error}");
    let failed = agent.call("mcp__json__read", json!({"text": "{"}));
    assert!(text(&failed).ends_with(&format!("\nline 3: {shown}")), "{}", text(&failed));
    let failed = agent.call("pml_execute", json!({"code": "\nreturn await mcp.json.read({ text: '{' })"}));
    let error = &failed.structured_content.as_ref().unwrap()["error"];
    assert_eq!(error["line"], 2, "{error}");
    assert!(error["message"].as_str().unwrap().contains("(line 3)"), "{error}");
    assert_eq!(error["excerpt"], "return await mcp.json.read({ text: '{' })");
}

#[test]
fn what_has_no_position_in_the_engine_says_its_line_too() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let keep = json!({"code": "return null", "name": "no:thing"});
    agent.ask("pml_execute", keep);
    for (code, line) in [
        ("let z = 1;\n\nconst { b } = args.foo;\nreturn b", 3),
        ("const list = args.items\nconst n: number = 1\nconst [first] = list\nreturn first", 3),
        ("const r = await mcp.no.thing({});\n\n\nconst { content } = r;\nreturn content", 4),
        ("const f = (o) => {\n  const { x } = o;\n  return x;\n};\nreturn f()", 2),
        ("const f = (\n  { x }) => x;\nconst n = 1;\nreturn f()", 1),
        ("let n = 0;\n\nfor (const { a } of [{}, null]) n += a;\nreturn n", 3),
        ("let n = 0;\nfor (const x of [[null]])\n  for (const [y] of x) n += y;\nreturn n", 3),
        ("let a;\n\n({ a } = args.foo);\nreturn a", 3),
        ("const x = 1;\n\nreturn null.foo;", 3),
        ("class A {\n  m() {\n    let n = 1;\n    return this.x.y;\n  }\n}\nreturn new A().m()", 4),
        ("const n = 1;\n\nthrow 'text'", 3),
        ("const n = 1,\n  { a } = { a: 2 },\n  [b] = args.none;\nreturn b", 3),
        ("let n: number\n  , m = n\n  , { b } = args.none\nreturn b", 3),
        ("const n = 1;\n\nreturn Promise.reject('text')", 3),
        (
            "const n = 1;\nawait new Promise((_, no) => {\n  setTimeout(() => no('late'), 1);\n});\nreturn n",
            3,
        ),
        ("const n = 1;\nawait new Promise((_, reject) => {\n  reject({ code: n });\n});\nreturn n", 3),
        ("const a: any = { n: 1 };\nif (!args.none) {\n  a.a = a;\n  return [a];\n}\nreturn a", 4),
        ("const f = () => {\n  const a: any[] = [];\n  a.push(a);\n  return a;\n};\n\nreturn f()", 7),
        ("const n = 1;\nconst f = async () => {\n  throw { code: n };\n};\nreturn await f()", 3),
    ] {
        let failed = agent.call("pml_execute", json!({"code": code, "args": {}}));
        let error = &failed.structured_content.as_ref().unwrap()["error"];
        let shown = code.lines().nth(line - 1).unwrap().trim();
        assert_eq!((&error["line"], &error["excerpt"]), (&json!(line), &json!(shown)), "{code}: {error}");
    }
}
