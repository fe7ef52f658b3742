//! Point 2: every kind of value has a defined outcome, and errors say what, where and at which node.

mod support;

use pml_worker::{Json, Limits, Run};
use serde_json::json;
use support::{pool, run, thrown, tools, value};

#[tokio::test]
async fn every_kind_of_value_becomes_json_or_an_error() {
    let cases = [
        ("null", json!(null)),
        ("undefined", json!(null)),
        (
            "[1.5, -0, 1e300, NaN, -Infinity, 9007199254740991, 5.0]",
            json!([1.5, 0, 1e300, null, null, 9007199254740991_u64, 5]),
        ),
        ("'\\u2028 \\ud83d\\ude00 \\ud800 end'", json!("\u{2028} 😀 \u{fffd} end")),
        ("({ '\\ud800': 1, '__proto__x': 2, '': 3 })", json!({"\u{fffd}": 1, "__proto__x": 2, "": 3})),
        ("JSON.parse('{\"__proto__\": 1}')", json!({"__proto__": 1})),
        ("[1n, -5n, 2n ** 64n]", json!([1, -5, "18446744073709551616"])),
        ("new Date(0)", json!("1970-01-01T00:00:00.000Z")),
        ("new Date(NaN)", json!(null)),
        ("new Map([['a', 1], ['b', new Map()]])", json!({"a": 1, "b": {}})),
        ("new Map([[1, 2], ['b', 3]])", json!([[1, 2], ["b", 3]])),
        ("new Set([1, [2]])", json!([1, [2]])),
        ("new Uint8Array([1, 2, 255])", json!([1, 2, 255])),
        ("new Float64Array([0.5, NaN])", json!([0.5, null])),
        ("new BigInt64Array([1n])", json!([1])),
        ("new Uint8Array([7, 8]).buffer", json!([7, 8])),
        ("new DataView(new Uint8Array([7, 8, 9]).buffer, 1)", json!([8, 9])),
        ("[undefined, () => 1, Symbol('s')]", json!([null, null, null])),
        ("({ a: undefined, b: () => 1, c: Symbol('s'), [Symbol('k')]: 1, d: 1 })", json!({"d": 1})),
        ("/a+/gi", json!("/a+/gi")),
        ("new TypeError('bad')", json!({"name": "TypeError", "message": "bad"})),
        ("Object.assign(new Error('e'), { code: 7 })", json!({"name": "Error", "message": "e", "code": 7})),
        ("[new Number(1), new String('s'), new Boolean(false), Object(2n)]", json!([1, "s", false, 2])),
        ("({ toJSON(key) { return { was: 'x' + key } } })", json!({"was": "x"})),
        ("({ k: { toJSON(key) { return key } } })", json!({"k": "k"})),
        ("new (class Point { constructor() { this.x = 1 } get y() { return 2 } })()", json!({"x": 1})),
        (
            "Object.create({ inherited: 1 }, { own: { value: 2, enumerable: true }, hidden: { value: 3 } })",
            json!({"own": 2}),
        ),
        ("Object.create(null)", json!({})),
        ("new Proxy([1, 2], {})", json!([1, 2])),
        ("new Proxy({ a: 1 }, {})", json!({"a": 1})),
        ("[, 1]", json!([null, 1])),
        ("Object.assign([1], { x: 2 })", json!([1])),
        ("(function () { return arguments })(1, 2)", json!({"0": 1, "1": 2})),
        ("(() => { const shared = { a: 1 }; return [shared, shared] })()", json!([{"a": 1}, {"a": 1}])),
        ("new WeakMap()", json!({})),
        ("Promise.resolve({ then: undefined, ok: 1 })", json!({"ok": 1})),
        ("[Promise.resolve(1)]", json!([{}])),
    ];
    for (expression, expected) in cases {
        assert_eq!(value(&format!("return {expression}")).await, expected, "{expression}");
    }
}

#[tokio::test]
async fn what_json_cannot_hold_is_an_error_that_says_where() {
    let cases = [
        (
            "const a = { list: [{}] }; a.list[0].up = a; return a",
            "the result can't be JSON: it contains itself, at $.list[0].up",
        ),
        (
            "const m = new Map(); m.set('m', m); return m",
            "the result can't be JSON: it contains itself, at $.m",
        ),
        ("return () => 1", "the result can't be JSON: a function has no JSON, at $"),
        ("return Symbol('s')", "the result can't be JSON: a symbol has no JSON, at $"),
        (
            "let a = []; for (let i = 0; i < 200; i++) a = [a]; return a",
            "the result can't be JSON: it is nested deeper than 100 levels",
        ),
        (
            "return { a: [{ get b() { throw new Error('boom') } }] }",
            "boom (while the result was made JSON, at $.a[0])",
        ),
        ("return { toJSON() { throw new RangeError('no') } }", "no (while the result was made JSON, at $)"),
        (
            "return new Proxy({}, { ownKeys() { throw new Error('trap') } })",
            "trap (while the result was made JSON, at $)",
        ),
    ];
    for (code, expected) in cases {
        let error = thrown(run(code).await);
        assert!(error.message.starts_with(expected), "{code}\n{}", error.message);
    }
}

#[tokio::test]
async fn an_error_carries_name_message_and_stack_in_source_lines() {
    let error = thrown(run("const a = 1;\nfunction inner() {\n  null.x;\n}\n\ninner();").await);
    assert_eq!(error.name, "TypeError");
    assert!(error.message.contains("null"), "{}", error.message);
    let frames: Vec<&str> = error.stack.lines().collect();
    assert!(frames[0].starts_with("at inner (code:3:"), "{}", error.stack);
    assert!(frames[1].starts_with("at main (code:6:"), "{}", error.stack);
    assert_eq!(frames.len(), 2, "nothing of the worker: {}", error.stack);

    let error = thrown(run("throw new Error('first line')").await);
    assert_eq!(error.stack, "at main (code:1:11)");
    let error = thrown(run("\nawait mcp.test.echo(1);\nawait mcp.test.fail(1)").await);
    assert!(error.stack.contains("code:3:"), "the line of the call: {}", error.stack);
    assert_eq!(error.target.as_deref(), Some("test:fail"));
}

#[tokio::test]
async fn an_error_has_the_line_of_the_code_that_met_it() {
    for (code, line) in [
        ("const a = 1;\n\nJSON.parse('{\\n\\n\\n x')", Some(3)),
        ("\nawait mcp.test.echo(1);\n\nnull.x", Some(4)),
        ("\n[1].map(\n(x) => x.y.z)", Some(3)),
        ("\nawait mcp.test.fail()", Some(2)),
        ("\nconst f = () => {\n throw new Error('x') };\n[3, 1].sort(f)", Some(3)),
        ("\nnew RegExp('(')", Some(2)),
        ("\neval('1;\\n1;\\n1;\\n1;\\n x.y')", Some(2)),
        // The compiler puts in what gives patterns and thrown values a position.
        ("\n\nthrow __pml.thrown(('no error object'))", Some(3)),
        ("\nconst f = () => {\n throw __pml.thrown(({ code: 5 })) };\nf()", Some(3)),
        ("\nconst f = async () => {\n throw __pml.thrown((5)) };\nawait f()", Some(3)),
        ("\ntry { throw __pml.thrown((1)) } catch (e) {}\nawait Promise.reject(2)", Some(3)),
        ("\nawait new Promise((_, reject) => {\n reject('text') })", Some(3)),
        (
            "const a = [];\na.push(a);\nif (a)\n return __pml.returned((a))\nreturn __pml.returned((1))",
            Some(4),
        ),
        ("\n\nthrow 'no error object'", None),
        ("let z = 1;\n\n0; const { b } = undefined", Some(3)),
        ("let z = 1;\n\n0; const [b] = {}", Some(3)),
        ("const r = await mcp.test.echo(null);\n\n0; const { b: { c } } = { b: r };", Some(3)),
        ("let z = 1;\n\n0; for (const { b } of [null]) z = b", Some(3)),
        ("let z = 1;\nz++;\n0; const {\n b,\n c: { d } } = {};", Some(3)),
        ("let z = 1;\n\n({ z } = null)", Some(3)),
        ("let z = 1;\n\n[z] = {}", Some(3)),
        ("let z = 1;\n\n[null].map(({ b }) => b)", Some(3)),
        ("let z = 1;\n\nconst f = (a, { b }) => b;\nf()", Some(3)),
    ] {
        let error = thrown(run(code).await);
        assert_eq!(error.line, line, "{code}: {} {}", error.message, error.stack);
    }
}

#[tokio::test]
async fn keys_keep_their_order() {
    let outcome =
        run("return { z: 1, a: { y: 1, b: 2 }, m: [{ q: 1, c: await mcp.test.echo({ k: 1, d: 2 }) }] }")
            .await;
    assert_eq!(outcome.result.unwrap().get(), r#"{"z":1,"a":{"y":1,"b":2},"m":[{"q":1,"c":{"k":1,"d":2}}]}"#);
}

#[tokio::test]
async fn code_that_does_not_parse_says_where() {
    let error = thrown(run("const a = 1;\nconst b = ;").await);
    assert_eq!(error.name, "SyntaxError");
    assert!(error.stack.contains("code:2:"), "{}", error.stack);
    assert_eq!(thrown(run("return '\u{0}'").await).name, "SyntaxError");
    assert_eq!(value("return 1 // a comment at the end").await, json!(1));
    assert_eq!(value("const args = 1; let mcp = 2; return args + mcp").await, json!(3));
    assert_eq!(thrown(run("undeclared = 1").await).name, "ReferenceError");
}

#[tokio::test]
async fn anything_may_be_thrown() {
    for (code, message) in [
        ("throw 'text'", "text"),
        ("throw undefined", "undefined"),
        ("throw null", "null"),
        ("throw { code: 7 }", "{\"code\":7}"),
        ("throw 5n", "5"),
        ("const e = new Error('m'); Object.defineProperty(e, 'message', { get() { throw 1 } }); throw e", ""),
        ("throw new Proxy({}, { get() { throw 1 } })", "an object that can't be shown"),
        (
            "class MyError extends Error {} ; throw Object.assign(new MyError('mine'), { name: 'MyError' })",
            "mine",
        ),
    ] {
        assert_eq!(thrown(run(code).await).message, message, "{code}");
    }
}

#[tokio::test]
async fn an_error_names_the_node_that_was_running() {
    let error = thrown(run("__pml.visit('n1'); __pml.branch('n2', true); throw new Error('x')").await);
    assert_eq!(error.node.as_deref(), Some("n2"));
    let code = "await Promise.all([__pml.at('n1', mcp.test.fail)(), __pml.at('n2', mcp.test.echo)()])";
    assert_eq!(thrown(run(code).await).node.as_deref(), Some("n1"));
    assert_eq!(thrown(run("throw new Error('x')").await).node, None);
}

#[tokio::test]
async fn a_megabyte_goes_in_and_comes_out() {
    let rows: Vec<_> = (0..10_000)
        .map(|i| json!({"id": i, "name": format!("row {i}"), "tags": ["a", "b"], "score": 0.5}))
        .collect();
    let args = Json::from(json!(rows));
    assert!(args.get().len() > 500_000);
    let limits = Limits::default();
    let run = Run::new("test", "return args").with_args(args).with_limits(limits);
    assert_eq!(pool().await.run(run, &tools).await.result.unwrap(), json!(rows));
}
