//! pml_discover: search by intent.

use pml_tests::{Ask, Database, failure};
use postgres::Client;
use serde_json::Value;

fn database() -> (Database, Client) {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute(
        "SELECT pml_register('return 1', 'fs:readJson', 'Loads a configuration file and parses it', tags => ARRAY['config'], visibility => 'project');
         SELECT pml_register('return 2', 'mail:send-invoice', 'Sends an invoice by e-mail', visibility => 'project');
         SELECT pml_register('return await mcp.github.create_issue({ title: args.title })', visibility => 'project', description => 'reports a bug');
         SELECT pml_register_tools('filesystem', '[
           {\"name\": \"read_text_file\", \"description\": \"Read the complete contents of a file\", \"inputSchema\": {\"type\": \"object\", \"properties\": {\"path\": {}, \"head\": {}}}},
           {\"name\": \"write_file\", \"description\": \"Create a new file or overwrite an existing one\"}]');
         SELECT pml_register_tools('github', '[{\"name\": \"create_issue\", \"description\": \"Open an issue in a repository\"}]')",
    )
    .unwrap();
    (database, db)
}

fn found(db: &mut Client, intent: &str) -> Vec<String> {
    let rows = db.query("SELECT name FROM pml_discover($1)", &[&intent]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn words_find_names_descriptions_tags_and_tools_however_they_are_written() {
    let (_database, mut db) = database();
    for (intent, first) in [
        ("read a json file", "fs:readJson"),
        ("readJson", "fs:readJson"),
        ("READ_JSON", "fs:readJson"),
        ("parsing configurations", "fs:readJson"),
        ("config", "fs:readJson"),
        ("send the invoices", "mail:send-invoice"),
        ("invoic", "mail:send-invoice"),
        ("read the contents of a text file", "filesystem:read_text_file"),
        ("overwrite a file", "filesystem:write_file"),
        ("open an issue", "github:create_issue"),
    ] {
        assert_eq!(found(&mut db, intent)[0], first, "{intent}");
    }
    assert!(found(&mut db, "report bugs")[0].starts_with("unnamed_"));
    assert!(found(&mut db, "zebra").is_empty());
}

#[test]
fn a_row_says_what_a_caller_needs() {
    let (_database, mut db) = database();
    let row = db.query_one("SELECT type, tool_name, input_schema, score, server_id FROM pml_discover('read text file contents', 'tool', \"limit\" => 1)", &[]).unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), ("tool", "mcp__filesystem__read_text_file"));
    assert!(row.get::<_, Value>(2)["properties"].get("head").is_some());
    assert!((0.7..=1.0).contains(&row.get::<_, f32>(3)));
    let row = db.query_one("SELECT type, tool_name, input_schema, usage_count, source FROM pml_discover('json', 'capability')", &[]).unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), ("capability", "mcp__fs__readJson"));
    assert_eq!(
        (row.get::<_, Value>(2)["type"].as_str(), row.get::<_, i64>(3), row.get::<_, &str>(4)),
        (Some("object"), 0, "return 1")
    );
}

#[test]
fn results_can_be_narrowed_and_paged() {
    let (_database, mut db) = database();
    let names = |db: &mut Client, arguments: &str| {
        db.texts(&format!("SELECT name FROM pml_discover('read a file', {arguments})"))
    };
    assert!(names(&mut db, "'tool'").iter().all(|name| name.starts_with("filesystem:")));
    assert!(names(&mut db, "'capability'").iter().all(|name| name == "fs:readJson"));
    let all = names(&mut db, "'all'");
    assert_eq!(all.len(), 3);
    assert_eq!(names(&mut db, "\"limit\" => 1, \"offset\" => 1"), all[1..2]);
    assert_eq!(names(&mut db, "min_score => 0.99"), all[..1]);
    assert_eq!(names(&mut db, "\"limit\" => -1").len(), 0);
    assert_eq!(names(&mut db, "\"limit\" => NULL, \"offset\" => NULL").len(), 3);
    let error = db.refusal("SELECT * FROM pml_discover('x', 'function')");
    assert_eq!((error.code().code(), error.hint()), ("22023", Some("Use tool, capability or all.")));
}

#[test]
fn what_changes_is_found_by_its_new_words() {
    let (_database, mut db) = database();
    db.batch_execute(
        "SELECT pml_rename('mail:send-invoice', 'post:dispatch', 'Ships a bill', tags => ARRAY['finance'])",
    )
    .unwrap();
    for intent in ["dispatch", "bill", "finance"] {
        assert_eq!(found(&mut db, intent), ["post:dispatch"], "{intent}");
    }
    assert!(found(&mut db, "invoice").is_empty());
    db.batch_execute("UPDATE pml.capability_records SET code_snippet = 'return mcp.stripe.charge({})', search = 'forged' WHERE display_name = 'post:dispatch'").unwrap();
    assert_eq!(found(&mut db, "stripe"), ["post:dispatch"]);
    assert!(found(&mut db, "forged").is_empty());
    db.batch_execute("SELECT pml_delete('post:dispatch'); SELECT pml_register_tools('filesystem', '[]')")
        .unwrap();
    assert!(found(&mut db, "bill").is_empty() && found(&mut db, "overwrite").is_empty());
}

#[test]
fn any_text_is_an_intent() {
    let (_database, mut db) = database();
    let huge = "read file ".repeat(200_000);
    for intent in [
        "",
        " ",
        "the of and",
        "'; DROP TABLE x --",
        "a & b | !c <-> d:*",
        "\\ ' \\'",
        "é🦀\u{1}",
        "日本語",
        "-",
        &huge,
    ] {
        db.query("SELECT * FROM pml_discover($1)", &[&intent])
            .unwrap_or_else(|error| panic!("{intent:.20}: {error:?}"));
    }
    assert_eq!(db.query("SELECT * FROM pml_discover(NULL)", &[]).unwrap().len(), 0);
    assert!(!found(&mut db, &huge).is_empty());
}

#[test]
fn descriptions_of_any_size_can_be_kept() {
    let (_database, mut db) = database();
    let words: String = (0..400_000).map(|number| format!("w{number} ")).collect();
    db.query("SELECT pml_register('return 9', 'long:one', $1)", &[&words]).unwrap();
    assert_eq!(found(&mut db, "w5"), ["long:one"]);
}

#[test]
fn what_one_may_not_see_is_not_found() {
    let (database, mut db) = database();
    db.batch_execute("SELECT pml_register('return 3', 'secret:plan', 'a clandestine plan')").unwrap();
    database.create_role("bob", &[]);
    database.create_role("guest", &[]);
    db.batch_execute(&format!("SELECT pml_grant('{}', 'local', 'default')", database.role("bob"))).unwrap();
    let mut bob = database.connect_as("bob");
    assert_eq!(found(&mut db, "clandestine plan"), ["secret:plan"]);
    assert!(found(&mut bob, "clandestine plan").is_empty());
    assert_eq!(found(&mut bob, "json"), ["fs:readJson"]);
    let error = failure(database.connect_as("guest").query("SELECT * FROM pml_discover('json')", &[]));
    assert_eq!(error.code().code(), "PM006");
}
