//! What linking changes, and what it must not: one table of ways to write a reference, one of things that stay, and the
//! properties that hold for any program.

use super::*;

const READ: &str = "local.default.fs.read_json.a7f3";
const SUM: &str = "local.default.text.sum_up.beef";

fn lookup() -> Lookup {
    HashMap::from([
        ("fs:read_json".to_owned(), READ.to_owned()),
        ("text:sum_up".to_owned(), SUM.to_owned()),
        ("sum_up".to_owned(), SUM.to_owned()),
    ])
}

fn names() -> HashMap<String, String> {
    HashMap::from([(READ.to_owned(), "fs:read_json".to_owned()), (SUM.to_owned(), "text:sum_up".to_owned())])
}

fn linked(code: &str) -> String {
    link(code, &lookup()).unwrap_or_else(|error| panic!("{code}: {error}"))
}

#[test]
fn every_way_of_writing_a_reference_is_linked() {
    let read = format!("mcp[\"{READ}\"]");
    for (code, expected) in [
        ("await mcp.fs.read_json({ path })", "await READ({ path })"),
        ("await mcp.fs.readJson({ path })", "await READ({ path })"),
        ("mcp[\"fs\"].read_json(x)", "READ(x)"),
        ("mcp.fs['readJson'](x)", "READ(x)"),
        ("mcp[`fs`].read_json(x)", "READ(x)"),
        ("mcp['fs:read_json'](x)", "READ(x)"),
        ("mcp[\"fs:readJson\"](x)", "READ(x)"),
        ("mcp?.fs?.read_json?.(x)", "READ?.(x)"),
        ("mcp.fs?.read_json(x)", "READ(x)"),
        ("(mcp as any).fs.read_json(x)", "READ(x)"),
        ("mcp.fs!.read_json!(x)", "READ!(x)"),
        ("(mcp.fs.read_json as Function)(x)", "(READ as Function)(x)"),
        ("(<any>mcp).fs.read_json(x)", "READ(x)"),
        ("mcp.fs.read_json<string>(x)", "READ<string>(x)"),
        ("const { readJson } = mcp.fs; readJson(x)", "const { readJson } = mcp.fs; READ(x)"),
        ("const { read_json: r } = mcp.fs; r(x)", "const { read_json: r } = mcp.fs; READ(x)"),
        ("const { fs: { readJson: r } } = mcp; r(x)", "const { fs: { readJson: r } } = mcp; READ(x)"),
        ("const fs = mcp.fs; fs.readJson(x)", "const fs = mcp.fs; READ(x)"),
        ("const { fs } = mcp; fs['read_json'](x)", "const { fs } = mcp; READ(x)"),
        ("const m = mcp; m.fs.read_json(x)", "const m = mcp; READ(x)"),
        ("const r = mcp.fs.read_json; r(x)", "const r = mcp.fs.read_json; READ(x)"),
        ("let fs = mcp.fs; fs.read_json(x)", "let fs = mcp.fs; READ(x)"),
        ("xs.map(mcp.fs.read_json)", "xs.map(READ)"),
        (
            "const { readJson } = mcp.fs; f({ readJson })",
            "const { readJson } = mcp.fs; f({ readJson: READ })",
        ),
        ("mcp.fs.read_json.call(null, x)", "READ.call(null, x)"),
        ("`a ${mcp.fs.read_json(x)} b`", "`a ${READ(x)} b`"),
        ("mcp.fs.read_json(await mcp.fs.readJson(x))", "READ(await READ(x))"),
        ("class A { async m() { return mcp.fs.read_json(1) } }", "class A { async m() { return READ(1) } }"),
        ("function f(a = mcp.fs.read_json(1)) {}", "function f(a = READ(1)) {}"),
        ("x = { [await mcp.fs.read_json(1)]: 2 }", "x = { [await READ(1)]: 2 }"),
    ] {
        assert_eq!(linked(code), expected.replace("READ", &read), "{code}");
    }
    assert_eq!(linked("capabilities.sumUp(x)"), format!("mcp[\"{SUM}\"](x)"));
    assert_eq!(linked("capabilities['sum_up@v2'](x)"), format!("mcp[\"{SUM}@v2\"](x)"));
    assert_eq!(linked("mcp['fs:read_json@v1'](x)"), format!("mcp[\"{READ}@v1\"](x)"));
    let hidden = "{ const mcp = 1; capabilities.sum_up(x) }";
    assert_eq!(linked(hidden), format!("{{ const mcp = 1; capabilities[\"{SUM}\"](x) }}"));
}

#[test]
fn what_is_no_capability_keeps_its_bytes() {
    for code in [
        "mcp.fs.write({ path })",
        "mcp.other.read_json(x)",
        "mcp.read_json.fs(x)",
        "x.mcp.fs.read_json(y)",
        "x.fs.read_json(y)",
        "'mcp.fs.read_json()' // mcp.fs.read_json()\n/* mcp.fs.read_json() */",
        "`mcp.fs.read_json()`",
        "const mcp = other; mcp.fs.read_json(x)",
        "function f(mcp) { return mcp.fs.read_json(x) }",
        "(mcp => mcp.fs.read_json(x))(y)",
        "for (const mcp of xs) mcp.fs.read_json(x)",
        "try { a() } catch (mcp) { mcp.fs.read_json(x) }",
        "{ class mcp {} mcp.fs.read_json(x) }",
        "if (a) { var mcp = b } mcp.fs.read_json(x)",
        "mcp.fs.read_json(x); function mcp() {}",
        "let fs = mcp.fs; fs = other; fs.read_json(x)",
        "const fs = mcp.fs; { const fs = other; fs.read_json(x) }",
        "type A = typeof mcp.fs.read_json",
        "mcp[`fs:${x}`](y)",
        "mcp: for (;;) break mcp",
        "x = { mcp: 1, capabilities: 2 }",
        "\u{feff}// é\r\nmcp.fs.write('日本')\r\n",
    ] {
        assert_eq!(linked(code), code, "{code}");
    }
}

#[test]
fn shadowing_ends_with_its_scope() {
    let code = "{ const mcp = 1 } mcp.fs.read_json(x)";
    assert_eq!(linked(code), format!("{{ const mcp = 1 }} mcp[\"{READ}\"](x)"));
    let code = "const { readJson } = mcp.fs; function f(mcp, capabilities) { return readJson(1) }";
    assert_eq!(linked(code), code);
}

#[test]
fn text_around_a_reference_survives_to_the_byte() {
    let code = "\u{feff}// é 日本\r\nconst x = mcp\r\n  .fs // why\r\n  .readJson({ \"ü\": 1 })\t;\r\n";
    let expected = format!("\u{feff}// é 日本\r\nconst x = mcp\r\n\r\n[\"{READ}\"]({{ \"ü\": 1 }})\t;\r\n");
    assert_eq!(linked(code), expected);
}

/// `as` and `!` must stand on the line of what they follow.
#[test]
fn line_ends_in_a_reference_stay_away_from_what_follows_it() {
    for code in ["(mcp\n.fs.readJson as any)(x)", "mcp\n.fs\n.readJson!(x)", "return mcp\n.fs.readJson"] {
        let linked = linked(code);
        assert_eq!(linked.lines().count(), code.lines().count(), "{linked}");
        let found = references(&linked).expect("parses").found;
        assert_eq!(found[0].fqdn.as_deref(), Some(READ), "{linked}");
        assert_eq!(
            display(&linked, &names()).expect("displays").replace("read_json", "readJson").lines().count(),
            code.lines().count()
        );
    }
    assert_eq!(linked("(mcp\n.fs.readJson as any)(x)"), format!("(mcp\n[\"{READ}\"] as any)(x)"));
}

#[test]
fn the_hash_of_linked_code_needs_no_second_parse() {
    for code in [
        "await mcp.fs.readJson({ path })",
        "const { readJson } = mcp.fs\nf({ readJson, })\nreturn readJson(x)",
        "f(mcp.fs.read_json,)\n/* é */ capabilities.sumUp('a', [1,, 2,],)",
        "do { mcp.fs.read_json(1) } while (mcp.fs.readJson(2))\nlet x = mcp['fs:read_json@v1']\n++y",
        "(<any>mcp).fs.read_json(x); mcp.fs!.readJson!(`a ${mcp.fs.readJson(1)} b`)",
        "return mcp.fs.write(1)",
    ] {
        let source = Source::parse(code).expect(code);
        let expected = canonical::code_hash(&source.link(&lookup())).expect(code);
        assert_eq!(source.linked_hash(&lookup()), expected, "{code}");
    }
}

#[test]
fn what_cannot_be_resolved_is_reported_with_its_place() {
    for (code, at) in [
        ("x = 1\nmcp[x](y)", (2, 1)),
        ("mcp.fs[x](y)", (1, 1)),
        ("f(mcp)", (1, 3)),
        ("f(mcp.fs)", (1, 3)),
        ("const { ...all } = mcp.fs", (1, 20)),
        ("let m; m = mcp", (1, 12)),
        ("mcp.fs.read_json = f", (1, 1)),
        ("capabilities[name](x)", (1, 1)),
        ("mcp[`fs:${x}`](y)", (1, 1)),
        ("x = { mcp }", (1, 7)),
        ("return mcp", (1, 8)),
    ] {
        let found = references(code).expect(code);
        let places: Vec<_> = found.unresolved.iter().map(|place| (place.line, place.column)).collect();
        assert_eq!(places, [at], "{code}: {:?}", found.unresolved);
    }
    for code in
        ["typeof mcp", "const fs = mcp.fs", "const { read } = mcp.fs", "mcp.fs.read(1)", "const m = mcp"]
    {
        assert_eq!(references(code).expect(code).unresolved, [], "{code}");
    }
}

#[test]
fn references_carry_candidates_in_order() {
    let found =
        references("mcp.fs.readJson(x); mcp['a.b.c.d.beef@v1'](y); capabilities.sumUp(z)").expect("parses");
    assert_eq!(found.found[0].candidates, ["fs:readJson", "fs:read_json"]);
    assert_eq!((found.found[0].start, found.found[0].end), (0, 15));
    assert_eq!(found.found[1].fqdn.as_deref(), Some("a.b.c.d.beef"));
    assert_eq!(found.found[1].version.as_deref(), Some("v1"));
    assert!(found.found[2].capability_only && found.found[2].called);
    assert_eq!(found.names(), ["fs:readJson", "fs:read_json", "sumUp", "sum_up"]);
}

#[test]
fn an_exact_name_wins_over_snake_case() {
    let mut lookup = lookup();
    lookup.insert("fs:readJson".to_owned(), SUM.to_owned());
    assert_eq!(link("mcp.fs.readJson()", &lookup).expect("links"), format!("mcp[\"{SUM}\"]()"));
}

#[test]
fn display_is_the_reverse_of_link() {
    let code = format!(
        "const a = await mcp[\"{READ}\"](x); mcp[\"{SUM}@v1\"](a); mcp[\"other.default.a.b.c0de\"]()"
    );
    let shown = display(&code, &names()).expect("displays");
    let expected =
        "const a = await mcp.fs.read_json(x); mcp[\"text:sum_up@v1\"](a); mcp[\"other.default.a.b.c0de\"]()";
    assert_eq!(shown, expected);
    assert_eq!(linked(&shown), code);
    let odd = HashMap::from([(READ.to_owned(), "my-reader".to_owned())]);
    assert_eq!(display(&format!("mcp['{READ}'](x)"), &odd).expect("displays"), "mcp[\"my-reader\"](x)");
}

/// Pieces that a program is put together from; not all combinations parse, and those that do are worth trying.
const PIECES: &[&str] = &[
    "mcp",
    ".fs",
    ".readJson",
    "['read_json']",
    "(x)",
    "?.",
    "const fs = mcp.fs;",
    "fs",
    "{ ",
    " }",
    "const { readJson: r } = mcp.fs;",
    "r(1);",
    "capabilities.sum_up(2);",
    "mcp['fs:read_json@v1']()",
    "`${",
    "}`",
    " as any",
    "!",
    ";",
    "\n",
    "é",
    "'mcp.fs'",
    "function f(mcp) {",
    "=>",
    "await ",
    "(",
    ")",
    ",",
    "x",
    "mcp.fs.readJson(y);",
    "[",
    "]",
    "/*é*/",
    "\r\n",
    "let mcp = 1;",
    "a ? b : c",
];

proptest::proptest! {
    #[test]
    fn linking_changes_only_callees_and_only_once(
        parts in proptest::collection::vec(proptest::sample::select(PIECES.to_vec()), 0..24)
    ) {
        let code = parts.concat();
        let Ok(found) = references(&code) else { return Ok(()) };
        let once = linked(&code);
        let mut at = 0;
        let mut kept = Vec::new();
        let replaced: Vec<_> = found.found.iter().filter(|r| r.fqdn.is_none() && r.target(&lookup()).is_some()
            && r.written != references::Written::Unreachable).collect();
        let mut sorted = replaced.clone();
        sorted.sort_by_key(|r| r.start);
        for reference in sorted {
            if reference.start >= at {
                kept.push(&code[at..reference.start]);
                at = reference.end;
            }
        }
        kept.push(&code[at..]);
        let mut rest = once.as_str();
        for piece in kept {
            let found = rest.find(piece);
            proptest::prop_assert!(found.is_some(), "{code:?} became {once:?}, which lost {piece:?}");
            rest = &rest[found.unwrap_or(0) + piece.len()..];
        }
        proptest::prop_assert_eq!(linked(&once), once.clone());
        let hash = Source::parse(&code).expect("parses").linked_hash(&lookup());
        proptest::prop_assert_eq!(hash, canonical::code_hash(&once).expect("what was linked parses"));
        let shown = display(&once, &names()).expect("what was linked parses");
        proptest::prop_assert_eq!(linked(&shown), once);
    }
}
