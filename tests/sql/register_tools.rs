//! A server's list of tools, registered as a whole.

use std::{thread, time::Duration};

use pml_tests::{Ask, Database, as_postgres, failure};
use postgres::Client;
use serde_json::{Value, json};

fn register(db: &mut Client, server: &str, tools: &Value) -> i32 {
    db.query_one("SELECT pml_register_tools($1, $2)", &[&server, tools]).unwrap().get(0)
}

#[test]
fn what_is_new_is_added_what_differs_changed_what_is_gone_removed() {
    let mut db = Database::new().connect();
    let read = json!({"name": "read", "description": "reads", "inputSchema": {"type": "object", "required": ["path"]}});
    assert_eq!(register(&mut db, "fs", &json!([read, {"name": "write"}])), 2);
    assert_eq!(register(&mut db, "other", &json!([{"name": "read"}])), 1);
    let mut changed = read.clone();
    changed["outputSchema"] = json!({"type": "object"});
    changed["annotations"] = json!({"readOnlyHint": true});
    assert_eq!(register(&mut db, "mcp:fs", &json!([changed, {"name": "list"}])), 3);
    assert_eq!(db.texts("SELECT name FROM pml_tools() ORDER BY 1"), ["fs:list", "fs:read", "other:read"]);
    assert_eq!(db.texts("SELECT name FROM pml_tools(ARRAY['other', 'missing'])"), ["other:read"]);
    let row = db.query_one("SELECT description, input_schema, output_schema, server_id, tool FROM pml_tools() WHERE name = 'fs:read'", &[]).unwrap();
    assert_eq!(row.get::<_, &str>(0), "reads");
    assert_eq!(row.get::<_, Value>(1), read["inputSchema"]);
    assert_eq!(row.get::<_, Value>(2), json!({"type": "object"}));
    assert_eq!((row.get::<_, &str>(3), row.get::<_, &str>(4)), ("fs", "read"));
    assert_eq!(register(&mut db, "fs", &json!([])), 2);
}

#[test]
fn a_tool_is_listed_as_its_server_gives_it() {
    let mut db = Database::new().connect();
    let text = r#"{"title":"Read a file","name":"read","inputSchema":{"type":"object","properties":{"zeta":{},"path":{},"a":{}}},"annotations":{"readOnlyHint":true},"_meta":{"b":1,"a":2}}"#;
    let register = |db: &mut Client, tool: &str| {
        let list = format!("[{tool}]");
        db.number(&format!("SELECT pml_register_tools('fs', '{list}')::bigint"))
    };
    let listed = "SELECT definition::text FROM pml_tools()";
    assert_eq!(register(&mut db, text), 1);
    assert_eq!(db.texts(listed), [text]);
    assert_eq!(register(&mut db, text), 0);
    // What is only shown counts as a change too.
    for changed in
        [text.replace("true", "false"), text.replace(r#""zeta":{},"path":{}"#, r#""path":{},"zeta":{}"#)]
    {
        assert_eq!(register(&mut db, &changed), 1);
        assert_eq!(db.texts(listed), [changed]);
    }
    // Nobody is shown what isn't so any more.
    let stale = "UPDATE pml.tool_schema SET description = 'another'";
    let error = db.refusal(stale);
    assert_eq!(error.code().code(), "22023", "{}", error.message());
    db.batch_execute("SELECT pml_register_tool('fs', 'read', 'another')").unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml_tools() WHERE definition IS NULL"), 1);
}

#[test]
fn the_same_list_again_writes_nothing_and_tells_nobody() {
    let database = Database::new();
    let (mut db, mut listener) = (database.connect(), database.connect());
    let tools =
        json!([{"name": "b", "description": null}, {"name": "a", "inputSchema": null}, {"name": "a"}]);
    assert_eq!(register(&mut db, "fs", &tools), 2);
    listener.batch_execute("LISTEN pml_tools_changed").unwrap();
    let before = db.texts("SELECT xmin::text || ctid::text FROM pml.tool_schema ORDER BY 1");
    assert_eq!(register(&mut db, "fs", &tools), 0);
    assert_eq!(db.texts("SELECT xmin::text || ctid::text FROM pml.tool_schema ORDER BY 1"), before);
    db.batch_execute("NOTIFY pml_tools_changed, 'marker'").unwrap();
    let mut heard = Vec::new();
    while heard.is_empty() {
        heard = listener.notifications_for(Duration::from_millis(20));
    }
    assert_eq!(heard, ["marker"]);
}

#[test]
fn a_bad_list_is_refused_whole() {
    let mut db = Database::new().connect();
    register(&mut db, "fs", &json!([{"name": "kept"}]));
    for (server, tools, message) in [
        ("fs", json!({}), "a list"),
        ("fs", json!("x"), "a list"),
        ("fs", json!([{"name": "ok"}, 5]), "position 2: it is not an object"),
        ("fs", json!([{}]), "position 1: its name"),
        ("fs", json!([{"name": 7}]), "its name"),
        ("fs", json!([{"name": "a b"}]), "its name"),
        ("fs", json!([{"name": "x".repeat(129)}]), "its name"),
        ("fs", json!([{"name": "a", "description": {}}]), "its description"),
        ("fs", json!([{"name": "a", "inputSchema": []}]), "its inputSchema"),
        ("fs", json!([{"name": "a", "outputSchema": true}]), "its outputSchema"),
    ] {
        let error = failure(db.query("SELECT pml_register_tools($1, $2)", &[&server, &tools]));
        assert_eq!(error.code().code(), "22023", "{tools}");
        assert!(error.message().contains(message), "{tools}: {}", error.message());
    }
    for call in [
        "pml_register_tools('fs', NULL)",
        "pml_register_tools(NULL, '[]')",
        "pml_register_tools('a b', '[]')",
    ] {
        let code = db.refusal(&format!("SELECT {call}")).code().code().to_owned();
        assert!(code == "22023" || code == "PM004", "{call}: {code}");
    }
    assert_eq!(db.texts("SELECT name FROM pml_tools()"), ["fs:kept"]);
}

#[test]
fn schemas_are_always_those_of_objects() {
    let mut db = Database::new().connect();
    register(&mut db, "s", &json!([{"name": "t", "inputSchema": {"properties": {}}}]));
    db.batch_execute("SELECT pml_register('return 1', 'a', parameters_schema => '{}'), pml_register('return 2', 'b', parameters_schema => '{\"required\": []}')").unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml_tools() WHERE input_schema ->> 'type' = 'object'"), 3);
}

#[test]
fn proxies_that_start_at_once_agree() {
    let database = Database::new();
    let tools: Vec<Value> = (0..40).map(|number| json!({"name": format!("tool_{number}")})).collect();
    let threads: Vec<_> = (0..6)
        .map(|number| {
            let mut db = database.connect();
            let mut tools = tools.clone();
            if number % 2 == 1 {
                tools.reverse();
            }
            let server = format!("s{}", number % 2);
            thread::spawn(move || register(&mut db, &server, &Value::Array(tools)))
        })
        .collect();
    let changed: i32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(changed, 80);
    assert_eq!(database.connect().number("SELECT count(*) FROM pml_tools()"), 80);
}

#[test]
fn a_foreign_scope_is_refused() {
    let database = Database::new();
    database.create_role("guest", &[]);
    let mut guest = database.connect_as("guest");
    for call in ["pml_register_tools('fs', '[]')", "pml_tools()"] {
        assert_eq!(guest.refusal(&format!("SELECT {call}")).code().code(), "PM006", "{call}");
    }
}

/// Tools that could all feed each other: the square of their number is what must cost nothing.
const MANY: &str = "SELECT pml_register_tools('crowd', (SELECT json_agg(jsonb_build_object(
    'name', 'tool_' || i, 'description', repeat('does something with a path ', 10),
    'inputSchema', jsonb_build_object('type', 'object', 'required', jsonb_build_array('path'), 'properties',
      jsonb_build_object('path', '{\"type\": \"string\"}'::jsonb, 'option_' || i % 50, '{\"type\": \"integer\"}'::jsonb)),
    'outputSchema', jsonb_build_object('type', 'object', 'properties',
      jsonb_build_object('path', '{\"type\": \"string\"}'::jsonb, 'size', '{\"type\": \"integer\"}'::jsonb)))) FROM generate_series(1, 2000) AS i))::bigint";

#[test]
fn two_thousand_tools_fit_into_little_memory_and_can_be_cancelled() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute("SELECT pml_register('return mcp.crowd.tool_1(args)', 'crowd:caller')").unwrap();
    let pid = db.number("SELECT pg_backend_pid()::bigint");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let kib: u64 = size.trim().trim_end_matches(" kB").parse().unwrap();
    let limit = (kib + 512 * 1024) * 1024;
    let limited =
        as_postgres("/usr/bin/prlimit").args([format!("--pid={pid}"), format!("--as={limit}")]).status();
    assert!(limited.unwrap().success());
    assert_eq!(db.number(MANY), 2000);
    assert_eq!(db.number(MANY), 0, "the same once more");
    assert_eq!(db.number("SELECT count(*) FROM pml_provides('crowd:tool_7')"), 2 * 1999);
    assert_eq!(db.number("SELECT count(*) FROM pml_provides()"), 10_000, "the limit");

    // All four million, which nobody waits for; and the registration itself, which waits for another.
    let mut other = database.connect();
    other.batch_execute("BEGIN; SELECT pml_register_tools('crowd', '[]')").unwrap();
    for statement in ["SELECT count(*) FROM pml_provides(\"limit\" => 100000000)", MANY] {
        let cancel = db.cancel_token();
        let began = || {
            let query = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND state = 'active'";
            database.connect().query_one(query, &[&i32::try_from(pid).unwrap()]).unwrap().get::<_, i64>(0)
                == 1
        };
        let error = thread::scope(|scope| {
            let asked = scope.spawn(|| db.query(statement, &[]).map(|_| ()));
            // More than once: one that comes between the messages of a statement is lost.
            while !asked.is_finished() {
                if began() {
                    cancel.cancel_query(postgres::NoTls).unwrap();
                }
            }
            failure(asked.join().unwrap())
        });
        assert_eq!(error.code().code(), "57014", "{statement}");
    }
    assert_eq!(db.number("SELECT count(*) FROM pml.tool_schema"), 2000);
}
