//! Bad input of every kind: a clear error with a SQLSTATE of our own, and nothing changed.

use pml_tests::{Ask, Database, failure};
use postgres::types::ToSql;

/// Every function that takes text, with the one argument that is tried out.
const CALLS: &[&str] = &[
    "SELECT pml_resolve($1)",
    "SELECT * FROM pml_lookup($1)",
    "SELECT pml_code($1)",
    "SELECT pml_whois($1)",
    "SELECT * FROM pml_history($1)",
    "SELECT * FROM pml_dependents($1)",
    "SELECT pml_register('return 5', name => $1)",
    "SELECT pml_register('return 5', version_tag => $1)",
    "SELECT pml_register('return 5', visibility => $1)",
    "SELECT pml_register('return 5', routing => $1)",
    "SELECT pml_update($1, 'return 5')",
    "SELECT pml_update('known', 'return 5', version_tag => $1)",
    "SELECT pml_rename($1, 'fresh')",
    "SELECT pml_rename('known', $1)",
    "SELECT pml_release_alias($1)",
    "SELECT pml_delete($1)",
    "SELECT pml_rollback($1)",
    "SELECT pml_fork($1, 'fresh')",
    "SELECT pml_fork('known', $1)",
    "SELECT pml_register_server($1)",
    "SELECT pml_register_tool($1, 'x')",
    "SELECT pml_parse_fqdn($1)",
    "SELECT pml_fqdn($1, 'b', 'c', 'd', 'return 1')",
    "SELECT * FROM pml_list(visibility => $1)",
    "SELECT * FROM pml_list(sort_by => $1)",
    "SELECT pml_begin(jsonb_build_object('capability', $1::text))",
    "SELECT pml_begin(jsonb_build_object('tool', $1::text))",
    "SELECT pml_begin(jsonb_build_object('code', 'return 5', 'name', $1::text))",
    "SELECT pml_begin(jsonb_build_object('intent', 'x', coalesce($1::text, ''), 1))",
    "SELECT pml_begin(to_jsonb($1::text))",
    "SELECT pml_cap($1)",
    "SELECT pml_cap('cap_lookup', jsonb_build_object('name', $1::text))",
    "SELECT pml_cap('cap_whois', jsonb_build_object('name', $1::text))",
    "SELECT pml_cap('cap_history', jsonb_build_object('name', $1::text))",
    "SELECT pml_cap('cap_rename', jsonb_build_object('name', 'known', 'newName', $1::text, 'visibility', coalesce($1::text, 'x')))",
    "SELECT pml_cap('cap_fork', jsonb_build_object('source', 'known', 'name', $1::text))",
    "SELECT pml_cap('cap_merge', jsonb_build_object('sources', jsonb_build_array($1::text, 'known'), 'name', 'fresh'))",
    "SELECT pml_cap('cap_list', jsonb_build_object(coalesce($1::text, ''), 1))",
    "SELECT * FROM pml_discover('x', $1)",
    "SELECT pml_task_result(gen_random_uuid(), $1)",
    "SELECT pml_task_result(gen_random_uuid(), 't1', format => $1)",
    "SELECT pml_register_tools($1, '[]')",
    "SELECT pml_register_tools('fs', to_json($1::text))",
    "SELECT pml_register_tools('fs', json_build_array(json_build_object('name', 5, 'description', $1::text)))",
    "SELECT pml_tool_used($1, 'x', true, 1)",
    "SELECT pml_act_as($1, 'b', 'c', 'd')",
    "SELECT pml_token_add($1, 'a', 'b', 'c')",
    "SELECT pml_finish(gen_random_uuid(), to_json($1::text))",
    "SELECT pml_check_args('true', to_jsonb($1::text))",
];

fn database() -> postgres::Client {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'known')").unwrap();
    db
}

fn fingerprint(db: &mut postgres::Client) -> Option<String> {
    db.text(
        "SELECT md5(string_agg(everything, '|' ORDER BY everything)) FROM (
           SELECT r::text FROM pml.capability_records r UNION ALL SELECT v::text FROM pml.capability_versions v
           UNION ALL SELECT a::text FROM pml.capability_aliases a UNION ALL SELECT c::text FROM pml.name_claims c
           UNION ALL SELECT t::text FROM pml.tool_schema t UNION ALL SELECT t::text FROM pml.tool_names t
           UNION ALL SELECT w::text FROM pml.workflow_state w UNION ALL SELECT u::text FROM pml.tool_usage u
           UNION ALL SELECT t::text FROM pml.tokens t) AS x (everything)",
        &[],
    )
}

#[test]
fn bad_text_gets_a_clear_error_and_changes_nothing() {
    let mut db = database();
    let before = fingerprint(&mut db);
    let huge = "x".repeat(1 << 20);
    let wild = "é🦀".repeat(1000);
    for call in CALLS {
        for text in
            ["", " ", "a b", "a\u{1}b", "\u{202e}", "'; DROP TABLE x; --", "a.b.c", "@", "a@@b", &huge, &wild]
        {
            let error = failure(db.query(*call, &[&text as &(dyn ToSql + Sync)]));
            let code = error.code().code();
            assert!(code.starts_with("PM") || code == "22023", "{call} with {text:.20?}: {error:?}");
            assert!(error.message().len() < 1500, "{call}: {} bytes", error.message().len());
            assert!(!error.message().contains('\u{1}'), "{call}");
            assert!(error.hint().is_some(), "{call} with {text:.20?}: no hint");
            assert!(!error.detail().unwrap_or_default().contains(".rs"), "{call}: {error:?}");
        }
    }
    assert_eq!(fingerprint(&mut db), before);
}

#[test]
fn null_is_no_surprise() {
    let mut db = database();
    let before = fingerprint(&mut db);
    for call in CALLS {
        let nothing: Option<&str> = None;
        match db.query(*call, &[&nothing]) {
            Ok(rows) => assert!(rows.len() <= 2, "{call}"),
            Err(error) => {
                let code = error.as_db_error().expect("an error of the server").code().code().to_owned();
                assert!(code.starts_with("PM") || code == "22004" || code == "22023", "{call}: {error:?}");
            }
        }
        db.batch_execute("DELETE FROM pml.tool_schema").unwrap();
    }
    // Only the calls in which NULL means "not given" have done anything.
    let names = db.texts("SELECT name FROM pml_list() WHERE name NOT LIKE 'unnamed%' ORDER BY 1");
    assert_eq!(names, ["known"], "{before:?}");
}

#[test]
fn bad_code_is_refused_with_its_place() {
    let mut db = database();
    let before = fingerprint(&mut db);
    for (code, place) in [
        ("return (", "line 1, column"),
        ("const a = 1;\nconst b = ;", "line 2, column"),
        ("import x from 'fs'", "line 1, column"),
    ] {
        let error = failure(db.query("SELECT pml_register($1)", &[&code]));
        assert_eq!(error.code().code(), "PM005");
        assert!(error.message().contains(place), "{}", error.message());
        let error = failure(db.query("SELECT pml_update('known', $1)", &[&code]));
        assert_eq!(error.code().code(), "PM005");
    }
    for code in ["", "  \n"] {
        assert_eq!(failure(db.query("SELECT pml_register($1)", &[&code])).code().code(), "PM005", "{code:?}");
    }
    for code in [
        "(".repeat(100_000),
        "[".repeat(100_000),
        "x".repeat(10 << 20),
        "!".repeat(100_000),
        "`${".repeat(50_000),
    ] {
        assert_eq!(failure(db.query("SELECT pml_register($1)", &[&code])).code().code(), "PM005");
    }
    assert_eq!(fingerprint(&mut db), before);
}

#[test]
fn invalid_utf8_is_stopped_at_the_protocol() {
    let mut db = database();
    let error = db.refusal("SELECT pml_resolve(E'a\\xff')");
    assert_eq!(error.code().code(), "22021");
}

#[test]
fn every_kind_of_error_has_its_own_code() {
    let mut db = database();
    for (statement, code, message) in [
        ("SELECT pml_resolve('nothing')", "PM001", "Capability not found: nothing"),
        ("SELECT pml_resolve('known@v7')", "PM002", "Version v7 not found for known"),
        (
            "SELECT pml_register('return 2', 'known')",
            "PM003",
            "Capability name 'known' already exists in scope local.default",
        ),
        (
            "SELECT pml_register('return 2', 'not valid')",
            "PM004",
            "Invalid capability name: \"not valid\". Must be alphanumeric with underscores, hyphens, and colons only.",
        ),
        ("SELECT pml_resolve('known@newest')", "PM004", "Invalid version specifier: \"@newest\""),
        (
            "UPDATE pml.capability_records SET hash = 'abcd'",
            "PM007",
            "Column \"hash\" of capability \"known\" is immutable",
        ),
    ] {
        let statement =
            statement.replace("SET hash = 'abcd'", "SET hash = 'abcd' WHERE display_name = 'known'");
        let error = db.refusal(&statement);
        assert_eq!((error.code().code(), error.message()), (code, message));
    }
}

#[test]
fn a_slip_of_the_pen_is_pointed_out() {
    let mut db = database();
    db.batch_execute("SELECT pml_register('return 2', 'fs:read_json')").unwrap();
    for (spec, meant) in [
        ("fs:raed_json", "fs:read_json"),
        ("knwon", "known"),
        ("local.default:fs:read_jsn", "local.default:fs:read_json"),
    ] {
        let error = failure(db.query("SELECT pml_resolve($1)", &[&spec]));
        assert_eq!(error.hint().unwrap(), format!("Did you mean \"{meant}\"?"));
    }
}

#[test]
fn what_a_constraint_would_refuse_is_refused_in_words() {
    let database = Database::new();
    let mut admin = database.connect();
    for who in ["alice", "bob"] {
        database.create_role(who, &[]);
        admin
            .batch_execute(&format!("SELECT pml_grant('{}', 'local', 'default')", database.role(who)))
            .unwrap();
    }
    let (mut alice, mut bob) = (database.connect_as("alice"), database.connect_as("bob"));
    let error = admin.refusal("SELECT pml_update('mcp:filesystem', 'return 1')");
    assert_eq!(
        (error.code().code(), error.message()),
        ("PM007", "\"mcp:filesystem\" is a server, and has no code")
    );
    assert!(error.hint().unwrap().contains("pml_register_server"));

    alice.batch_execute("SELECT pml_register('return 1', 'a:a', visibility => 'project'); SELECT pml_register_server('files', visibility => 'project')").unwrap();
    for statement in [
        "SELECT pml_rename('a:a', visibility => 'private')",
        "SELECT pml_register_server('files', visibility => 'private')",
    ] {
        let error = bob.refusal(statement);
        assert_eq!(error.code().code(), "PM006", "{statement}: {}", error.message());
        assert!(
            error.message().ends_with("may make it private") && error.hint().is_some(),
            "{}",
            error.message()
        );
    }
    alice.batch_execute("SELECT pml_rename('a:a', visibility => 'private')").unwrap();
    // The same code of two people: private it may be, shared only once.
    bob.batch_execute("SELECT pml_register('return 1', 'a:b', visibility => 'project')").unwrap();
    let error = alice.refusal("SELECT pml_rename('a:a', visibility => 'project')");
    assert_eq!(error.code().code(), "PM003", "{}", error.message());
    assert!(error.message().contains("its code is already capability \"a:b\""), "{}", error.message());
}
