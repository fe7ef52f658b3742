//! Names in code: every spelling that the list of tools suggests links; ambiguous and recursive ones are errors.

use pml_tests::{Ask, Database, failure};
use postgres::Client;

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

fn linked(db: &mut Client, call: &str) -> String {
    db.text("SELECT pml_transform($1)", &[&call]).unwrap()
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_').filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |camel, word| camel + &word[..1].to_uppercase() + &word[1..])
}

#[test]
fn every_spelling_that_the_list_of_tools_suggests_links() {
    let mut db = Database::new().connect();
    let long = format!("data-tools:{}", "read-json_file-".repeat(7));
    let names = [
        "my-odd_name",
        "data-tools:read_json-file",
        "ab_cd-ef:gh-ij_kl",
        "a:b:c",
        ":xx-yy_zz",
        "Mixed-Case_name",
        &long,
    ];
    for (number, name) in names.into_iter().enumerate() {
        let fqdn = db.text("SELECT pml_register($1, $2)", &[&format!("return {number}"), &name]).unwrap();
        let wire = db.text("SELECT tool_name FROM pml_tools() WHERE name = $1", &[&name]).unwrap();
        let (namespace, action) = wire.strip_prefix("mcp__").unwrap().split_once("__").unwrap();
        let (plain_namespace, plain_action) = (namespace.replace('-', "_"), action.replace('-', "_"));
        let mut calls = vec![
            format!("mcp.{plain_namespace}.{plain_action}()"),
            format!("mcp[\"{namespace}\"][\"{action}\"]()"),
            format!("mcp.{plain_namespace}[\"{action}\"]()"),
            format!("mcp[\"{namespace}:{action}\"]()"),
            format!("mcp[\"{name}\"]()"),
            format!("capabilities[\"{name}\"]()"),
            format!("const {{ {plain_action}: call }} = mcp.{plain_namespace}; return call()"),
        ];
        // A hash at the end has no humps.
        if name.len() < 50 {
            calls.push(format!("mcp.{}.{}()", camel_case(&plain_namespace), camel_case(&plain_action)));
        }
        if !name.contains(':') {
            calls.push(format!("capabilities.{plain_action}()"));
            calls.push(format!("capabilities.{}()", camel_case(&plain_action)));
            calls.push(format!("mcp.{plain_action}()"));
        }
        for call in calls {
            let linked = linked(&mut db, &call);
            assert!(linked.contains(&fqdn), "{name} ({wire}) as {call}: {linked}");
        }
        // A name that is only known when the code runs.
        for key in [name.to_owned(), format!("{plain_namespace}:{plain_action}")] {
            let found = db.text("SELECT pml_callable($1) ->> 'key'", &[&key]);
            assert_eq!(found.as_deref(), Some(&*fqdn), "{key}");
        }
    }
    for call in ["mcp.util.my_odd()", "mcp.fs.my_odd_name()", "mcp.data.tools_read_json_file()", "mcp.b.c()"]
    {
        assert_eq!(linked(&mut db, call), call);
    }
}

#[test]
fn names_that_differ_in_spelling_only_are_never_mistaken_for_each_other() {
    let mut db = Database::new().connect();
    let register = |db: &mut Client, code: &str, name: &str| {
        db.text("SELECT pml_register($1, $2)", &[&code, &name]).unwrap()
    };
    let one = register(&mut db, "return 1", "my-odd_name");
    let other = register(&mut db, "return 2", "my_odd-name");
    for call in ["mcp.util.my_odd_name()", "capabilities.myOddName()", "mcp.my_odd_name()"] {
        for statement in [
            "SELECT pml_transform($1)",
            "SELECT pml_register($1, 'a:caller')",
            "SELECT pml_begin(jsonb_build_object('code', $1::text))",
        ] {
            let error = failure(db.query(statement, &[&call]));
            assert_eq!(error.code().code(), "PM005", "{}", error.message());
            assert!(
                error.message().ends_with("could be any of \"my-odd_name\", \"my_odd-name\""),
                "{}",
                error.message()
            );
            assert_eq!(error.hint(), Some("Write the name in quotes, as it is: mcp[\"my-odd_name\"](…)."));
        }
    }
    assert_eq!(failure(db.query("SELECT pml_callable('util:my_odd_name')", &[])).code().code(), "PM005");
    for (name, fqdn) in [("my-odd_name", &one), ("my_odd-name", &other)] {
        for call in [
            format!("mcp[\"{name}\"]()"),
            format!("mcp.util[\"{name}\"]()"),
            format!("capabilities[\"{name}\"]()"),
        ] {
            assert!(linked(&mut db, &call).contains(fqdn), "{call}");
        }
    }
    // A name that is just as it was written is the one that is meant.
    let exact = register(&mut db, "return 3", "my_odd_name");
    for call in [
        "mcp.util.my_odd_name()",
        "capabilities.my_odd_name()",
        "capabilities.myOddName()",
        "mcp.util.myOddName()",
    ] {
        assert!(linked(&mut db, call).contains(&exact), "{call}: {}", linked(&mut db, call));
    }
    // What is shown can be saved again.
    register(&mut db, "return mcp[\"my_odd-name\"]()", "a:caller");
    let shown = db.text("SELECT pml_code('a:caller')", &[]).unwrap();
    assert!(linked(&mut db, &shown).contains(&other), "{shown}");
    // Deleted ones are no more in question.
    db.batch_execute("SELECT pml_delete('my_odd_name'), pml_delete('my_odd-name', force => true)").unwrap();
    assert!(linked(&mut db, "mcp.util.my_odd_name()").contains(&one));
}

#[test]
fn what_others_keep_private_makes_no_name_ambiguous() {
    let database = Database::new();
    let mut admin = database.connect();
    for who in ["alice", "bob"] {
        let role = database.create_role(who, &[]);
        admin.batch_execute(&format!("SELECT pml_grant('{role}', 'local', 'default')")).unwrap();
    }
    let (mut alice, mut bob) = (database.connect_as("alice"), database.connect_as("bob"));
    let hers = alice.text("SELECT pml_register('return 1', 'my-odd_name')", &[]).unwrap();
    let his = bob.text("SELECT pml_register('return 2', 'my_odd-name')", &[]).unwrap();
    let call = "capabilities.my_odd_name()";
    assert!(linked(&mut alice, call).contains(&hers));
    assert!(linked(&mut bob, call).contains(&his));
}

#[test]
fn a_tool_is_called_by_every_spelling_of_its_name() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'files:read_text-file')").unwrap();
    db.batch_execute(r#"SELECT pml_register_tools('files', '[{"name": "read-text-file"}]')"#).unwrap();
    let call = "mcp.files.read_text_file()";
    assert_eq!(linked(&mut db, call), call);
    for name in ["files:read_text_file", "files:readTextFile", "files:read-text_file"] {
        let error = failure(db.query("SELECT pml_register('return 2', $1)", &[&name]));
        assert_eq!(error.code().code(), "PM003", "{}", error.message());
    }
    let noted = db.texts("SELECT description FROM pml_tools() WHERE kind = 'capability'");
    assert!(noted[0].contains("Clashes with the tool files:read-text-file"), "{noted:?}");
}

#[test]
fn code_that_calls_its_own_name_in_another_spelling_is_refused() {
    let mut db = Database::new().connect();
    for (name, code) in [
        ("my-odd_fact", "return capabilities.my_odd_fact()"),
        ("my-odd_fact", "return mcp.myOddFact()"),
        ("big-math:fact-of_n", "return mcp.big_math.factOfN()"),
        ("a:b:c", "return mcp.a.b_c()"),
    ] {
        let error = failure(db.query("SELECT pml_register($1, $2)", &[&code, &name]));
        assert_eq!(error.code().code(), "PM005", "{}", error.message());
        assert!(error.message().contains(&format!("line 1 calls \"{name}\"")), "{}", error.message());
    }
    // Unless another one has just that name.
    db.batch_execute("SELECT pml_register('return 1', 'math:fact_of'), pml_register('return mcp.math.fact_of()', 'math:fact-of')").unwrap();
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
        let error = failure(refused);
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
