//! What each way of using `args` says about a parameter.

use serde_json::{Value as Json, json};

use crate::{CompileOptions, Source, ToolSchema, infer_parameters};

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
        ("args.x > y", json!({ "type": ["number", "string"] })),
        ("args.x + 1", json!({ "type": "number" })),
        // Anything can be added to a text.
        ("args.x + 'suffix'", json!({})),
        ("'prefix' + args.x", json!({})),
        ("`prefix` + args.x", json!({})),
        ("args.x === 'a'", json!({ "type": "string" })),
        ("args.x === true", json!({ "type": "boolean" })),
        ("for (const y of args.x) {}", json!({ "type": "array" })),
        ("[...args.x]", json!({ "type": "array" })),
        ("Object.keys(args.x)", json!({ "type": "object" })),
        ("Math.max(args.x, 1)", json!({ "type": "number" })),
        ("JSON.parse(args.x)", json!({ "type": "string" })),
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
        ("args.x += 'a'", json!({})),
        ("args.x += 1", json!({ "type": "number" })),
        ("args.x satisfies string", json!({ "type": "string" })),
        ("f(<number>args.x)", json!({ "type": "number" })),
        ("switch (args.x) { case 'a': f(); default: }", json!({ "type": "string" })),
        (
            "for (const { id, name } of args.x) f(id, name)",
            json!({ "type": "array", "items": { "type": "object", "properties": { "id": {}, "name": {} } } }),
        ),
        ("if (!args.x) throw new Error('x is missing')", json!({})),
        ("Math.max(...args.x)", json!({ "type": "array", "items": { "type": "number" } })),
        // What a string has too says nothing.
        ("args.x[0].toUpperCase() + args.x.slice(1)", json!({})),
        ("const [first] = args.x; f(first)", json!({})),
        // Elements of an array need not be alike.
        ("const [name, count = 2] = args.x; name.trim()", json!({})),
        ("args.x[0].a.trim(); args.x[1] * 2", json!({ "type": "array" })),
        ("+args.x", json!({})),
        ("args.x === null ? 1 : args.x.trim()", json!({ "type": ["null", "string"] })),
    ] {
        let schema = schema(code);
        assert_eq!(schema["properties"]["x"], expected, "{code}");
    }
}

#[test]
fn what_the_code_can_not_do_without_is_required() {
    for code in [
        "args.x.y",
        "args.x.y.z",
        "args.x.length",
        "args.x[0]",
        "args.x.map(f)",
        "args.x()",
        "[...args.x]",
        "f(...args.x)",
        "for (const y of args.x) {}",
        "'k' in args.x",
        "JSON.parse(args.x)",
        "Object.keys(args.x)",
        "const { x: { y } } = args",
        "const { y } = args.x",
        "const [y] = args.x",
        "const y = args.x; y.trim()",
        "const { x } = args; x.trim()",
        "const a = args; a.x.trim()",
        "if (f()) g(); args.x.y",
        "if (!args.x) throw new Error('x is missing')",
        "if (args.x === undefined) { throw new Error('x is missing') }",
        "if (typeof args.x !== 'string') throw new Error('no')",
        "if (!args.y || !args.x) throw new Error('no'); args.y ?? 1",
        "f(args.x as string)",
        "f(args.x!)",
        "const x: number = args.x",
        "const { x }: { x: string } = args",
        "type A = { x: string }; const a = args as A; f(a.x)",
        "interface A { x: string } const a: A = args; f(a.x)",
        "interface B { x: string } interface A extends B { y?: 1 } const { x } = args as A",
        "(args as { x: number }).x",
    ] {
        let required = schema(code)["required"].clone();
        assert!(required.as_array().is_some_and(|names| names.contains(&json!("x"))), "{code}: {required}");
    }
}

#[test]
fn what_it_can_do_without_is_not() {
    for code in [
        "mcp.a.b({ y: args.x })",
        "const { x } = args; return mcp.a.b({ x })",
        "return { x: args.x }",
        "typeof args.x === 'number'",
        "args.x === 'fast'",
        "args?.x",
        "Boolean(args.x)",
        "args.x ?? f()",
        "if (args.x) f()",
        "'x' in args",
        "!args.x",
        "`${args.x}`",
        "args.x + 1",
        "args.x * 2",
        "return args.x > 1",
        "args.x?.y",
        "args.x?.y.z",
        "args.x && args.x.y",
        "args.x ? args.x.y : 1",
        "if (args.mode === 'a') args.x.y",
        "if (args.mode === 'a') return 1; args.x.y",
        "switch (args.mode) { case 'a': args.x.y }",
        "for (const y of z) args.x.y",
        "while (f()) args.x.y",
        "try { args.x.y } catch {}",
        "list.map((y) => args.x.y)",
        "function f() { return args.x.y }",
        "const { x = 1 } = args",
        "const { x = 1 }: { x: number } = args",
        "const { x: { y } = {} } = args",
        "const { y } = args.x ?? {}",
        "const { x }: { x?: number } = args",
        "(args as { x?: number }).x",
        "const a = args as { x: string | undefined }; f(a.x)",
        "const { x } = args as Partial<{ x: string }>",
        "f(args.x as any)",
        "f(args.x as string | undefined)",
        "type A = { x?: A | A | A }; f((args as A).x)",
        "f?.(args.x.y)",
        "f?.g.h(args.x.y)",
        "f?.[args.x.y]",
        "const { y = args.x.z } = f()",
        "const [y = args.x.z] = f()",
        "let y = f(); y ||= args.x.z",
        "let y = f(); y ??= args.x.z",
        "do { if (f()) break; args.x.y } while (g())",
        "const { x = 1 } = args; if (!x) throw new Error('zero')",
        "args.x ??= 5; if (!args.x) throw new Error('zero')",
        "args.x = args.x || 5; if (!args.x) throw new Error('zero')",
        "if (args.hasOwnProperty('x')) f(args.x.y)",
        "const a = args as { kind: 'a'; x: number } | { kind: 'b'; y: string }; f(a.x)",
        "export interface A { x?: string } const a = args as A; if (a.x) f(a.x.trim())",
    ] {
        let schema = schema(code);
        assert!(schema["properties"].get("x").is_some(), "{code}: {schema}");
        let names = schema["required"].as_array().cloned().unwrap_or_default();
        assert!(!names.contains(&json!("x")), "{code}: {schema}");
    }
}

#[test]
fn what_asks_for_the_type_takes_any() {
    for code in [
        "typeof args.x === 'string' ? JSON.parse(args.x) : args.x",
        "Array.isArray(args.x) ? args.x.map(f) : 1",
        "args.x instanceof Array ? args.x.map(f) : 1",
        "const kind = typeof args.x; kind === 'string' ? args.x.trim() : 1",
        "['string'].includes(typeof args.x) ? args.x.trim() : 1",
    ] {
        assert_eq!(schema(code)["properties"]["x"], json!({}), "{code}");
    }
}

#[test]
fn unknown_arguments_are_allowed_only_where_the_whole_is_handed_on() {
    for (code, is_closed) in [
        ("return args.a", true),
        ("return 1", true),
        ("const { a, b: c = 1 } = args; return a", true),
        ("const a = args; return a.b", true),
        ("const { a } = args ?? {}; return a", true),
        ("if (args && 'a' in args && args !== null) f(args?.b, !args)", true),
        ("const { a } = args as { a: 1 }; f(a)", true),
        ("return args", false),
        ("f(args)", false),
        ("return { ...args }", false),
        ("return args[key]", false),
        ("const { a, ...rest } = args", false),
        ("const a = args; f(a)", false),
        ("let a = args; a = f(a)", false),
        ("return { args }", false),
        ("for (const k in args) f(k)", false),
    ] {
        let closed = schema(code)["additionalProperties"] == json!(false);
        assert_eq!(closed, is_closed, "{code}");
    }
}

fn with_tool(code: &str) -> Json {
    let input = json!({
        "type": "object", "required": ["path"], "additionalProperties": false,
        "properties": {
            "path": { "type": "string" }, "head": { "type": "integer" }, "tags": { "type": "array", "items": { "type": "string" } },
            "options": { "type": "object", "required": ["mode"], "properties": { "mode": { "type": ["string", "null"] } } },
        },
    });
    let schemas = [("fs:read".to_owned(), ToolSchema { input, ..ToolSchema::default() })].into();
    let options = CompileOptions { schemas, ..CompileOptions::default() };
    json!(Source::parse(code).unwrap().compile(&options).unwrap().parameters)
}

#[test]
fn the_schema_of_a_tool_says_what_it_gets() {
    for (code, properties, required) in [
        (
            "return mcp.fs.read({ path: args.dir, head: args.n })",
            json!({ "dir": { "type": "string" }, "n": { "type": "integer" } }),
            json!(["dir"]),
        ),
        (
            "const { path } = args; return mcp.fs.read({ path })",
            json!({ "path": { "type": "string" } }),
            json!(["path"]),
        ),
        (
            "return mcp.fs.read({ path: args.a ?? 'x' })",
            json!({ "a": { "type": "string", "default": "x" } }),
            Json::Null,
        ),
        (
            "if (args.b) return mcp.fs.read({ path: args.a })",
            json!({ "a": { "type": "string" }, "b": {} }),
            Json::Null,
        ),
        (
            "return mcp.fs.read({ path: '/', tags: [args.a] })",
            json!({ "a": { "type": "string" } }),
            Json::Null,
        ),
        (
            "return mcp.fs.read({ path: '/', head: args.a * 2 })",
            json!({ "a": { "type": "number" } }),
            Json::Null,
        ),
        (
            "return mcp.fs.read({ path: args.a as number })",
            json!({ "a": { "type": "number" } }),
            json!(["a"]),
        ),
        ("return mcp.fs.read({ path: `${args.a}.txt` })", json!({ "a": {} }), Json::Null),
    ] {
        let schema = with_tool(code);
        assert_eq!((&schema["properties"], &schema["required"]), (&properties, &required), "{code}");
    }
    let nullable = with_tool("return mcp.fs.read({ path: '/', options: { mode: args.a } })");
    assert_eq!(nullable["properties"]["a"], json!({ "type": ["null", "string"] }));
    let whole = with_tool("return mcp.fs.read(args)");
    assert_eq!(whole["required"], json!(["path"]));
    assert_eq!(whole["properties"]["head"], json!({ "type": "integer" }));
    assert_eq!(whole["additionalProperties"], json!(false));
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
fn a_default_that_the_type_refuses_is_none() {
    for (code, expected) in [
        ("const { x }: { x?: number } = args; return x ?? 'none'", json!({ "type": "number" })),
        ("const { x }: { x?: number } = args; return x || 'all'", json!({ "type": "number" })),
        ("const { x }: { x?: 'a' | 'b' } = args; x ?? 'c'", json!({ "type": "string", "enum": ["a", "b"] })),
        (
            "const { x }: { x?: 'a' | 'b' } = args; x ?? 'b'",
            json!({ "type": "string", "enum": ["a", "b"], "default": "b" }),
        ),
        (
            "const { x = ['a'] }: { x?: number[] } = args",
            json!({ "type": "array", "items": { "type": "number" } }),
        ),
        (
            "const { x = {} }: { x?: { a: number } } = args",
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "number" } } }),
        ),
        (
            "const { x }: { x: Partial<{ a: string }> } = args; return x.a ?? 1",
            json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
        ),
        (
            "const { x }: { x?: number | null } = args; x ?? 1",
            json!({ "type": ["null", "number"], "default": 1 }),
        ),
    ] {
        assert_eq!(schema(code)["properties"]["x"], expected, "{code}");
    }
    let of_tool = |code| with_tool(code)["properties"]["x"].clone();
    assert_eq!(of_tool("mcp.fs.read({ path: '/', head: args.x ?? 'all' })"), json!({ "type": "integer" }));
    assert_eq!(of_tool("mcp.fs.read({ path: '/', head: args.x ?? 1.5 })"), json!({ "type": "integer" }));
    let fits = json!({ "type": "integer", "default": 2 });
    assert_eq!(of_tool("mcp.fs.read({ path: '/', head: args.x ?? 2 })"), fits);
}

#[test]
fn reads_that_fall_back_to_different_values_show_no_default() {
    for (code, expected) in [
        ("[args.x ?? 1, args.x ?? 1]", json!({ "type": "number", "default": 1 })),
        ("[args.x ?? 1, args.x ?? 2]", json!({ "type": "number" })),
        ("[args.x ?? 1, args.x ?? null]", json!({ "type": "number" })),
        ("[args.x ?? f(), args.x ?? 1]", json!({ "type": "number" })),
        ("[args.x ?? 1, args.x ?? 2, args.x ?? 1]", json!({ "type": "number" })),
        (
            "if (args.q) { const { x = 1 } = args; return x } const { x = 2 } = args; return x",
            json!({ "type": "number" }),
        ),
        ("const { x = args.e } = args; return x ?? 0", json!({ "type": "number" })),
    ] {
        assert_eq!(schema(code)["properties"]["x"], expected, "{code}");
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
            "list": { "type": "array", "items": { "type": "object", "properties": { "id": {} } } }
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
fn alternatives_in_a_type_are_all_allowed() {
    let schema = schema(
        "const a = args as { auto: 'auto' | number; open: 'x' | string; none: string | null; few: 'a' | 'b' | null;
           one: { p: string; q: { r: 1 } } | { p: number; q: { s: 1 } } }; f(a.one)",
    );
    assert_eq!(
        schema["properties"],
        json!({
            "auto": { "type": ["number", "string"] },
            "open": { "type": "string" },
            "none": { "type": ["null", "string"] },
            "few": { "type": ["null", "string"], "enum": ["a", "b", null] },
            "one": {
                "type": "object",
                "required": ["p", "q"],
                "properties": {
                    "p": { "type": ["number", "string"] },
                    "q": { "type": "object", "properties": { "r": { "type": "number" }, "s": { "type": "number" } } }
                }
            }
        })
    );
    assert_eq!(schema["required"], json!(["auto", "one", "open"]));
}

#[test]
fn every_kind_of_type_allows_what_it_means() {
    for (declared, expected, is_required) in [
        ("number | null", json!({ "type": ["null", "number"] }), false),
        ("string[] | null", json!({ "type": ["array", "null"], "items": { "type": "string" } }), false),
        ("number | undefined", json!({ "type": "number" }), false),
        ("1 | 2", json!({ "type": "number" }), true),
        ("'a' | 'b'", json!({ "type": "string", "enum": ["a", "b"] }), true),
        ("'a' | 'b' | undefined", json!({ "type": "string", "enum": ["a", "b"] }), false),
        ("'a' | `b${string}`", json!({ "type": "string" }), true),
        ("true | 'a'", json!({ "type": ["boolean", "string"] }), true),
        ("unknown", json!({}), false),
        ("any", json!({}), false),
        ("(any)", json!({}), false),
        ("any | string", json!({}), false),
        ("string | (() => void)", json!({}), true),
        ("Date", json!({}), true),
        ("string | Date", json!({}), true),
        ("Record<string, number>", json!({ "type": "object" }), true),
        ("{ [key: string]: number }", json!({ "type": "object" }), true),
        ("object", json!({ "type": "object" }), true),
        ("readonly string[]", json!({ "type": "array", "items": { "type": "string" } }), true),
        ("ReadonlyArray<string>", json!({ "type": "array", "items": { "type": "string" } }), true),
        ("[string, number]", json!({ "type": "array", "items": { "type": ["number", "string"] } }), true),
        ("readonly [a: string]", json!({ "type": "array", "items": { "type": "string" } }), true),
        ("[string, ...number[]]", json!({ "type": "array", "items": {} }), true),
        ("[string?]", json!({ "type": "array", "items": { "type": "string" } }), true),
        ("[any, string]", json!({ "type": "array", "items": {} }), true),
        ("[]", json!({ "type": "array" }), true),
        ("any[] | string[]", json!({ "type": "array", "items": {} }), true),
        ("string | string[]", json!({ "type": ["array", "string"], "items": { "type": "string" } }), true),
        (
            "{ a: number } & { b?: string }",
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "number" }, "b": { "type": "string" } } }),
            true,
        ),
        (
            "{ id: string } & ({ k: 'a'; x: number } | { k: 'b'; y: number })",
            json!({ "type": "object", "required": ["id", "k"], "properties": {
                "id": { "type": "string" }, "k": { "type": "string", "enum": ["a", "b"] },
                "x": { "type": "number" }, "y": { "type": "number" } } }),
            true,
        ),
        (
            "{ k: 'a'; x: number } | { k: 'b'; x?: number }",
            json!({ "type": "object", "required": ["k"], "properties": {
                "k": { "type": "string", "enum": ["a", "b"] }, "x": { "type": "number" } } }),
            true,
        ),
        ("{ k: 'a' } | { k?: any }", json!({ "type": "object", "properties": { "k": {} } }), true),
        ("{ k: 'a' } | Record<string, string>", json!({ "type": "object", "properties": { "k": {} } }), true),
        ("Record<string, string> | { k: 'a' }", json!({ "type": "object", "properties": { "k": {} } }), true),
    ] {
        let code = format!("const a = args as {{ x: {declared} }}; return a.x");
        let schema = schema(&code);
        assert_eq!(schema["properties"]["x"], expected, "{declared}");
        assert_eq!(schema["required"] == json!(["x"]), is_required, "{declared}: {schema}");
    }
}

#[test]
fn a_union_of_objects_requires_what_all_of_them_have() {
    let schema = schema(
        "type A = { k: 'a'; x: number } | { k: 'b'; y: number };
         const t = args as A; return t.k === 'a' ? t.x : t.y",
    );
    assert_eq!(schema["required"], json!(["k"]));
    assert_eq!(
        schema["properties"],
        json!({
            "k": { "type": "string", "enum": ["a", "b"] },
            "x": { "type": "number" },
            "y": { "type": "number" },
        })
    );
}

#[test]
fn an_interface_has_the_members_of_all_that_it_extends() {
    let schema = schema(
        "type D = { d: 1 }; interface C extends D { c?: 1 } interface B extends C { b: 1 }
         interface A extends B { a: 1 } const { a } = args as A; return a",
    );
    assert_eq!(schema["required"], json!(["a", "b", "d"]));
    assert_eq!(schema["properties"]["c"], json!({ "type": "number" }));
}

#[test]
fn exported_types_count() {
    let schema = schema("export type A = { n: number }; export interface B { s?: string } f(args as A & B)");
    assert_eq!(schema["properties"], json!({ "n": { "type": "number" }, "s": { "type": "string" } }));
    assert_eq!(schema["required"], json!(["n"]));
}

#[test]
fn what_every_object_has_is_no_parameter() {
    for code in ["args.hasOwnProperty(key)", "args.toString()", "args.constructor.name"] {
        let schema = schema(code);
        assert_eq!((&schema["properties"], &schema["required"]), (&json!({}), &Json::Null), "{code}");
    }
    let schema = schema("args.x.constructor.name");
    assert_eq!(schema["properties"]["x"], json!({}));
}

#[test]
fn one_element_says_nothing_about_the_others() {
    let schema = schema("args.x[0].y.z");
    assert_eq!(schema["required"], json!(["x"]));
    assert_eq!(schema["properties"]["x"]["items"].get("required"), None, "{schema}");
}

#[test]
fn other_names_are_no_parameters() {
    for code in [
        "x.args.y",
        "function f(args) { args.x }",
        "const args = 1; args.x",
        "args[x]",
        "return args",
        "'args.x'",
    ] {
        assert_eq!(schema(code)["properties"], json!({}), "{code}");
    }
}

#[test]
fn what_the_code_assigns_first_is_not_required() {
    for code in [
        "args.x = 3; return args.x.length",
        "args.x = 'a'; return args.x.trim()",
        "if (f()) args.x = 'a'; return args.x.trim()",
        "f(args.x); args.x = 'a'; return args.x.trim()",
        "Object.assign(args, { x: 'a' }); return args.x.trim()",
        "const x = 'a'; Object.assign(args, g, { y: 1, x }); return args.x.trim()",
        "args.x = {}; args.x.y.z = 1",
    ] {
        assert_eq!(schema(code)["required"], json!(null), "{code}");
        assert_eq!(schema(code)["properties"]["x"]["type"], json!(null), "{code}");
    }
    for code in [
        "args.x = args.x.trim(); return args.x.length",
        "args.x.trim(); args.x = 1; return args.x",
        "Object.assign(args, { x: args.x.trim() }); return args.x",
        "Object.assign(y, { x: 1 }); return args.x.trim()",
    ] {
        assert_eq!(schema(code)["required"], json!(["x"]), "{code}");
        assert_eq!(schema(code)["properties"]["x"], json!({ "type": "string" }), "{code}");
    }
}

#[test]
fn a_local_function_that_is_called_with_args_says_what_it_takes() {
    let typed = "{ path, n = 3 }: { path: string; n?: number }";
    for code in [
        format!("async function main({typed}) {{ return f(path, n) }} return main(args)"),
        format!("return await main(args); async function main({typed}) {{ return f(path, n) }}"),
        format!("const main = async ({typed}) => f(path, n); return await main(args)"),
        format!("const main = function ({typed}) {{ return f(path, n) }}; return main(args)"),
        format!("const {typed} = args; return f(path, n)"),
    ] {
        let schema = schema(&code);
        assert_eq!(
            schema["properties"],
            json!({ "path": { "type": "string" }, "n": { "type": "number", "default": 3 } }),
            "{code}"
        );
        assert_eq!(schema["required"], json!(["path"]), "{code}");
        assert_eq!(schema["additionalProperties"], json!(false), "{code}");
    }
    for code in [
        format!("let main = async ({typed}) => f(path, n); main = g; return await main(args)"),
        format!("if (y) {{ const main = ({typed}) => 1 }} return main(args)"),
        "const main = ({ path, ...rest }) => rest; return main(args)".to_owned(),
        "const main = (input) => input.path.trim(); return main(args)".to_owned(),
        format!("const main = ({typed}) => path; return y ? main(args) : 1"),
    ] {
        let schema = schema(&code);
        assert_eq!(schema["required"], json!(null), "{code}");
    }
    let open = schema("const main = ({ path, ...rest }) => rest; return main(args)");
    assert_eq!(open["additionalProperties"], json!(null));
}
