//! Names in code: every spelling that the list of tools suggests, and the one that can't work.

use pml_tests::{Ask, Database};

#[test]
fn a_name_without_a_colon_links_under_every_spelling() {
    let mut db = Database::new().connect();
    let fqdn = db.text("SELECT pml_register('return 1', 'my-reader')", &[]).unwrap();
    assert_eq!(
        db.texts("SELECT tool_name FROM pml_tools() WHERE kind = 'capability'"),
        ["mcp__util__my-reader"]
    );
    for call in [
        "mcp.util.my_reader()",
        "mcp.util[\"my-reader\"]()",
        "mcp[\"util:my-reader\"]()",
        "mcp[\"my-reader\"]()",
        "mcp.my_reader()",
        "capabilities[\"my-reader\"]()",
        "capabilities.my_reader()",
        "mcp.util.myReader()",
        "capabilities.myReader()",
    ] {
        let linked = db.text("SELECT pml_transform($1)", &[&call]).unwrap();
        assert!(linked.contains(&fqdn), "{call}: {linked}");
    }
    // Another namespace is another thing, and so is a tool of that name.
    for call in ["mcp.fs.my_reader()", "mcp.my.reader()"] {
        assert_eq!(db.text("SELECT pml_transform($1)", &[&call]).unwrap(), call);
    }
    db.batch_execute(r#"SELECT pml_register_tools('util', '[{"name": "my_reader"}]')"#).unwrap();
    assert_eq!(db.text("SELECT pml_transform('mcp.util.my_reader()')", &[]).unwrap(), "mcp.util.my_reader()");
}

#[test]
fn code_that_calls_its_own_name_is_refused_with_the_line() {
    let mut db = Database::new().connect();
    let code = "if (args.n < 2) return 1;\nreturn args.n * await mcp.math.fact({ n: args.n - 1 })";
    let request = serde_json::json!({"code": code, "name": "math:fact", "args": {"n": 3}});
    let refused = [
        db.query_one("SELECT pml_begin($1)", &[&request]),
        db.query_one("SELECT pml_register($1, 'math:fact')", &[&code]),
    ];
    for refused in refused {
        let error = pml_tests::failure(refused);
        assert_eq!(error.code().code(), "PM005");
        assert_eq!(
            error.message(),
            "Invalid code: line 2 calls \"math:fact\", which is the name of this code itself"
        );
        assert!(error.hint().unwrap().contains("loop"), "{error:?}");
    }
    db.execute("SELECT pml_register($1, 'math:other')", &[&code]).unwrap();
    assert_eq!(db.refusal("SELECT pml_rename('math:other', 'math:fact')").code().code(), "PM005");
    // A word in a comment is no call.
    db.batch_execute("SELECT pml_register('/* mcp.math.sum() */ return 1', 'math:sum')").unwrap();
}
