//! The executable: JavaScript with a probe at every call and decision, with the same line numbers as the code.

use super::contains::contains;
use super::edits::Edits;
use super::error::CompileError;
use super::parse::{Parsed, check_again, range};
use super::strip::{Stripped, skip_blanks, strip};
use super::structure::{Probe, Site, Structure};

/// The code with types stripped, names linked (`links`), and probes and positions inserted.
pub(crate) fn executable(
    parsed: &Parsed<'_>,
    links: Edits,
    structure: &Structure,
    probes: &[Probe],
    positions: Edits,
) -> Result<String, CompileError> {
    let Stripped { mut edits, may_hide_errors } = strip(parsed)?;
    edits.append(links);
    edits.append(positions);
    for probe in probes {
        let id = structure.nodes.get(probe.node).map_or("", |node| node.id());
        instrument(&mut edits, parsed.code, id, &probe.site);
    }
    let executable = edits.apply(parsed.code);
    if may_hide_errors || may_have_conflict_marker(parsed.code) {
        check_again(parsed.code, &executable)?;
    }
    Ok(executable)
}

/// Lines that version control leaves at a merge conflict: the parser skips them, sometimes without an error.
fn may_have_conflict_marker(code: &str) -> bool {
    contains!(code, "<<<<<<<")
        || contains!(code, "=======")
        || contains!(code, ">>>>>>>")
        || contains!(code, "|||||||")
}

fn instrument(edits: &mut Edits, code: &str, id: &str, site: &Site) {
    // Concatenated by hand: there is one for every call and decision, and `format!` takes four times as long.
    let visit = |before: &str, after: &str| [before, "__pml.visit(\"", id, "\")", after].concat();
    let outcome = |before: &str, label: &str, after: &str| {
        [before, "__pml.outcome(\"", id, "\", ", label, ");", after].concat()
    };
    match site {
        Site::Call { callee, short_circuits, is_optional_call } => {
            // A skipped `?.` in the callee skips the call too.
            let close = if *short_circuits && !is_optional_call { ")?." } else { ")" };
            edits.wrap(range(*callee), ["__pml.at(\"", id, "\", "].concat(), close);
        }
        Site::Branch { test } => edits.wrap(range(*test), ["__pml.branch(\"", id, "\", ("].concat(), "))"),
        Site::Nullish { test } => {
            edits.wrap(range(*test), ["__pml.nullish(\"", id, "\", ("].concat(), "))");
        }
        Site::LoopStatement { body, is_block: true } | Site::LoopFunction { body, is_block: true } => {
            edits.insert(range(*body).start + 1, visit(" ", ";"));
        }
        Site::LoopStatement { body, is_block: false } => {
            edits.wrap(range(*body), visit("{ ", "; "), " }");
        }
        Site::LoopFunction { body, is_block: false } => edits.wrap(range(*body), visit("(", ", "), ")"),
        Site::Case { before_colon, label } => {
            let colon = skip_blanks(code, range(*before_colon).end);
            let label = serde_json::Value::from(label.as_str()).to_string();
            edits.insert(colon + 1, outcome(" ", &label, ""));
        }
        Site::NoDefault { discriminant } => {
            let paren = skip_blanks(code, range(*discriminant).end);
            let brace = skip_blanks(code, paren + 1);
            edits.insert(brace + 1, outcome(" default: ", "\"default\"", " break;"));
        }
        Site::Catch { block } => {
            edits.insert(range(*block).start + 1, outcome(" ", "\"catch\"", ""));
        }
        Site::Fork { argument } => edits.wrap(range(*argument), visit("(", ", "), ")"),
        Site::Join { call } => {
            edits.wrap(range(*call), "", visit(".then((__pml_all) => (", ", __pml_all))"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{CompileOptions, ErrorKind, compile, error::count_line_ends};

    fn executable(code: &str) -> String {
        compile(code, &CompileOptions::default()).unwrap_or_else(|error| panic!("{code}: {error}")).executable
    }

    #[test]
    fn calls_and_decisions_report() {
        for (code, expected) in [
            ("await mcp.fs.read(x)", "await __pml.at(\"n1\", mcp.fs.read)(x)"),
            ("mcp.fs?.read?.(x)", "__pml.at(\"n1\", mcp.fs?.read)?.(x)"),
            ("mcp.fs?.read(x).y", "__pml.at(\"n1\", mcp.fs?.read)?.(x).y"),
            ("mcp.a.b(await mcp.a.c())", "__pml.at(\"n1\", mcp.a.b)(await __pml.at(\"n2\", mcp.a.c)())"),
            ("if (await mcp.a.b()) {}", "if (__pml.branch(\"d1\", (await __pml.at(\"n1\", mcp.a.b)()))) {}"),
            ("x = a, b ? c : d", "x = a, __pml.branch(\"d1\", (b)) ? c : d"),
            ("if (a, b) {}", "if (__pml.branch(\"d1\", (a, b))) {}"),
            ("a && mcp.b.c()", "__pml.branch(\"d1\", (a)) && __pml.at(\"n1\", mcp.b.c)()"),
            ("a ?? mcp.b.c()", "__pml.nullish(\"d1\", (a)) ?? __pml.at(\"n1\", mcp.b.c)()"),
            (
                "for (const x of y) mcp.a.b(x);",
                "for (const x of y) { __pml.visit(\"l1\"); __pml.at(\"n1\", mcp.a.b)(x); }",
            ),
            ("y.map(x => mcp.a.b(x))", "y.map(x => (__pml.visit(\"l1\"), __pml.at(\"n1\", mcp.a.b)(x)))"),
            (
                "switch (x) { case 'a': b }",
                "switch (__X__) { default: __pml.outcome(\"d1\", \"default\"); break; case 'a': __pml.outcome(\"d1\", \"case:a\"); b }",
            ),
            ("try { a } catch { b }", "try { a } catch { __pml.outcome(\"d1\", \"catch\"); b }"),
            (
                "await Promise.all([mcp.a.b()])",
                "await Promise.all((__pml.visit(\"f1\"), [__pml.at(\"n1\", mcp.a.b)()])).then((__pml_all) => (__pml.visit(\"j1\"), __pml_all))",
            ),
        ] {
            assert_eq!(executable(code), expected.replace("__X__", "x"), "{code}");
        }
    }

    #[test]
    fn types_are_stripped_in_place() {
        for (code, expected) in [
            ("const a: string = b as any;", "const a = b;"),
            ("let a!: number; var b = c!;", "let a; var b = c;"),
            (
                "function f<T>(this: X, a?: T, ...b: T[]): T { return <T>a }",
                "function f( a, ...b) { return a }",
            ),
            ("const f = async <T,>(x: T): Promise<T> => x satisfies T;", "const f = async (x)=> x;"),
            ("interface A { b: c }\ntype B = A;\ndeclare const x: A;", ";\n;\n;"),
            ("f<string>(new Map<a, b>(), x as const)", "f(new Map(), x)"),
            ("import type { A } from 'a';\nlet a: A", ";\nlet a"),
            ("function f(a: string): void; function f(a) {}", "; function f(a) {}"),
            ("for (const x of y as number[]) {}", "for (const x of y) {}"),
            ("try {} catch (e: any) {}", "try {} catch (e) { __pml.outcome(\"d1\", \"catch\");}"),
            ("const { a, b }: { a: string, b?: number } = args", "const { a, b } = args"),
            ("(x as any).y = 1; (<any>x).z = 2; x!.w = 3", "(x).y = 1; (x).z = 2; x.w = 3"),
            ("f?.g<number>?.(1); f?.g<number>(1); f?.<number>(1)", "f?.g?.(1); f?.g(1); f?.(1)"),
            ("f?.g!<number>?.(1); f!<T>?.g; f!<T>?.[0]", "f?.g?.(1); f?.g; f?.[0]"),
            ("f()<{ a?: A.B }>?.(1); (f)!<T extends U ?.5 : 1>?.(2)", "f()?.(1); (f)?.(2)"),
            (
                "f // a\u{2028}2 /* \u{2029} // */ // \u{2029}'\u{2028}'",
                "f // a\n2 /* \u{2029} // */ // \n'\u{2028}'",
            ),
            ("f()<A.B>.g; f`x`<T>.g?.h; f?.()!<T>.g", "f().g; f`x`.g?.h; f?.().g"),
            ("f?.[0]<number>?.(1); f.g<number>?.(1); x = f?.g<number>", "f?.[0]?.(1); f.g?.(1); x = f?.g"),
            ("f?.g /* a */ <number /* b */>?.(1)", "f?.g/*a*/?.(1)"),
        ] {
            let actual = executable(code);
            let squeeze = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(squeeze(&actual), squeeze(expected), "{code} became {actual}");
        }
    }

    #[test]
    fn classes_lose_what_only_the_checker_reads() {
        let code = "abstract class A<T> extends B<T> implements C, D {\n  private readonly x: number = 1;\n  declare y: string;\n  z?: T;\n  [k: string]: any;\n  abstract m(): void;\n  protected static async n?(a: T): Promise<void> {}\n}";
        let expected = " class A extends B  {\n    x = 1;\n  ;\n  z;\n  ;\n  ;\n   static async n(a) {}\n}";
        assert_eq!(executable(code), expected);
        let code = "class A extends B { constructor(private a: string, public readonly b = 2) { super(a); this.c() } }";
        let expected = "class A extends B { a; b; constructor( a,   b = 2) { super(a);; this.a = a; this.b = b; this.c() } }";
        assert_eq!(executable(code), expected);
    }

    #[test]
    fn enums_become_objects() {
        assert_eq!(
            executable("enum E {\n  A,\n  B = A + 4,\n  C = 'c'\n}"),
            "var E; (function (E) {\n E[E[\"A\"] = 0] = \"A\";\n E[E[\"B\"] = E.A + 4] = \"B\";\n E[\"C\"] = 'c';\n })(E || (E = {}));"
        );
        assert!(compile("enum E { A = 'a', B }", &CompileOptions::default()).is_err());
        assert_eq!(
            executable("enum E { A =\n 1 as number, B = <number>\n(A! + 1) }"),
            "var E; (function (E) { E[E[\"A\"] = \n1] = \"A\"; E[E[\"B\"] = (\n(E.A + 1))] = \"B\"; })(E || (E = {}));"
        );
        assert_eq!(
            executable("enum E { A = f<T>((x: N) => x!), B = g({ A, b: 1 }) }"),
            "var E; (function (E) { E[E[\"A\"] = f((x) => x)] = \"A\"; E[E[\"B\"] = g({ A: E.A, b: 1 })] = \"B\"; })(E || (E = {}));"
        );
        assert!(compile("enum E { A = await f() }", &CompileOptions::default()).is_err());
        assert!(compile("enum E { A = f(async () => await 1) }", &CompileOptions::default()).is_ok());
    }

    #[test]
    fn what_cannot_be_supported_says_so_and_where() {
        for (code, column) in [
            ("@d class A {}", 1),
            ("x = @d() class {}", 5),
            ("class A { @d m() {} }", 11),
            ("class A { @d static x = 1 }", 11),
            ("class A { m(@d x: string) {} }", 13),
            ("class A { constructor(@d private x: string) {} }", 23),
            ("class A { @d declare x: string }", 11),
            ("@d abstract\nclass A {}", 1),
            ("class A { @d constructor() {} }", 11),
            ("class A { accessor x = 1 }", 11),
            ("class A { static accessor #x }", 11),
            ("abstract class A { abstract accessor x: number }", 20),
            ("namespace N { export const a = 1 }", 1),
            ("namespace N.M {}", 1),
            ("module N { let x }", 1),
            ("using x = f()", 1),
            ("{ await using x = f() }", 3),
            ("for (using x of y) {}", 6),
            ("const f = (...a: T = []) => a", 12),
            ("class A extends B { constructor(private x) { f(() => super()) } }", 21),
        ] {
            let code = format!("const é = 1;\n{code}");
            let error = compile(&code, &CompileOptions::default()).expect_err(&code);
            assert_eq!((error.line, error.column), (2, column), "{code}: {error}");
            assert!(error.message.contains("aren't supported"), "{code}: {error}");
            assert!(error.hint.is_some(), "{code}");
        }
    }

    #[test]
    fn an_asserted_object_stays_one() {
        for (code, expected) in [
            ("<T>{ a: 1 }", "({ a: 1 })"),
            ("const f = () => <T>{ a: 1 }", "const f = () => ({ a: 1 })"),
            ("<T>function () {}", "(function () {})"),
            ("x = <T>{} as U", "x = ({})"),
            ("<A><B>{ a: 1 }", "({ a: 1 })"),
        ] {
            assert_eq!(executable(code), expected, "{code}");
        }
    }

    #[test]
    fn only_fields_are_deleted() {
        for code in ["delete x", "delete (x)", "delete x!", "delete (<T>x)", "() => { delete (x as T) }"] {
            let error = compile(code, &CompileOptions::default()).expect_err(code);
            assert_eq!(error.kind, ErrorKind::Syntax, "{code}: {error}");
            assert!(error.message.contains("`delete` takes a field"), "{code}: {error}");
        }
        assert_eq!(executable("delete x.y; delete (x as T).y"), "delete x.y; delete (x).y");
    }

    #[test]
    fn fields_are_given_values_with_a_colon() {
        for (code, column) in [("x = { a = 1 }", 7), ("f({ b, a = 1 })", 8), ("return [<T>{ a = 1 }]", 14)] {
            let error = compile(code, &CompileOptions::default()).expect_err(code);
            assert_eq!((error.kind, error.column), (ErrorKind::Syntax, column), "{code}: {error}");
            assert_eq!(error.hint.as_deref(), Some("write `a: …`"), "{code}");
        }
        for code in ["({ a = 1 }) => a", "({ a = 1 } = b)", "for ({ a = 1 } of b) {}", "const { a = 1 } = b"]
        {
            assert!(compile(code, &CompileOptions::default()).is_ok(), "{code}");
        }
    }

    #[test]
    fn what_the_parser_forgot_to_refuse_is_refused() {
        for body in ["return x;!", "break", "(a, b) = 1"] {
            let code = format!("await mcp.a.b();\nconst f = async <T>(x: T) => {{\n  {body} }};");
            let error = compile(&code, &CompileOptions::default()).expect_err(&code);
            assert_eq!((error.kind, error.line, error.column), (ErrorKind::Syntax, 3, 3), "{error}");
        }
        executable("const f = async <T>(x: T) => { for (;;) { if (await mcp.a.b()) break } return x }");
    }

    #[test]
    fn words_stay_apart_when_what_was_between_them_goes() {
        assert_eq!(executable("for (const key!in x) {}"), "for (const key in x) {}");
        assert_eq!(executable("x = y!in z"), "x = y in z");
        assert_eq!(executable("x = y!!in z"), "x = y in z");
        assert_eq!(executable("x = 3!.d + 4!!.e"), "x = 3 .d + 4 .e");
        assert_eq!(executable("for (const x of<any>y) {}"), "for (const x of y) {}");
        assert_eq!(executable("for (const x of y) { return<T>1 }"), "for (const x of y) { return 1 }");
    }

    #[test]
    fn the_engine_gets_what_it_reads_right() {
        assert_eq!(executable("f(async => 1, async (async) => 1)"), "f((async) => 1, async (async) => 1)");
        assert_eq!(executable("f()\nasync => 1, a"), "f()\n;(async) => 1, a");
        assert_eq!(executable("{ f()\nasync => 1 }"), "{ f()\n;(async) => 1 }");
        assert_eq!(executable("while (a)\nasync => 1"), "while (a)\n(async) => 1");
        assert_eq!(executable("class A { get\n*b() {} }"), "class A { get;\n*b() {} }");
        assert_eq!(
            executable("class A { set?: number\n*b() {} static;}"),
            "class A { set;\n*b() {} static;}"
        );
    }

    #[test]
    fn words_in_comments_are_no_modifiers() {
        for (code, expected) in [
            ("class A implements /* implements x */ B, C {}", "class A  {}"),
            ("class A /* implements x */ implements B {}", "class A /* implements x */  {}"),
            ("abstract /* abstract */ class A {}", " /* abstract */ class A {}"),
            ("x = class abstract {}", "x = class abstract {}"),
        ] {
            assert_eq!(executable(code), expected);
        }
    }

    #[test]
    fn a_line_keeps_its_number_where_types_span_lines() {
        for code in [
            "const f = (x: {\n  a: string\n}): {\n  b: number\n} => {\n  return x\n}\nf()",
            "const f = async <\n  T\n>(x: T) => x\nf()",
            "const f = async <T>\n (x: T) => x\nf()",
            "return <{\n a: 1\n}>x",
            "const a = b as {\n c: d\n}\n[1].map(f)",
            "mcp\n  .fs\n  .read(\n x\n)",
            "type A = {\n  b: c\n}\ninterface D {\n  e: f\n}\nreturn 1",
        ] {
            let executable = executable(code);
            assert_eq!(count_line_ends(&executable), count_line_ends(code), "{code} became {executable}");
        }
        assert!(executable("const f = (x): {\n  b: number\n} => x").contains("=>\n\n x"));
        assert_eq!(executable("const f = async <T>\n (x: T) => x"), "const f = async (\nx) => x");
        assert!(executable("const a = b as C\n[1].map(f)").contains("b;\n[1]"));
        assert_eq!(executable("a!\n[1]!\n(b)!\n`c`"), "a\n[1]\n(b)\n`c`");
        assert_eq!(executable("x = a<T>\n[1]"), "x = a\n[1]");
        assert_eq!(executable("x = a\r<T>\n"), "x = a\r \n");
    }
}
