//! Which literals become parameters, and which stay.

use crate::{LiftedKind, infer_parameters, lift_literals};

fn lifted(code: &str) -> String {
    lift_literals(code).unwrap_or_else(|error| panic!("{code}: {error}")).code
}

#[test]
fn secrets_leave_the_code() {
    for (code, expected) in [
        ("const API_KEY = 'abcd1234'", "const API_KEY = args.apiKey!"),
        ("mcp.a.b({ token: 'hunter2!' })", "mcp.a.b({ token: args.token! })"),
        ("mcp.a.b({ x: 'sk-0123456789' })", "mcp.a.b({ x: args.x! })"),
        ("f('ghp_0123456789abcdef')", "f(args.secret!)"),
        ("f('0123456789abcdef0123456789abcdef')", "f(args.secret!)"),
        ("const db = 'postgres://u:pw@h/d'", "const db = args.db!"),
        ("const h = { Authorization: 'Bearer abcdef' }", "const h = { Authorization: args.authorization! }"),
    ] {
        assert_eq!(lifted(code), expected);
    }
}

#[test]
fn a_secret_is_found_wherever_a_value_has_a_name() {
    for (code, expected) in [
        ("cfg.apiKey = 'abcd1234'", "cfg.apiKey = args.apiKey!"),
        ("cfg['api-key'] = 'abcd1234'", "cfg['api-key'] = args.apiKey!"),
        ("function f(token = 'abcd1234') {}", "function f(token = args.token!) {}"),
        ("const { token = 'abcd1234' } = cfg", "const { token = args.token! } = cfg"),
        (
            "class A { #token = 'abcd1234'; apiKey = 'efgh5678' }",
            "class A { #token = args.token!; apiKey = args.apiKey! }",
        ),
        ("const key = `-----BEGIN RSA`", "const key = args.key!"),
        ("f('https://x.y/z?q=1&api_key=abcd')", "f(args.secret!)"),
        ("mcp.a.b({ password: args.password ?? 'hunter2' })", "mcp.a.b({ password: args.password })"),
        (
            "const { password = 'hunter2', a: token = 'abcd' } = args",
            "const { password, a: token = 'abcd' } = args",
        ),
        ("const { token: t = 'abcd1234' } = args", "const { token: t } = args"),
    ] {
        assert_eq!(lifted(code), expected);
        assert_eq!(lifted(expected), expected, "lifting twice is lifting once");
    }
    let code = "f(args.password ?? 'hunter2')";
    let literals = lift_literals(code).expect("lifts").literals;
    assert_eq!((literals[0].parameter.as_str(), literals[0].kind), ("password", LiftedKind::Secret));
}

#[test]
fn settings_keep_their_value_as_the_default() {
    let code = "await mcp.http.get({ url: 'https://example.org/api', timeoutMs: 500 })";
    let lifted = lift_literals(code).expect("lifts");
    assert_eq!(
        lifted.code,
        "await mcp.http.get({ url: (args.url ?? 'https://example.org/api'), timeoutMs: (args.timeoutMs ?? 500) })"
    );
    assert_eq!(lifted.literals.len(), 2);
    assert_eq!(lifted.literals[0].kind, LiftedKind::Setting);
    let schema = infer_parameters(&lifted.code).expect("parses");
    assert_eq!(schema["properties"]["url"]["default"], "https://example.org/api");
    assert_eq!(schema["properties"]["timeoutMs"]["default"], 500);
}

#[test]
fn ordinary_literals_stay() {
    for code in [
        "mcp.a.b({ title: 'Hello', n: 3 })",
        "'use strict'",
        "x['sk-0123456789']",
        "switch (x) { case '/tmp/a': y() }",
        "function f(args) { return g({ url: 'https://a.b' }) }",
        "enum E { A = '/etc/x' }",
        "if (a === 1) b('text')",
    ] {
        assert_eq!(lifted(code), code);
    }
}

#[test]
fn names_are_free_and_one_value_is_one_parameter() {
    let code = "f(args.url); g({ url: 'https://a.b' }); h({ url: 'https://a.b' }); i({ url: 'https://c.d' })";
    let expected = "f(args.url); g({ url: (args.url2 ?? 'https://a.b') }); h({ url: (args.url2 ?? 'https://a.b') }); i({ url: (args.url3 ?? 'https://c.d') })";
    assert_eq!(lifted(code), expected);
    assert_eq!(lifted(expected), expected);
}
