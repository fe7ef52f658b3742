//! Wire names: valid for every client whatever the capability or tool is called, unique, and reversible.

use std::{collections::BTreeSet, thread};

use pml_tests::{Ask, Database, failure};
use postgres::Client;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

/// What a wire name stands for in the current scope: the FQDN, or server:tool.
fn meant(db: &mut Client, tool_name: &str) -> Option<String> {
    let row = db.query_opt("SELECT kind, name FROM pml_internal.pml_tool($1)", &[&tool_name]).unwrap()?;
    let (kind, name): (String, String) = (row.get(0), row.get(1));
    if kind == "tool" { Some(name) } else { db.text("SELECT pml_resolve($1)", &[&name]) }
}

fn tool_name(db: &mut Client, name: &str) -> String {
    db.text("SELECT tool_name FROM pml_tools() WHERE kind = 'capability' AND name = $1", &[&name]).unwrap()
}

fn listed(db: &mut Client) -> Vec<(String, String)> {
    let rows = db.query("SELECT tool_name, coalesce(fqdn, name) FROM pml_tools()", &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn is_accepted_by_clients(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

#[test]
fn every_listed_name_is_callable() {
    let any_name = prop_oneof![
        // Short ones of few characters clash often; long ones are shortened.
        "[aB_:-]{1,6}",
        "[A-Za-z0-9_:-]{1,128}",
        "(ns:)?[x]{100,120}[A-Za-z0-9_:-]{1,8}",
    ];
    let mut runner = TestRunner::new(Config { cases: 12, failure_persistence: None, ..Config::default() });
    let database = Database::new();
    let count = std::cell::Cell::new(0);
    runner
        .run(&proptest::collection::btree_set(any_name, 1..40), |names: BTreeSet<String>| {
            let mut db = database.connect();
            count.set(count.get() + 1);
            let project = count.get();
            db.batch_execute(&format!("SET client_min_messages = error; SET pml.project = 'p{project}'"))
                .unwrap();
            let mut valid = 0;
            for (number, name) in names.iter().enumerate() {
                let code = format!("return {number}");
                // Reserved forms are refused; a real tool of the same name as a capability makes them clash.
                if db.query("SELECT pml_register($1, $2)", &[&code, name]).is_ok() {
                    valid += 1;
                }
                if let Some((server, tool)) = name.split_once(':')
                    && db.query("SELECT pml_register_tool($1, $2)", &[&server, &tool]).is_ok()
                {
                    valid += 1;
                }
            }
            let tools = listed(&mut db);
            prop_assert_eq!(tools.len(), valid);
            let distinct: BTreeSet<&str> = tools.iter().map(|(name, _)| name.as_str()).collect();
            prop_assert_eq!(distinct.len(), valid);
            for (tool, target) in &tools {
                prop_assert!(is_accepted_by_clients(tool), "{}", tool);
                prop_assert_eq!(meant(&mut db, tool), Some(target.clone()));
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn the_plain_form_is_namespace_and_action() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'fs:read_json'), pml_register('return 2', 'My-Reader'), pml_register_tool('github', 'create_issue')").unwrap();
    let names: Vec<String> = listed(&mut db).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["mcp__fs__read_json", "mcp__github__create_issue", "mcp__util__My-Reader"]);
}

#[test]
fn a_clash_gets_a_suffix_that_stays() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'a:b:c'); SELECT pml_register('return 2', 'a:b_c'); SELECT pml_register_tool('a', 'b_c')").unwrap();
    let (first, second, tool) = (
        tool_name(&mut db, "a:b:c"),
        tool_name(&mut db, "a:b_c"),
        db.text("SELECT tool_name FROM pml_tools() WHERE kind = 'tool'", &[]).unwrap(),
    );
    assert_eq!(first, "mcp__a__b_c");
    assert!(second.starts_with("mcp__a__b_c_") && tool.starts_with("mcp__a__b_c_") && second != tool);
    // Though the plain form could be had again, nobody's name changes.
    db.batch_execute("SELECT pml_delete('a:b:c')").unwrap();
    assert_eq!(tool_name(&mut db, "a:b_c"), second);
    db.batch_execute("SELECT pml_register_tool('a', 'b_c', 'changed')").unwrap();
    assert_eq!(db.text("SELECT tool_name FROM pml_tools() WHERE kind = 'tool'", &[]).unwrap(), tool);
    // And the deleted one's name doesn't come to mean something else.
    db.batch_execute("SELECT pml_register_tools('a', '[]'); SELECT pml_register('return 3', 'a:b-c'), pml_register('return 4', 'a:b_:c')").unwrap();
    assert!(listed(&mut db).iter().all(|(name, _)| *name != first));
}

#[test]
fn after_a_rename_the_old_tool_name_works_until_the_alias_goes() {
    let mut db = Database::new().connect();
    db.batch_execute("SET client_min_messages = error").unwrap();
    let fqdn = db.text("SELECT pml_register('return 1', 'fs:old')", &[]).unwrap();
    db.batch_execute("SELECT pml_rename('fs:old', 'data:new')").unwrap();
    assert_eq!(listed(&mut db), [("mcp__data__new".to_owned(), fqdn.clone())]);
    assert_eq!(meant(&mut db, "mcp__fs__old"), Some(fqdn.clone()));
    db.batch_execute("SELECT pml_rename('data:new', 'fs:old')").unwrap();
    assert_eq!(listed(&mut db), [("mcp__fs__old".to_owned(), fqdn.clone())]);
    assert_eq!(meant(&mut db, "mcp__data__new"), Some(fqdn.clone()));
    db.batch_execute("SELECT pml_release_alias('data:new')").unwrap();
    assert_eq!(meant(&mut db, "mcp__data__new"), None);
    db.batch_execute("SELECT pml_delete('fs:old')").unwrap();
    assert_eq!(listed(&mut db), []);
    let error = failure(
        db.query("SELECT pml_resolve((SELECT name FROM pml_internal.pml_tool('mcp__fs__old')))", &[]),
    );
    assert_eq!(error.code().code(), "PM001");
}

#[test]
fn only_named_capabilities_are_listed() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register('return 1'), pml_register('return 2', 'two'), pml_register_server('x')",
    )
    .unwrap();
    assert_eq!(listed(&mut db).len(), 1);
    db.batch_execute("SELECT pml_register('return 1', 'one')").unwrap();
    assert_eq!(db.texts("SELECT name FROM pml_tools() ORDER BY 1"), ["one", "two"]);
    assert_eq!(db.number("SELECT count(*) FROM pml.tool_names"), 2);
}

#[test]
fn hand_written_sql_has_tool_names_too() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "INSERT INTO pml.capability_records (display_name, code_snippet) VALUES ('x:y', 'return 1');
         UPDATE pml.capability_records SET display_name = 'x:z' WHERE display_name = 'x:y';
         INSERT INTO pml.tool_schema (org, project, tool_id, server_id, name, tool_name) VALUES ('local', 'default', 's:t', 's', 't', 'chosen');
         UPDATE pml.tool_schema SET tool_id = 's:u', name = 'u'",
    )
    .unwrap();
    assert_eq!(db.texts("SELECT tool_name FROM pml_tools()"), ["mcp__s__u", "mcp__x__z"]);
    assert_eq!(db.number("SELECT count(*) FROM pml.tool_names"), 3);
    db.batch_execute("DELETE FROM pml.tool_schema").unwrap();
    assert_eq!(db.texts("SELECT tool_name FROM pml.tool_names ORDER BY 1"), ["mcp__x__y", "mcp__x__z"]);
}

#[test]
fn many_sessions_want_one_tool_name() {
    let database = Database::new();
    let names = ["a:b:c:d", "a:b_c:d", "a:b:c_d", "a:b_c_d"];
    let threads: Vec<_> = names
        .into_iter()
        .enumerate()
        .map(|(number, name)| {
            let mut db = database.connect();
            thread::spawn(move || {
                db.query("SELECT pml_register($1, $2)", &[&format!("return {number}"), &name]).unwrap();
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut db = database.connect();
    let tools = listed(&mut db);
    assert_eq!(tools.iter().filter(|(name, _)| name == "mcp__a__b_c_d").count(), 1);
    for (name, fqdn) in tools {
        assert_eq!(meant(&mut db, &name), Some(fqdn));
    }
}
