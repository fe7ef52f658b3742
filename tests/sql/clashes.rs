//! A capability can't take the place of a server's tool.

use pml_tests::{Ask, Database, Run};
use postgres::Client;
use serde_json::{Value, json};

const TOOLS: &str =
    r#"SELECT pml_register_tools('filesystem', '[{"name": "read_text_file"}, {"name": "listDir"}]')"#;

fn with_tools() -> Client {
    let mut db = Database::new().connect();
    db.batch_execute(TOOLS).unwrap();
    db
}

/// Which capabilities the code calls, by how it is linked.
fn linked(db: &mut Client, code: &str) -> String {
    db.text("SELECT pml_transform($1)", &[&code]).unwrap()
}

#[test]
fn a_tools_name_is_refused_in_every_spelling_and_by_every_way() {
    let mut db = with_tools();
    db.batch_execute(
        "SELECT pml_register('return 1', 'a:a'); SELECT pml_register('return args.text', 'a:b')",
    )
    .unwrap();
    for name in [
        "filesystem:read_text_file",
        "filesystem:readTextFile",
        "filesystem:listDir",
        "filesystem:list_dir",
        "mcp__filesystem__read_text_file",
        "filesystem__read_text_file",
        "filesystem__listDir",
    ] {
        for statement in [
            format!("SELECT pml_register('return 2', '{name}')"),
            format!(
                "SELECT pml_register(source => '{{\"type\": \"tool\", \"toolId\": \"x:y\"}}', name => '{name}')"
            ),
            format!("SELECT pml_rename('a:a', '{name}')"),
            format!("SELECT pml_fork('a:a', '{name}')"),
            format!("SELECT pml_merge(ARRAY['a:a', 'a:b'], '{name}')"),
            format!("SELECT pml_cap('cap_rename', '{{\"name\": \"a:a\", \"newName\": \"{name}\"}}')"),
            format!("UPDATE pml.capability_records SET display_name = '{name}' WHERE display_name = 'a:a'"),
            format!(
                "INSERT INTO pml.capability_records (display_name, code_snippet) VALUES ('{name}', 'return 3')"
            ),
        ] {
            let error = db.refusal(&statement);
            assert_eq!(error.code().code(), "PM003", "{statement}: {}", error.message());
            let message =
                format!("Capability name '{name}' is the name of a server's tool in scope local.default");
            assert_eq!(error.message(), message, "{statement}");
            assert!(error.hint().unwrap().contains(&format!("{name}_2")), "{statement}");
        }
    }
    db.batch_execute("SELECT pml_register('return 2', 'filesystem:read_config')").unwrap();
}

#[test]
fn the_tools_of_base_servers_count_everywhere() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SET pml.org = 'pml'; SET pml.project = 'std'; SELECT pml_register_tool('shell', 'run'); RESET pml.org; RESET pml.project",
    )
    .unwrap();
    assert_eq!(db.refusal("SELECT pml_register('return 2', 'shell:run')").code().code(), "PM003");
    let database = Database::new();
    database.create_role("alice", &[]);
    let mut admin = database.connect();
    admin
        .batch_execute(&format!(
            "SET pml.org = 'pml'; SET pml.project = 'std'; SELECT pml_register_tool('shell', 'run');
             SELECT pml_grant('{}', 'local', 'default')",
            database.role("alice")
        ))
        .unwrap();
    let mut alice = database.connect_as("alice");
    assert_eq!(alice.refusal("SELECT pml_register('return 2', 'shell:run')").code().code(), "PM003");
}

#[test]
fn a_run_under_a_tools_name_is_refused_before_it_has_effects() {
    let mut db = with_tools();
    for name in ["filesystem:read_text_file", "filesystem:readTextFile", "mcp__filesystem__listDir"] {
        let request = json!({"code": "return 7", "name": name}).to_string();
        let error = db.refusal(&format!("SELECT pml_begin('{request}')"));
        let message =
            format!("Capability name '{name}' is the name of a server's tool in scope local.default");
        assert_eq!((error.code().code(), error.message()), ("PM003", message.as_str()));
    }
    assert_eq!(db.number("SELECT count(*) FROM pml.workflow_state"), 0);
}

#[test]
fn a_run_during_which_the_tool_arrives_says_why_it_has_no_name() {
    let mut db = Database::new().connect();
    let request = json!({"code": "return 7", "name": "filesystem:read_text_file"});
    let plan: Value = db.query_one("SELECT pml_begin($1)", &[&request]).unwrap().get(0);
    db.batch_execute(TOOLS).unwrap();
    let workflow = plan["workflow_id"].as_str().unwrap();
    let outcome = json!({"success": true, "result": 7});
    let answer: Value =
        db.query_one("SELECT pml_finish($1::text::uuid, $2)", &[&workflow, &outcome]).unwrap().get(0);
    assert_eq!((&answer["status"], &answer["result"]), (&json!("success"), &json!(7)));
    let warning = answer["warning"].as_str().unwrap();
    assert!(
        warning.starts_with("Not saved under its name: Capability name 'filesystem:read_text_file' is"),
        "{warning}"
    );
    assert!(answer["capabilityName"].as_str().unwrap().starts_with("unnamed_"), "{answer}");
}

#[test]
fn what_had_its_name_before_the_tool_runs_under_it() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 7', 'filesystem:read_text_file')").unwrap();
    db.batch_execute(TOOLS).unwrap();
    let answer = db.run(&json!({"code": "return 7", "name": "filesystem:read_text_file"}), &json!(7));
    assert_eq!(answer["capabilityName"], "filesystem:read_text_file", "{answer}");
    assert_eq!(answer.get("warning"), None);
}

#[test]
fn when_the_server_comes_later_the_tool_wins_in_new_code_and_the_clash_is_shown() {
    let mut db = Database::new().connect();
    let fqdn = db.text("SELECT pml_register('return 1', 'filesystem:read_text_file')", &[]).unwrap();
    let before = "return await mcp.filesystem.readTextFile({})";
    assert!(linked(&mut db, before).contains(&fqdn));
    db.batch_execute("SELECT pml_register('return await mcp.filesystem.read_text_file({})', 'old:caller')")
        .unwrap();
    db.batch_execute(TOOLS).unwrap();
    for code in [
        before,
        "return await mcp.filesystem.read_text_file({})",
        "return mcp[\"filesystem:read_text_file\"]({})",
    ] {
        assert_eq!(linked(&mut db, code), code);
    }
    // Code that was saved before means what it meant; whoever means the capability says its scope.
    let whois = |db: &mut Client, name: &str| -> Value {
        db.query_one("SELECT pml_whois($1)", &[&name]).unwrap().get(0)
    };
    assert_eq!(whois(&mut db, "old:caller")["dependencies"], json!([fqdn]));
    assert!(linked(&mut db, "return mcp[\"local.default:filesystem:read_text_file\"]({})").contains(&fqdn));
    assert_eq!(whois(&mut db, "filesystem:read_text_file")["clashes_with"], "filesystem:read_text_file");
    assert_eq!(whois(&mut db, "old:caller")["clashes_with"], Value::Null);
    for (tool, place) in [
        ("cap_lookup", "/clashes_with"),
        ("cap_whois", "/clashes_with"),
        ("cap_list", "/capabilities/0/clashes_with"),
    ] {
        let arguments = if tool == "cap_list" {
            json!({"pattern": "filesystem:*"})
        } else {
            json!({"name": "filesystem:read_text_file"})
        };
        let answer: Value = db.query_one("SELECT pml_cap($1, $2)", &[&tool, &arguments]).unwrap().get(0);
        assert_eq!(answer.pointer(place), Some(&json!("filesystem:read_text_file")), "{tool}: {answer}");
    }
    let listed = db.texts("SELECT description FROM pml_tools() WHERE kind = 'capability' ORDER BY name");
    assert!(listed[0].contains("Clashes with the tool filesystem:read_text_file"), "{listed:?}");
    assert!(!listed[1].contains("Clashes"), "{listed:?}");
    assert_eq!(
        db.texts("SELECT clashes_with FROM pml.tools WHERE clashes_with IS NOT NULL"),
        ["filesystem:read_text_file"]
    );
    // What is shown can be saved again without becoming a call of the tool.
    let shown = db.text("SELECT pml_code('old:caller')", &[]).unwrap();
    assert!(linked(&mut db, &shown).contains(&fqdn), "{shown}");
}

#[test]
fn an_alias_gives_way_to_a_tool_that_comes_later() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SET client_min_messages = error;
         SELECT pml_register('return 1', 'filesystem:read_text_file'); SELECT pml_rename('filesystem:read_text_file', 'fs:read');
         SELECT pml_register('return 2', 'filesystem:list-dir'); SELECT pml_rename('filesystem:list-dir', 'fs:list')",
    )
    .unwrap();
    db.batch_execute(TOOLS).unwrap();
    for former in ["filesystem:read_text_file", "filesystem:list-dir"] {
        assert_eq!(db.refusal(&format!("SELECT pml_resolve('{former}')")).code().code(), "PM001", "{former}");
        let claims = format!("SELECT count(*) FROM pml.name_claims WHERE name = '{former}'");
        assert_eq!(db.number(&claims), 0, "{former}");
    }
    assert_eq!(
        db.texts("SELECT tool_name FROM pml_tools() WHERE kind = 'tool' ORDER BY tool_name"),
        ["mcp__filesystem__listDir", "mcp__filesystem__read_text_file"]
    );
    // The capabilities stay, with their names and what was renamed.
    assert_eq!(
        db.texts("SELECT name FROM pml_list(sort_by => 'name') ORDER BY name"),
        ["fs:list", "fs:read"]
    );
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_rename_history"), 2);
    // Listing the same tools again changes nothing.
    assert_eq!(db.number(&TOOLS.replace("SELECT pml", "SELECT 0::bigint + pml")), 0);
}

#[test]
fn an_alias_never_stands_for_a_tool() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SET client_min_messages = error;
         SELECT pml_register('return 1', 'filesystem:read_text_file'); SELECT pml_register('return 2', 'filesystem:list_dir');
         SELECT pml_rename('filesystem:list_dir', 'fs:list')",
    )
    .unwrap();
    db.batch_execute(TOOLS).unwrap();
    // One that was an alias before, and one that would become one.
    db.batch_execute("SELECT pml_rename('filesystem:read_text_file', 'fs:read')").unwrap();
    for code in [
        "return mcp.filesystem.list_dir({})",
        "return mcp.filesystem.listDir({})",
        "return mcp.filesystem.read_text_file({})",
    ] {
        assert_eq!(linked(&mut db, code), code);
    }
    assert_eq!(db.refusal("SELECT pml_resolve('filesystem:read_text_file')").code().code(), "PM001");
    assert_eq!(db.number("SELECT count(*) FROM pml.name_claims WHERE name = 'filesystem:read_text_file'"), 0);
}
