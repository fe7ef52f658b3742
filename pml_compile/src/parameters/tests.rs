//! What each way of using `args` says about a parameter.

use serde_json::{Value as Json, json};

use crate::infer_parameters;

fn schema(code: &str) -> Json {
    infer_parameters(code).unwrap_or_else(|error| panic!("{code}: {error}"))
}

#[test]
fn use_gives_the_type() {
    for (code, expected) in [
        ("args.x.toUpperCase()", json!({ "type": "string" })),
        ("args.x.map(f)", json!({ "type": "array" })),
        ("args.x * 2", json!({ "type": "number" })),
        ("-args.x", json!({ "type": "number" })),
        ("args.x > 5", json!({ "type": "number" })),
        ("args.x > y", json!({ "type": "number" })),
        ("args.x + 'suffix'", json!({ "type": "string" })),
        ("args.x === 'a'", json!({ "type": "string" })),
        ("args.x === true", json!({ "type": "boolean" })),
        ("for (const y of args.x) {}", json!({ "type": "array" })),
        ("[...args.x]", json!({ "type": "array" })),
        ("Object.keys(args.x)", json!({ "type": "object" })),
        ("Math.max(args.x, 1)", json!({ "type": "number" })),
        ("JSON.parse(args.x)", json!({ "type": "string" })),
        ("typeof args.x === 'number'", json!({ "type": "number" })),
        ("f(args.x as string)", json!({ "type": "string" })),
        ("(args.x as string).length", json!({ "type": "string" })),
        ("(args.x as number[]).includes(1)", json!({ "type": "array", "items": { "type": "number" } })),
        ("a[args.x * 2].b", json!({ "type": "number" })),
        ("a[args.x * 2].b()", json!({ "type": "number" })),
        ("f(args.x * 2).b.c", json!({ "type": "number" })),
        ("const x: number = args.x", json!({ "type": "number" })),
        ("args.x.length", json!({})),
        ("mcp.a.b({ y: args.x })", json!({})),
        ("args.x[0].toFixed()", json!({ "type": "array", "items": { "type": "number" } })),
        ("const { x } = args; x.trim()", json!({ "type": "string" })),
        ("const y = args.x; y.trim()", json!({ "type": "string" })),
        ("const { x } = args; f({ x })", json!({})),
        ("args['x'].trim()", json!({ "type": "string" })),
        ("args.x++", json!({ "type": "number" })),
        ("args.x -= y", json!({ "type": "number" })),
        ("args.x += 'a'", json!({ "type": "string" })),
        ("args.x satisfies string", json!({ "type": "string" })),
        ("f(<number>args.x)", json!({ "type": "number" })),
        ("switch (args.x) { case 'a': f(); default: }", json!({ "type": "string" })),
        (
            "for (const { id, name } of args.x) f(id, name)",
            json!({ "type": "array", "items": { "type": "object", "required": ["id", "name"], "properties": { "id": {}, "name": {} } } }),
        ),
        ("if (!args.x) throw new Error('x is missing')", json!({})),
    ] {
        let schema = schema(code);
        assert_eq!(schema["properties"]["x"], expected, "{code}");
        assert_eq!(schema["required"], json!(["x"]), "{code}");
    }
}

#[test]
fn a_fallback_makes_it_optional() {
    for (code, expected) in [
        ("args.x ?? 5", json!({ "type": "number", "default": 5 })),
        ("args.x || 'a'", json!({ "type": "string", "default": "a" })),
        ("const { x = true } = args", json!({ "type": "boolean", "default": true })),
        ("const { x: y = 3 } = args", json!({ "type": "number", "default": 3 })),
        ("args.x?.trim()", json!({ "type": "string" })),
        ("if (args.x) f()", json!({})),
        ("args.x ? 1 : 2", json!({})),
        ("args.x === undefined", json!({})),
        ("'x' in args", json!({})),
        ("args.x ?? f()", json!({})),
        ("args.x ??= 5", json!({ "type": "number", "default": 5 })),
        ("args.x?.()", json!({})),
    ] {
        let schema = schema(code);
        assert_eq!(schema["properties"]["x"], expected, "{code}");
        assert_eq!(schema["required"], Json::Null, "{code}");
    }
}

#[test]
fn a_secret_is_no_default() {
    for code in [
        "args.password ?? 'hunter2'",
        "const { password = 'hunter2' } = args",
        "const { password: p = 'hunter2' } = args",
        "args.password ||= 'hunter2'",
        "args.password ?? 'sk-0123456789'",
    ] {
        let schema = schema(code);
        assert_eq!(schema["properties"]["password"], json!({}), "{code}");
        assert_eq!(schema["required"], Json::Null, "{code}");
    }
}

#[test]
fn what_is_only_set_is_no_parameter() {
    assert_eq!(schema("args.x = 5")["properties"], json!({}));
}

#[test]
fn fields_nest() {
    let schema = schema("args.user.name.trim(); args.user.age ?? 3; args.list[0].id");
    assert_eq!(
        schema["properties"],
        json!({
            "user": {
                "type": "object",
                "required": ["name"],
                "properties": { "name": { "type": "string" }, "age": { "type": "number", "default": 3 } }
            },
            "list": { "type": "array", "items": { "type": "object", "required": ["id"], "properties": { "id": {} } } }
        })
    );
}

#[test]
fn annotations_are_believed() {
    let schema = schema("const { a, b, c }: { a: string; b?: number[]; c: 'x' | 'y' } = args");
    assert_eq!(
        schema["properties"],
        json!({
            "a": { "type": "string" },
            "b": { "type": "array", "items": { "type": "number" } },
            "c": { "type": "string", "enum": ["x", "y"] }
        })
    );
    assert_eq!(schema["required"], json!(["a", "c"]));
}

#[test]
fn other_names_are_no_parameters() {
    let empty = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {} });
    for code in [
        "x.args.y",
        "function f(args) { args.x }",
        "const args = 1; args.x",
        "args[x]",
        "return args",
        "'args.x'",
    ] {
        assert_eq!(schema(code), empty, "{code}");
    }
}
