//! Required parameters: never those that a successful run lacked; unknown ones are reported with the nearest name.

use pml_tests::{Ask, Database, Run};
use serde_json::json;

#[test]
fn what_worked_when_it_was_made_works_by_name() {
    let mut db = Database::new().connect();
    db.batch_execute(
        r#"SELECT pml_register_tools('filesystem', '[{"name": "read_text_file", "inputSchema": {"type": "object",
             "required": ["path"], "properties": {"path": {"type": "string"}, "head": {"type": "number"}}}}]')"#,
    )
    .unwrap();
    for (name, code, args) in [
        (
            "a:head",
            "return mcp.filesystem.read_text_file({ path: args.path, head: args.head })",
            json!({"path": "x"}),
        ),
        ("a:typeof", "return typeof args.n === 'number' ? args.n : 1", json!({})),
        ("a:mode", "return args.mode === 'fast'", json!({})),
        ("a:optional", "return args?.opt", json!({})),
        ("a:boolean", "return Boolean(args.a)", json!({})),
        ("a:type", "type Args = { n?: number }; const { n } = args as Args; return n", json!({})),
        // What the code looks as if it needed, and the run lacked or gave otherwise.
        ("a:lacked", "try { return args.list.map((x) => x) } finally { return 1 }", json!({})),
        ("a:needed", "const n: number = args.n; return n + args.other.length", json!({"other": 5})),
        ("a:unused", "return args.a", json!({"a": 1, "b": 2})),
    ] {
        let answer = db.run(&json!({"code": code, "name": name, "args": args}), &json!(1));
        assert_eq!(answer["capabilityName"], name, "{answer}");
        let plan = db.begin(&json!({"capability": name, "args": args}));
        assert_eq!(plan["args"], args, "{name}");
    }
    let schema = db.text("SELECT pml_whois('a:head') -> 'parameters_schema' ->> 'required'", &[]).unwrap();
    assert_eq!(schema, r#"["path"]"#);
    let type_of = "SELECT pml_whois('a:head') #>> '{parameters_schema,properties,path,type}'";
    assert_eq!(db.text(type_of, &[]).unwrap(), "string");
}

#[test]
fn an_unknown_argument_is_refused_with_the_nearest_name() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return args.path ?? args.encoding', 'a:read')").unwrap();
    let error = db.refusal(r#"SELECT pml_begin('{"capability": "a:read", "args": {"pth": "x"}}')"#);
    assert_eq!(error.message(), "Invalid arguments: \"pth\" is not an argument");
    assert_eq!(error.hint(), Some("Did you mean \"path\"? Optional: encoding, path."));
    // Code that hands its arguments on takes any.
    db.batch_execute("SELECT pml_register('return args', 'a:echo')").unwrap();
    assert_eq!(db.begin(&json!({"capability": "a:echo", "args": {"any": 1}}))["args"], json!({"any": 1}));
}
