//! Small code that could make the compiler use quadratic time or memory, or overflow the stack. Without the limits these
//! tests don't fail quickly: they run out of memory or crash.

use super::*;

fn compiled(code: &str) -> Compiled {
    compile(code, &CompileOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn functions_that_call_each_other_need_no_nesting() {
    let chain: String = (0..6000).map(|i| format!("function f{i}() {{ f{}() }}\n", i + 1)).collect();
    let code = format!("f0()\n{chain}function f6000() {{ mcp.a.b() }}\nmcp.a.c()");
    assert_eq!(compiled(&code).structure.edges.len(), 1);
}

#[test]
fn values_that_hold_each_other_are_not_copied_without_end() {
    for unit in [
        "const vNEXT = { a: vTHIS, b: vTHIS };",
        "const vNEXT = [vTHIS, vTHIS];",
        "const vNEXT = `${vTHIS} ${vTHIS}`;",
    ] {
        let values: String = (0..2000)
            .map(|i| unit.replace("NEXT", &(i + 1).to_string()).replace("THIS", &i.to_string()))
            .collect();
        let shown = serde_json::to_string(
            &compiled(&format!("const v0 = args.x;{values}mcp.a.b({{ x: v2000, y: v3 }})")).structure,
        );
        assert!(shown.expect("serializes").len() < 10_000, "{unit}");
    }
}

#[test]
fn aliases_of_aliases_stay_short() {
    let aliases: String = (0..6000).map(|i| format!("const v{} = v{i}.a;", i + 1)).collect();
    let shown = serde_json::to_string(
        &compiled(&format!("const v0 = args;{aliases}mcp.a.b({{ x: v20, y: v6000 }})")).structure,
    );
    let shown = shown.expect("serializes");
    assert!(shown.contains("\"parameterName\":\"a.a.a.") && shown.len() < 1000, "{shown}");
}

#[test]
fn a_function_with_many_exits_is_refused_where_it_makes_too_many_ways() {
    let returns = "if (a) return mcp.a.b();".repeat(2000);
    let calls = |unit: &str| {
        compile(&format!("function f() {{{returns}}}{}", unit.repeat(2000)), &CompileOptions::default())
    };
    assert!(calls("f();").is_ok());
    let error = calls("f();mcp.a.c();").expect_err("too many");
    assert_eq!(error.kind, ErrorKind::TooComplex);
    assert!(
        error.message.contains("too many paths") && error.hint.is_some() && error.column > 48_000,
        "{error}"
    );
}

#[test]
fn long_conditions_are_shortened() {
    let condition = "a".repeat(5000);
    let structure = compiled(&format!("if ({condition}) mcp.a.b({{ x: 1 + {condition} }})")).structure;
    let Node::Decision { condition, .. } = &structure.nodes[0] else { panic!("a decision") };
    assert_eq!((condition.chars().count(), condition.ends_with('…')), (1001, true));
    assert!(serde_json::to_string(&structure).expect("serializes").len() < 2600);
}

#[test]
fn places_behind_each_other_are_right_in_any_order() {
    let code = "do { mcp[b] } while (mcp[c])\n".repeat(50);
    let unresolved = references(&code).expect("parses").unresolved;
    assert_eq!(unresolved.len(), 100);
    for place in unresolved {
        assert_eq!((place.line, place.column), line_and_column(&code, place.start));
    }
}
