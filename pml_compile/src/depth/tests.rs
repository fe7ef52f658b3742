//! What counts as nesting, what doesn't, and what is refused because it can't be told.

use super::*;

fn refused(code: &str) -> CompileError {
    check_depth(code).expect_err("should be refused")
}

#[test]
fn every_way_of_nesting_is_counted() {
    let n = 100_000;
    for (open, middle, close) in [
        ("(", "a", ")"),
        ("[", "a", "]"),
        ("{", "a", "}"),
        ("`${", "a", "}`"),
        ("f(", "a", ")"),
        ("({a:", "1", "})"),
        ("!", "a", ""),
        ("-", "a", ""),
        ("typeof ", "a", ""),
        ("await ", "a", ""),
        ("new ", "a", ""),
        ("a+", "a", ""),
        ("a**", "a", ""),
        ("a=", "a", ""),
        ("a?b:", "c", ""),
        ("", "a", ".b"),
        ("", "a", "()"),
        ("", "a", "[0]"),
        ("", "a", "!"),
        ("", "a", " as A"),
        ("a=>", "a", ""),
        ("(a)=>", "a", ""),
        ("if(a)", "a", ""),
        ("!\n", "a", ""),
        ("if(a){}else ", "a", ""),
        ("a:", "a", ""),
        ("for(;;)", "a", ""),
        ("do ", "a", ""),
        ("a<", "a", ""),
        ("<T>", "a", ""),
        ("type X=keyof\n", "A", ""),
        ("type X=A<", "A", ">"),
        ("type X=A<B,", "A", ">"),
        ("type X=()=>", "A", ""),
        ("if(a)\n", "a", ""),
        ("else\n", "a", ""),
        ("a:b,(function(){", "a", "})"),
        ("a\n?b\n:", "c", ""),
        ("", "a", "\n.b"),
        ("A extends B ? C : ", "A", ""),
        ("while(a)\n", "a", ""),
        ("", "a", "\n()"),
        ("await\n", "a", ""),
        ("", "a", "`b`"),
    ] {
        let code = format!("{}{middle}{}", open.repeat(n), close.repeat(n));
        assert_eq!(refused(&code).kind, ErrorKind::TooComplex, "{open}…{close}");
    }
}

#[test]
fn long_flat_code_is_not_deep() {
    let n = 3_000;
    for line in [
        "const a = b.c(d)[0] + 1;\n",
        "const a = b.c(d)[0] + 1\n",
        "foo()\n",
        "if (a) { b() }\n",
        "if(a){b()}",
        "x = {}\n",
        "function f() { return 1 }\n",
        "let s = `a${b}c`\n",
        "type A = { a: string\n b: number }\n",
        "if (a) b()\nelse c()\n",
        "switch (a) { case 1: b(); break\n default: c() }\n",
        "class A { b = 1\n c() {} }\n",
        "a < b && c < d\n",
        "x = y as T\n",
        "const f = async (a: string): Promise<Map<string, number>> => { return await g<string>(a) }\n",
    ] {
        assert!(check_depth(&line.repeat(n)).is_ok(), "{line}");
    }
    let object = format!("x = {{ {} }}", "a: b.c + 1, 'd': [e],\n".repeat(n));
    assert!(check_depth(&object).is_ok());
    let cases = format!("switch (a) {{ {} }}", "case 'b': return c + d\n".repeat(n));
    assert!(check_depth(&cases).is_ok());
}

#[test]
fn brackets_in_text_do_not_count() {
    for code in [
        "'(((' + \"[[[\" + `{{{`",
        "// (((\n1",
        "/* ((( */ 1",
        "/[(/]\\//.test(a)",
        "x = a / b / c",
        "if (a) /(/.test(b)",
        "(a) / (b) / (c)",
        "a++ / (b) / c",
        "f(/\\(/g, '')",
        "return /[)]/",
        "x.return / (2) / y",
        "`${`${a}`}` / 2",
        "a! / (b) / c",
        "!/(/.test(a)",
        "b ? /(/ : /)/",
        "from / (2 + to) / 3",
        "a <<!--b",
        "satisfies / 1; is / (as / 2)",
    ] {
        assert!(check_depth(code).is_ok(), "{code}");
    }
}

#[test]
fn what_cannot_be_told_apart_is_refused() {
    assert!(refused("if (a) {}\n/(/.test(b)").message.contains("division or a regular expression"));
    assert!(refused("if (a) {}\n/b+/.test(c)").message.contains("division or a regular expression"));
    assert!(refused("a >/=/").message.contains("division or a regular expression"));
    assert!(check_depth("if (a) {}\n/x/.test(b)").is_ok());
    assert!(refused("a <!-- (\n)").message.contains("HTML"));
    assert!(check_depth("while (n --> 0) {}").is_ok());
}

#[test]
fn what_is_left_open_is_named_with_its_place() {
    let error = refused("const a = [\n  (1, 2]\n");
    assert_eq!((error.line, error.column), (2, 8));
    assert_eq!(error.message, "expected `)`, found `]`");
    assert_eq!(error.hint.as_deref(), Some("the `(` at line 2, column 3 isn't closed"));
    assert_eq!(refused("f(").message, "expected `)` before the end of the code");
    assert_eq!(refused("x = 'a\nb'").message, "expected `'` to end this string");
    assert_eq!(refused("}").message, "unexpected `}`");
}

proptest::proptest! {
    #[test]
    fn any_text_is_scanned_to_an_answer(code in ".{0,200}") {
        let _ = check_depth(&code);
    }

    #[test]
    fn any_soup_of_tokens_is_scanned_to_an_answer(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "(", ")", "{", "}", "[", "]", "`", "${", "/", "\\", "'", "\"", "*", "<", ">", "\n", "a", "if", "\\u{61}", "é", "1.", "?.", "=>",
        ]), 0..60)
    ) {
        let _ = check_depth(&parts.concat());
    }
}

/// Each try of types or a function that fails reads all that is inside of it again, the tries in there included.
#[test]
fn what_is_read_again_and_again_ends_soon() {
    for (open, close) in [
        ("{8<", "}"),
        ("<T>(", ")"),
        ("<T>[", "]"),
        ("<T>{a:", "}"),
        ("x=(a):(", ")"),
        ("x=<T>(a=", ")"),
        ("async<T>(a=", ")"),
        ("oa%=<T>", ""),
        ("a?<T>", ":0"),
        ("a=>\n<T>", ""),
        ("x=<T> /* */ ", ""),
        ("<T><T>(b)?", ""),
        ("a<-1,{[", "]}"),
        ("a?(b):c=>", ""),
        ("a?(b):{[", "]}"),
        ("a?b=>(c):d=>", ""),
        ("switch(a){case(a):{[function(){", "}]}}"),
        ("async<T>(a)=>(b,", ")"),
        ("async<{[", "]}>"),
        ("for(var in[function(){", "}])"),
        ("x as(infer a extends ", ")?b:c"),
        ("x as{get\n[0 as ", "]:a}"),
        ("x as{set\na(b:0 as ", "):c}"),
    ] {
        let error = refused(&format!("{}a{}", open.repeat(40), close.repeat(40)));
        assert_eq!(error.kind, ErrorKind::TooComplex, "{open}");
        assert!(error.hint.is_some_and(|hint| hint.contains("types")), "{open}");
    }
    // What is written by hand isn't refused.
    for (code, times) in [
        ("type A = Promise<{ b: Array<{ c: Map<string, { d: Set<{ e: Partial<G> }> }> }> }>;", 30),
        ("for (let i = 0; i < n; i++) { if (i < 3) { f((x) => { while (x < 1) { g() } }) } }", 3000),
        ("x = a ? (b) : (c ? (d) : (e ? (f) : (g ? (h) : (i))));", 100),
        (
            "x = <number>a + <number>b + <number>c + <number>d + <number>e + <number>f + <number>g + <number>h;",
            100,
        ),
        ("f(<A>a, <B>b, <C>c, <D>d, <E>e, <F>f, <G>g, <H>h, <I>i, <J>j, <K>k);", 100),
        ("x = f<A>(g<B>(new Map<C, D>(h<E>(<T>(y: T) => i<F>(y)))));", 100),
        (
            "type A<T> = T extends [infer B extends string, ...infer C extends string[]] ? [B, ...A<C>] : [];",
            100,
        ),
        ("interface A {\n get a(): B<C>\n set a(b: B<C>)\n get: D<E>\n}\n", 1000),
        ("if (set.has(a) && set.has(b) && set.has(c)) { set.add(d) }\n", 2000),
        (
            "x = a ? (b) : c ? (d) : e ? (f) : g ? (h) : i ? (j) : k ? (l) : m ? (n) : o ? (p) : q ? (r) : s;",
            100,
        ),
        (
            "const f = async (a: A): Promise<B> => { const g = (b: B): C => { return ((c: C): D => d)(b) } };",
            300,
        ),
        (
            "switch (a) { case (B): { switch (c) { case (D): { f({ e: [1] }) } } } case (E): return [f(1)] }",
            300,
        ),
        ("for (const in_ in a) { for (const of_ of b) { for (const c of d) { e(c) } } }", 300),
    ] {
        check_depth(&code.repeat(times)).unwrap_or_else(|error| panic!("{code}: {error}"));
    }
}
