//! The seeds' examples to the letter, then one test for each way that control can go.

use serde_json::{Value as Json, json};

use crate::{CompileOptions, compile};

fn analyzed(code: &str) -> Json {
    let compiled =
        compile(code, &CompileOptions::default()).unwrap_or_else(|error| panic!("{code}: {error}"));
    serde_json::to_value(&compiled.structure).expect("serializes")
}

/// The edges as `from>to` with the outcome or kind behind a colon.
fn edges(code: &str) -> Vec<String> {
    let structure = analyzed(code);
    let edges = structure["edges"].as_array().expect("edges").iter().map(|edge| {
        let detail = match (&edge["outcome"], edge["type"].as_str()) {
            (Json::String(outcome), _) => format!(":{outcome}"),
            (_, Some("sequence")) => String::new(),
            (_, kind) => format!(":{}", kind.unwrap_or_default()),
        };
        format!(
            "{}>{}{detail}",
            edge["from"].as_str().unwrap_or_default(),
            edge["to"].as_str().unwrap_or_default()
        )
    });
    edges.collect()
}

fn nodes(code: &str) -> Vec<String> {
    let structure = analyzed(code);
    let nodes = structure["nodes"].as_array().expect("nodes").iter();
    nodes.map(|node| node["id"].as_str().unwrap_or_default().to_owned()).collect()
}

fn argument(code: &str, name: &str) -> Json {
    let structure = analyzed(code);
    let last = structure["nodes"].as_array().and_then(|nodes| nodes.last()).cloned().unwrap_or_default();
    last["arguments"][name].clone()
}

#[test]
fn the_seeds_example_of_branches() {
    let mut structure = analyzed(
        r#"const file = await mcp.fs.stat({ path });
if (file.exists) {
  const content = await mcp.fs.read({ path });
  return content;
} else {
  await mcp.fs.create({ path });
  await mcp.fs.write({ path, content: "" });
}"#,
    );
    for node in structure["nodes"].as_array_mut().expect("nodes") {
        node.as_object_mut().expect("object").remove("arguments");
    }
    assert_eq!(
        structure,
        json!({
            "nodes": [
                { "id": "n1", "type": "task", "tool": "fs:stat" },
                { "id": "d1", "type": "decision", "condition": "file.exists" },
                { "id": "n2", "type": "task", "tool": "fs:read" },
                { "id": "n3", "type": "task", "tool": "fs:create" },
                { "id": "n4", "type": "task", "tool": "fs:write" },
            ],
            "edges": [
                { "from": "n1", "to": "d1", "type": "sequence" },
                { "from": "d1", "to": "n2", "type": "conditional", "outcome": "true" },
                { "from": "d1", "to": "n3", "type": "conditional", "outcome": "false" },
                { "from": "n3", "to": "n4", "type": "sequence" },
            ]
        })
    );
}

#[test]
fn the_seeds_patterns() {
    let simple = analyzed(r#"const result = await mcp.fs.read({ path: "config.json" });"#);
    assert_eq!(simple["nodes"][0]["tool"], "fs:read");
    assert_eq!(
        simple["nodes"][0]["arguments"],
        json!({ "path": { "type": "literal", "value": "config.json" } })
    );
    let capability = analyzed("const summary = await capabilities.summarize({ text: content });");
    assert_eq!(capability["nodes"][0]["type"], "capability");
    assert_eq!(capability["nodes"][0]["capabilityId"], "summarize");
    let parallel =
        "const [a, b] = await Promise.all([mcp.api.fetch({ url: urlA }), mcp.api.fetch({ url: urlB })]);";
    assert_eq!(nodes(parallel), ["f1", "n1", "n2", "j1"]);
    assert_eq!(edges(parallel), ["f1>n1", "f1>n2", "n1>j1", "n2>j1"]);
    assert_eq!(edges("if (condition) { await mcp.db.write({ data }); }"), ["d1>n1:true"]);
}

#[test]
fn decisions_lead_to_each_outcome() {
    let switch = "switch (args.a) { case 'x': await mcp.a.b(); break; case 2: await mcp.a.c(); default: await mcp.a.d() } await mcp.a.e()";
    assert_eq!(edges(switch), ["d1>n1:case:x", "d1>n2:case:2", "n2>n3", "d1>n3:default", "n3>n4", "n1>n4"]);
    assert_eq!(
        edges("switch (a) { case 1: mcp.a.b() } mcp.a.c()"),
        ["d1>n1:case:1", "n1>n2", "d1>n2:default"]
    );
    assert_eq!(
        edges("(a ? mcp.a.b() : mcp.a.c()); mcp.a.d()"),
        ["d1>n1:true", "d1>n2:false", "n2>n3", "n1>n3"]
    );
    assert_eq!(edges("a && mcp.a.b(); mcp.a.c()"), ["d1>n1:true", "n1>n2", "d1>n2:false"]);
    assert_eq!(edges("mcp.a.b() || mcp.a.c()"), ["n1>d1", "d1>n2:false"]);
    assert_eq!(edges("x ?? await mcp.a.b()"), ["d1>n1:true"]);
    assert_eq!(nodes("const a = b && c || (d ?? e)"), Vec::<String>::new());
    let else_if = "if (a) mcp.a.b(); else if (b) mcp.a.c(); mcp.a.d()";
    assert_eq!(edges(else_if), ["d1>n1:true", "d1>d2:false", "d2>n2:true", "n1>n3", "n2>n3", "d2>n3:false"]);
}

#[test]
fn an_early_return_ends_its_way() {
    assert_eq!(edges("if (!args.x) return null; await mcp.a.b()"), ["d1>n1:false"]);
    assert_eq!(edges("if (a) throw new Error(await mcp.a.b()); mcp.a.c()"), ["d1>n1:true", "d1>n2:false"]);
}

#[test]
fn loops_contain_what_they_repeat() {
    for code in [
        "for (const x of xs) { await mcp.a.b(x) } mcp.a.c()",
        "for (const x in xs) await mcp.a.b(x); mcp.a.c()",
        "for (let i = 0; i < 3; i++) { await mcp.a.b(i) } mcp.a.c()",
        "while (x) { await mcp.a.b(x) } mcp.a.c()",
        "do { await mcp.a.b(x) } while (x); mcp.a.c()",
        "xs.forEach(async (x) => { await mcp.a.b(x) }); mcp.a.c()",
        "xs.map(x => mcp.a.b(x)); mcp.a.c()",
        "xs.map(function (x) { return mcp.a.b(x) }); mcp.a.c()",
    ] {
        assert_eq!(edges(code), ["l1>n1:contains", "l1>n2"], "{code}");
    }
    assert_eq!(
        edges("for (const x of xs) { if (x) break; await mcp.a.b() } mcp.a.c()"),
        ["l1>d1:contains", "d1>n1:false", "l1>n2", "d1>n2:true"]
    );
    assert_eq!(nodes("for (const x of xs) { sum += x } xs.map(x => x + 1)"), Vec::<String>::new());
    let fan = "await Promise.allSettled(xs.map(async x => { await mcp.a.b(x) })); mcp.a.c()";
    assert_eq!(edges(fan), ["f1>l1", "l1>n1:contains", "l1>j1", "j1>n2"]);
}

#[test]
fn a_failed_try_leads_to_its_catch() {
    let code = "try { await mcp.a.b() } catch (e) { await mcp.a.c() } finally { await mcp.a.d() } mcp.a.e()";
    assert_eq!(edges(code), ["d1>n1", "d1>n2:catch", "n1>n3", "n2>n3", "n3>n4"]);
}

#[test]
fn a_return_leaves_through_finally() {
    assert_eq!(edges("try { return await mcp.a.b() } finally { await mcp.a.c() } mcp.a.d()"), ["n1>n2"]);
    let code = "try { await mcp.a.b() } catch { return } finally { await mcp.a.c() } mcp.a.d()";
    assert_eq!(edges(code), ["d1>n1", "n1>n2", "d1>n2:catch", "n2>n3"]);
    let code = "async function f() { try { return await mcp.a.b() } finally { await mcp.a.c() } } await f(); mcp.a.d()";
    assert_eq!(edges(code), ["n1>n2", "n2>n3"]);
}

#[test]
fn functions_of_the_code_are_followed_where_they_are_called() {
    assert_eq!(
        edges("async function f() { await mcp.a.b() } mcp.a.c(); await f(); mcp.a.d()"),
        ["n2>n1", "n1>n3"]
    );
    assert_eq!(edges("mcp.a.c(); await f(); async function f() { return mcp.a.b() }"), ["n1>n2"]);
    assert_eq!(edges("const f = async () => mcp.a.b(); mcp.a.c(); await f()"), ["n2>n1"]);
    assert_eq!(edges("mcp.a.c(); (async () => { await mcp.a.b() })()"), ["n1>n2"]);
    assert_eq!(
        edges("const f = async (x) => { if (x) await f(x - 1); await mcp.a.b() }; f(3)"),
        ["d1>n1:true", "d1>n1:false"]
    );
    assert_eq!(edges("mcp.a.b().then(x => mcp.a.c(x))"), ["n1>n2"]);
    assert_eq!(nodes("async function never() { await mcp.a.b() }"), ["n1"]);
}

#[test]
fn ids_follow_the_source() {
    assert_eq!(nodes("mcp.a.b(await mcp.a.c())"), ["n1", "n2"]);
    assert_eq!(edges("mcp.a.b(await mcp.a.c())"), ["n2>n1"]);
}

#[test]
fn arguments_say_where_their_values_come_from() {
    for (code, expected) in [
        ("mcp.a.b({ x: 'text' })", json!({ "type": "literal", "value": "text" })),
        (
            "mcp.a.b({ x: { y: [1, -2.5, null, true] } })",
            json!({ "type": "literal", "value": { "y": [1, -2.5, null, true] } }),
        ),
        (
            "const f = await mcp.a.c(); mcp.a.b({ x: f.content })",
            json!({ "type": "reference", "expression": "n1.content" }),
        ),
        (
            "const { content: c } = await mcp.a.c(); mcp.a.b({ x: c })",
            json!({ "type": "reference", "expression": "n1.content" }),
        ),
        (
            "const f = await mcp.a.c(); const g = f.a; mcp.a.b({ x: g[0].b })",
            json!({ "type": "reference", "expression": "n1.a[0].b" }),
        ),
        (
            "const [p, q] = await Promise.all([mcp.a.c(), mcp.a.d()]); mcp.a.b({ x: q.id })",
            json!({ "type": "reference", "expression": "n2.id" }),
        ),
        ("mcp.a.b({ x: args.user.name })", json!({ "type": "parameter", "parameterName": "user.name" })),
        ("const { path: x } = args; mcp.a.b({ x })", json!({ "type": "parameter", "parameterName": "path" })),
        ("mcp.a.b({ x: userPath })", json!({ "type": "parameter", "parameterName": "userPath" })),
        (
            "const f = await mcp.a.c(); mcp.a.b({ x: `a ${f.id} b ${args.n}` })",
            json!({ "type": "template", "template": "a ${n1.id} b ${args.n}" }),
        ),
        ("mcp.a.b({ x: 1 + args.n })", json!({ "type": "expression", "expression": "1 + args.n" })),
        ("const o = { x: 5 }; mcp.a.b(o)", json!({ "type": "literal", "value": 5 })),
        (
            "mcp.a.b({ x: { y: args.n } })",
            json!({ "type": "object", "fields": { "y": { "type": "parameter", "parameterName": "n" } } }),
        ),
        (
            "mcp.a.b({ x: [args.n, 1] })",
            json!({ "type": "array", "items": [{ "type": "parameter", "parameterName": "n" }, { "type": "literal", "value": 1 }] }),
        ),
        (
            "for (const i of args.list) mcp.a.b({ x: i.id })",
            json!({ "type": "reference", "expression": "i.id" }),
        ),
        ("let v = 1; v = 2; mcp.a.b({ x: v })", json!({ "type": "reference", "expression": "v" })),
    ] {
        if code.contains("for (") || code.contains("Promise") {
            let structure = analyzed(code);
            let node = structure["nodes"]
                .as_array()
                .and_then(|nodes| nodes.iter().find(|node| node["tool"] == "a:b"))
                .cloned();
            assert_eq!(node.expect("a:b")["arguments"]["x"], expected, "{code}");
        } else {
            assert_eq!(argument(code, "x"), expected, "{code}");
        }
    }
    assert_eq!(argument("mcp.a.b(args)", "..."), json!({ "type": "parameter", "parameterName": "args" }));
}
