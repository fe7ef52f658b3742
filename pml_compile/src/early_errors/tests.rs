use crate::{CompileError, CompileOptions, ErrorKind, compile};

fn check(code: &str) -> Result<(), CompileError> {
    compile(code, &CompileOptions::default()).map(drop)
}

/// Refused where the second line has its `¦`, with a part of the message.
fn refused(cases: &[(&str, &str)]) {
    for (code, message) in cases {
        let column = 1 + code.find('¦').map(|at| code[..at].chars().count()).expect(code);
        let code = format!("const é = 1;\n{}", code.replace('¦', ""));
        let error = check(&code).expect_err(&code);
        assert_eq!((error.kind, error.line, error.column), (ErrorKind::Syntax, 2, column), "{code}: {error}");
        assert!(error.message.contains(message), "{code}: {error}");
        assert!(error.hint.is_some(), "{code}");
    }
}

fn accepted(cases: &[&str]) {
    for code in cases {
        check(code).unwrap_or_else(|error| panic!("{code}: {error}"));
    }
}

#[test]
fn parameters_have_names_of_their_own() {
    let cases = [
        "(a, ¦a) => 1",
        "function f(a, { ¦a }) {}",
        "function f([a, ¦a]) {}",
        "function f(a, ...¦a) {}",
        "({ m(a, ¦a) {} })",
        "({ set x([a, ¦a]) {} })",
        "class A { m(a, ¦a) {} }",
        "class A { constructor(private a, ¦a) {} }",
        "async (a, [b, { c: ¦a }]) => 1",
        "const f = <T>(a: T, ¦a: T) => 1",
    ];
    refused(&cases.map(|code| (code, "`a` is already declared on line 2")));
    accepted(&[
        "(a, b) => (a) => 1",
        "function f(this: A, a) {}",
        "function f(a): void; function f(a, b) {}",
    ]);
}

#[test]
fn a_scope_declares_a_name_once() {
    let cases = [
        "let a; let ¦a",
        "let a; var ¦a",
        "var a; let ¦a",
        "const a = 1; { { var ¦a } }",
        "{ { var a } let ¦a }",
        "let a; function ¦a() {}",
        "function a() {} let ¦a",
        "{ function a() {} function ¦a() {} }",
        "{ function a() {} var ¦a }",
        "class a {} class ¦a {}",
        "class a {} enum ¦a {}",
        "function f(a) { let ¦a }",
        "(a) => { const ¦a = 1 }",
        "({ m(a) { class ¦a {} } })",
        "try {} catch (a) { let ¦a }",
        "try {} catch ([a]) { var ¦a }",
        "try {} catch ([a, ¦a]) {}",
        "let a; try {} catch (a) { var ¦a }",
        "for (let a, ¦a;;) {}",
        "for (const a of b) { var ¦a }",
        "let [a, ¦a] = b",
        "switch (x) { case 1: let a; default: let ¦a }",
        "class A { static { let a; var ¦a } }",
    ];
    refused(&cases.map(|code| (code, "`a` is already declared on line 2")));
    accepted(&[
        "var a; var a; function a() {} function a() {}",
        "function f(a) { var a; function a() {} { let a } }",
        "let a; { let a; (a) => { let b; { let a } } }",
        "let a; () => { var a }",
        "try {} catch (a) { var a }",
        "for (let a;;) { let a }",
        "let args = 1; const mcp = 2; var capabilities",
        "x = function a() { let a }; x = class a { m() { let a } }",
        "enum E { A } enum E { B = 1 } var E",
        "interface A {} interface A {} type B = 1; declare let A: B; let B = 1",
        "function f(): void; function f(a?) {} { function g(): void; function g(a?) {} }",
        "class A {} interface A {} declare class B {} const B = 1",
    ]);
}

#[test]
fn super_belongs_to_methods() {
    refused(&[
        ("¦super.x", "only allowed in methods"),
        ("function f() { ¦super.x }", "only allowed in methods"),
        ("({ m: () => ¦super.x })", "only allowed in methods"),
        ("class A { m() { return function () { ¦super.x } } }", "only allowed in methods"),
        ("¦super()", "constructor"),
        ("class A { constructor() { ¦super() } }", "constructor"),
        ("class A extends B { m() { ¦super() } }", "constructor"),
        ("class A extends B { x = ¦super() }", "constructor"),
        ("class A { static { ¦super() } }", "constructor"),
    ]);
    accepted(&[
        "class A extends B { constructor() { super(); (() => super.x)() } x = super.y; static { super.z } }",
        "({ m() { return () => super.x }, get y() { return super.y }, set y(v) { super.y = v } })",
        "class A extends B { constructor() { const f = () => super(); f() } }",
    ]);
}

#[test]
fn private_names_belong_to_a_class() {
    refused(&[
        ("this.¦#a", "`#a`"),
        ("class A { m() { this.¦#b } }", "`#b`"),
        ("class A { m() { ¦#a in this } }", "`#a`"),
        ("class A { #a; ¦#a }", "already"),
        ("class A { get #a() {} get ¦#a() {} }", "already"),
        ("class A { static get #a() {} set ¦#a(x) {} }", "already"),
        ("class A { get #a() {} set #a(x) {} ¦#a }", "already"),
        ("class A { #a; m() { delete this.¦#a } }", "deleted"),
        ("class A { #a; m() { delete (this?.¦#a) } }", "deleted"),
        ("class A { #a; m() { return ¦1 + #a in this } }", "to the left of `in`"),
    ]);
    accepted(&[
        "class A { #a = 1; m() { class B { n(a: A) { return a.#a } } return #a in this && this?.#a } }",
        "class A { get #a() {} set #a(x) {} #b(): void; #b() {} static #c() {} [this.#b] }",
    ]);
}

#[test]
fn literals_are_right() {
    refused(&[
        ("x = ¦/(/", "invalid regular expression: Unterminated capturing group"),
        ("x = ¦/a/uv", "regular expression"),
        ("x = ¦/a**/", "regular expression"),
        ("x = ¦/(?<a>.)(?<a>.)/", "regular expression"),
        ("x = ¦/[b-a]/", "regular expression"),
        ("x = ¦'\\8'", "escape"),
        ("x = ¦'\\08'", "escape"),
        ("x = `¦\\9${1}`", "escape"),
        ("x = { __proto__: 1, ¦'__proto__': 2 }", "`__proto__`"),
        ("({ ¦eval } = a)", "`eval`"),
        ("const { ¦arguments = 1 } = a", "`arguments`"),
        ("({ ¦static })", "`static`"),
        ("let ¦\\u0061wait", "`await`"),
        ("let ¦\\u{79}ield", "`yield`"),
        ("class A { ¦\\u0030b() {} }", "escape"),
    ]);
    accepted(&[
        "x = [/a{2}/g, /(?<a>.)|(?<a>.)/, /[\\d-z]/, /\\k<a>/, /\\//, /\\u{1F600}/u, /(?<=a)b/s, /[a--b]/v, /{/]",
        "x = ['\\0', '\\\\8', tag`\\8`, `\\\\9`, '\\x38']",
        "x = { __proto__: 1, ['__proto__']: 2, __proto__ }",
        "({ eval }); ({ a: eval }); let \\u0061bc = '\\u0061wait'; x.\\u0062",
    ]);
}

#[test]
fn deep_regular_expressions_fit_the_stack() {
    for (open, close, flags) in
        [("(", ")", ""), ("(?:", ")", "u"), ("[", "]", "v"), ("(?=", ")", ""), ("(?<=", ")", "")]
    {
        for levels in [1, 100, 399, 400, 401, 40_000] {
            let regex = format!("/{}a{}/{flags}", open.repeat(levels), close.repeat(levels));
            accepted(&[&format!("x = {regex}")]);
        }
    }
}

#[test]
fn what_the_parser_lets_pass_is_refused() {
    refused(&[
        ("for (;;) { class A { static { ¦break } } }", "`break`"),
        ("a: { class A { static { ¦break a } } }", "`break`"),
        ("a: { ¦break }", "`break`"),
        ("if (a) ¦async function f() {}", "a declaration isn't allowed here"),
        ("while (a) ¦async function* f() {}", "a declaration isn't allowed here"),
        ("({ ¦f(a) })", "needs a body"),
        ("enum E { A = ¦yield 1 }", "`yield`"),
        ("({ a, ¦if(x) })", "needs a body"),
        ("let { ¦yield = 1 } = o", "`yield`"),
        ("([¦(a)] = 1) => 1", "a name or a pattern"),
        ("¦new a?.()!", "`new`"),
        ("¦a?.b!`c`", "tagged template"),
        ("¦a?.b<T>`c`", "tagged template"),
        ("for (;;) { class A { static { ¦continue } } }", "`continue`"),
        ("a: b: for (;;) { continue ¦a }", "directly before the loop"),
        ("a: async function ¦f() {}", "label"),
        ("for (let a = ¦b in c;;) {}", "parentheses"),
        ("({ ¦async\nm() {} })", "`async`"),
        ("for (let i = 0; i < 3 ¦i++) {}", "expected `;`"),
        ("for (; a¦) {}", "expected `;`"),
    ]);
    accepted(&[
        "class A { static { for (;;) { break } a: { break a } switch (1) { case 1: break } } }",
        "a: for (;;) { b: for (;;) { continue a } }",
        "a: b: for (;;) { break a; continue b }",
        "for (;;) { x = () => { for (;;) break }; break }",
        "(a, // b\n\n) => {\n}; (\n) => 1; (a\n) => /* c\n */ 1",
        "(new a)?.b; new (a?.b)(); (a?.b)`c`; a!.b`c`",
        "function* f() { yield 1; class A { [yield 2] = 3 } x = { *m() { yield* y } } }",
        "for (a\n; (b as T) /* c */\n; d) {}",
        "for (let a = (b in c), d = [e in f], g = () => { h in i };;) {}",
    ]);
}

#[test]
fn an_arrow_stands_on_the_line_of_its_parameters() {
    for code in ["x = (a\n=> 1)", "(a)\n=> 1", "(\n)\n=> 1", "(a,)\n=> 1"] {
        let error = check(code).expect_err(code);
        assert_eq!(error.kind, ErrorKind::Syntax, "{code}: {error}");
    }
}

#[test]
fn an_escape_has_no_separators() {
    let cases = ["x = ¦'\\u001_0'", "x = `¦a\\u001_0`", "x = ¦'\\u{1_0}'"];
    refused(&cases.map(|code| (code, "an escape can't contain `_`")));
    accepted(&["x = '\\u0061_\\x61_\\\\u_'", "f`\\u001_0`"]);
}

#[test]
fn this_is_no_name() {
    let cases = [
        "const ¦this = 1",
        "let { a: ¦this } = b",
        "var [¦this] = b",
        "function ¦this() {}",
        "class ¦this {}",
        "try {} catch (¦this) {}",
        "for (const ¦this of x) {}",
        "function f({ a: ¦this }) {}",
    ];
    refused(&cases.map(|code| (code, "`this` can't be the name of a variable")));
    accepted(&[
        "function f(this: T, a) { return this.x }",
        "({ m(this) { this.a = this } })",
        "x.this = { this: 1 }",
    ]);
}
