//! The cap_ tools: names in, names out, one call each.

use pml_tests::{Ask, Database, failure};
use postgres::Client;
use serde_json::{Value, json};

fn cap(db: &mut Client, tool: &str, args: &Value) -> Value {
    db.query_one("SELECT pml_cap($1, $2)", &[&tool, args])
        .unwrap_or_else(|error| panic!("{tool} {args}: {error:?}"))
        .get(0)
}

fn refused(db: &mut Client, tool: &str, args: &Value) -> postgres::error::DbError {
    failure(db.query("SELECT pml_cap($1, $2)", &[&tool, args]))
}

fn database() -> Client {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SET client_min_messages = error;
         SELECT pml_register('return args.path', 'fs:read', 'reads', tags => ARRAY['io'], version_tag => 'v1.0.0');
         SELECT pml_register('return { n: (await mcp.fs.read({ path: args.path })).length }', 'fs:size');
         SELECT pml_register('return 3')",
    )
    .unwrap();
    db
}

/// Everything but `_meta`.
fn shown(answer: &Value) -> String {
    let mut answer = answer.clone();
    answer.as_object_mut().unwrap().remove("_meta");
    answer.to_string()
}

#[test]
fn lookup_tells_what_a_caller_needs() {
    let mut db = database();
    db.batch_execute("SELECT pml_rename('fs:read', 'fs:load')").unwrap();
    for tool in ["cap_lookup", "cap:lookup"] {
        for name in ["fs:load", "fs:read@v1", "local.default:fs:load"] {
            let found = cap(&mut db, tool, &json!({"name": name}));
            assert_eq!(found["name"], "fs:load");
            assert_eq!((&found["description"], &found["version_tag"]), (&json!("reads"), &json!("v1.0.0")));
            assert_eq!((&found["usage_count"], &found["success_rate"]), (&json!(0), &Value::Null));
            assert_eq!(found["tool"], "mcp__fs__load");
            assert!(found["_meta"]["fqdn"].as_str().unwrap().starts_with("local.default.fs.read."));
        }
    }
    assert_eq!(cap(&mut db, "cap_lookup", &json!({"name": "fs:read"}))["via_alias"], "fs:read");
    let error = refused(&mut db, "cap_lookup", &json!({"name": "fs:loadd"}));
    assert_eq!((error.code().code(), error.message()), ("PM001", "Capability not found: fs:loadd"));
}

#[test]
fn list_filters_sorts_and_pages() {
    let mut db = database();
    let names = |answer: &Value| -> Vec<String> {
        answer["capabilities"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(cap(&mut db, "cap_list", &json!({}))["capabilities"].as_array().unwrap().len(), 3);
    for args in [json!({"named_only": true, "sort_by": "name"}), json!({"namedOnly": true, "sortBy": "name"})]
    {
        assert_eq!(names(&cap(&mut db, "cap_list", &args)), ["fs:read", "fs:size"]);
    }
    assert_eq!(names(&cap(&mut db, "cap_list", &json!({"tags": ["io"]}))), ["fs:read"]);
    assert_eq!(names(&cap(&mut db, "cap_list", &json!({"pattern": "fs:s*"}))), ["fs:size"]);
    let first = cap(&mut db, "cap_list", &json!({"limit": 2, "sortBy": "name"}));
    assert_eq!((names(&first).len(), &first["next_offset"]), (2, &json!(2)));
    let rest = cap(&mut db, "cap_list", &json!({"limit": 2, "offset": 2, "sortBy": "name"}));
    assert_eq!((names(&rest).len(), &rest["next_offset"]), (1, &Value::Null));
    assert_eq!(names(&cap(&mut db, "cap_list", &json!({"pattern": "nothing"}))).len(), 0);
    let item = &first["capabilities"][0];
    for key in ["name", "description", "usage_count", "success_rate", "parameters"] {
        assert!(item.get(key).is_some(), "{key}: {item}");
    }
}

#[test]
fn rename_changes_what_is_given() {
    let mut db = database();
    let renamed =
        cap(&mut db, "cap_rename", &json!({"name": "fs:read", "newName": "fs:load", "description": "loads"}));
    assert_eq!((&renamed["name"], &renamed["previous_name"]), (&json!("fs:load"), &json!("fs:read")));
    assert_eq!((&renamed["description"], &renamed["tags"]), (&json!("loads"), &json!(["io"])));
    let tagged = cap(
        &mut db,
        "cap_rename",
        &json!({"name": "fs:load", "tags": [], "visibility": "project", "new_name": null}),
    );
    assert_eq!((&tagged["tags"], &tagged["visibility"]), (&json!([]), &json!("project")));
    assert_eq!(
        refused(&mut db, "cap_rename", &json!({"name": "fs:load", "new_name": "fs:size"})).code().code(),
        "PM003"
    );
}

#[test]
fn whois_and_history_show_names_in_the_place_of_fqdns() {
    let mut db = database();
    db.batch_execute("SELECT pml_update('fs:size', 'return { n: 1 + (await mcp.fs.read({ path: args.path })).length }', change_summary => 'one more')").unwrap();
    let size = cap(&mut db, "cap_whois", &json!({"name": "fs:size"}));
    assert_eq!(size["dependencies"], json!(["fs:read"]));
    assert!(size["code_snippet"].as_str().unwrap().contains("mcp.fs.read("));
    let fqdn = size["_meta"]["fqdn"].as_str().unwrap().to_owned();
    assert_eq!(shown(&cap(&mut db, "cap:whois", &json!({"fqdn": fqdn}))), shown(&size));
    let read = cap(&mut db, "cap_whois", &json!({"name": "fs:read"}));
    assert_eq!(read["dependents"], json!(["fs:size"]));
    let history = cap(&mut db, "cap_history", &json!({"name": "fs:size"}));
    assert_eq!(history["versions"].as_array().unwrap().len(), 2);
    assert_eq!(history["versions"][0]["change_summary"], "one more");
    assert_eq!(
        cap(&mut db, "cap_history", &json!({"name": "fs:size", "limit": 1, "offset": 1}))["versions"][0]["version"],
        1
    );
    for answer in [size, read, history] {
        assert!(!shown(&answer).contains("local.default."), "{answer}");
    }
}

#[test]
fn fork_and_merge_make_new_ones() {
    let mut db = database();
    let fork = cap(&mut db, "cap_fork", &json!({"source": "fs:read", "name": "my:read"}));
    assert_eq!(
        (&fork["name"], &fork["forked_from"], &fork["tool"]),
        (&json!("my:read"), &json!("fs:read"), &json!("mcp__my__read"))
    );
    assert_eq!(cap(&mut db, "cap_whois", &json!({"name": "my:read"}))["forked_from"], "fs:read");
    let merge = cap(
        &mut db,
        "cap:merge",
        &json!({"sources": ["fs:read", "fs:size"], "name": "my:both", "code": "return [await cap_fs_read(args), await cap_fs_size(args)]"}),
    );
    assert_eq!((&merge["name"], &merge["version"]), (&json!("my:both"), &json!(1)));
    for answer in [fork, merge] {
        assert!(!shown(&answer).contains("local.default."), "{answer}");
    }
}

#[test]
fn what_is_wrong_is_said_with_what_there_is() {
    let mut db = database();
    for (tool, args, code, message, hint) in [
        ("cap_query", json!({}), "PM008", "Tool not found: cap_query", "cap_lookup"),
        ("", json!({}), "PM008", "Tool not found: cap_", "cap_lookup"),
        ("cap_lookup", json!({}), "22023", "cap_lookup needs \"name\"", "name (string)"),
        ("cap_lookup", json!({"name": ""}), "22023", "cap_lookup needs \"name\"", "name (string)"),
        ("cap_lookup", json!({"name": null}), "22023", "cap_lookup needs \"name\"", "name (string)"),
        ("cap_lookup", json!({"name": 5}), "22023", "\"name\" must be a string", "name (string)"),
        ("cap_lookup", json!({"nam": "x"}), "22023", "cap_lookup has no argument \"nam\"", "name (string)"),
        ("cap_lookup", json!([]), "22023", "cap_lookup: expected an object, found a list", "name (string)"),
        ("cap_list", json!({"limit": 1.5}), "22023", "\"limit\" must be an integer", "limit (integer)"),
        ("cap_list", json!({"limit": 1e300}), "22023", "\"limit\" must be an integer", "limit (integer)"),
        ("cap_list", json!({"tags": "x"}), "22023", "\"tags\" must be a list of strings", "tags"),
        ("cap_list", json!({"tags": [1]}), "22023", "\"tags\" must be a list of strings", "tags"),
        ("cap_list", json!({"sortBy": "size"}), "22023", "Invalid sort_by: \"size\"", "usage"),
        ("cap_list", json!({"namedOnly": "yes"}), "22023", "\"named_only\" must be a boolean", "named_only"),
        ("cap_fork", json!({"source": "fs:read"}), "22023", "cap_fork needs \"name\"", "source"),
        (
            "cap_merge",
            json!({"name": "x", "sources": {}}),
            "22023",
            "\"sources\" must be a list of strings",
            "sources",
        ),
    ] {
        let error = refused(&mut db, tool, &args);
        assert_eq!((error.code().code(), error.message()), (code, message), "{tool} {args}");
        assert!(error.hint().unwrap().contains(hint), "{tool} {args}: {:?}", error.hint());
    }
    db.query("SELECT pml_cap('cap_list', NULL)", &[]).unwrap();
    assert_eq!(db.refusal("SELECT pml_cap(NULL, NULL)").code().code(), "PM008");
}

#[test]
fn numbers_and_lists_out_of_the_advertised_range_are_refused() {
    let mut db = database();
    for (tool, args, message) in [
        ("cap_list", json!({"limit": -5}), "\"limit\" must be from 0 to 500"),
        ("cap_list", json!({"limit": 501}), "\"limit\" must be from 0 to 500"),
        ("cap_list", json!({"offset": -5}), "\"offset\" must be at least 0"),
        ("cap_history", json!({"name": "fs:read", "limit": 501}), "\"limit\" must be from 0 to 500"),
        (
            "cap_merge",
            json!({"sources": ["fs:read"], "name": "fs:one"}),
            "\"sources\" must have at least 2 items",
        ),
        ("pml_discover", json!({"intent": "x", "limit": 0}), "\"limit\" must be from 1 to 200"),
        ("pml_discover", json!({"intent": "x", "min_score": 1.5}), "\"min_score\" must be from 0 to 1"),
        (
            "pml_get_task_result",
            json!({"workflow_id": "x", "task_id": "t", "limit": 0}),
            "\"limit\" must be at least 1",
        ),
    ] {
        let error = db.query_one("SELECT pml_ask($1, $2)", &[&tool, &args]).unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!((error.code().code(), error.message()), ("22023", message), "{tool} {args}");
    }
    for limit in [0, 500] {
        cap(&mut db, "cap_list", &json!({"limit": limit}));
    }
}

#[test]
fn a_rename_tells_the_name_before_it_and_only_if_there_was_one() {
    let mut db = database();
    let renamed = cap(&mut db, "cap_rename", &json!({"name": "cap:fs:read", "new_name": "cap:fs:load"}));
    assert_eq!((&renamed["name"], &renamed["previous_name"]), (&json!("fs:load"), &json!("fs:read")));
    let again = cap(&mut db, "cap_rename", &json!({"name": "fs:read", "new_name": "fs:fetch"}));
    assert_eq!(again["previous_name"], "fs:load");
    for args in [json!({"description": "loads"}), json!({"new_name": "fs:fetch"})] {
        let mut args = args;
        args["name"] = json!("fs:fetch");
        let same = cap(&mut db, "cap_rename", &args);
        assert_eq!(same.get("previous_name"), None, "{args}");
    }
}

#[test]
fn the_prefix_of_a_spec_is_no_part_of_a_name() {
    let mut db = database();
    for (tool, args, name) in [
        ("cap_rename", json!({"name": "fs:size", "new_name": "cap:fs:length"}), "fs:length"),
        ("cap_fork", json!({"source": "fs:read", "name": "cap:fs:copy"}), "fs:copy"),
        (
            "cap_merge",
            json!({"sources": ["fs:read", "fs:length"], "name": "cap:cap:fs:both", "code": "return 8"}),
            "fs:both",
        ),
    ] {
        assert_eq!(cap(&mut db, tool, &args)["name"], name, "{tool}");
    }
    db.batch_execute("SELECT pml_register('return 9', 'cap:fs:nine')").unwrap();
    let plan: Value = db
        .query_one("SELECT pml_begin('{\"code\": \"return 10\", \"name\": \"cap:fs:ten\"}')", &[])
        .unwrap()
        .get(0);
    assert_eq!(plan["name"], "fs:ten");
    assert_eq!(db.number("SELECT count(*) FROM pml_list(pattern => 'cap:*')"), 0);
    assert_eq!(db.number("SELECT count(*) FROM pml_list(pattern => 'fs:nine')"), 1);
    let error = db.refusal("SELECT pml_register('return 9', 'cap:fs:copy')");
    assert_eq!(error.code().code(), "PM003", "{}", error.message());
}

#[test]
fn the_namespace_of_servers_is_refused_for_what_it_is() {
    let mut db = database();
    for statement in [
        "SELECT pml_register('return 9', 'mcp:foo')",
        "SELECT pml_rename('fs:read', 'mcp:foo')",
        "SELECT pml_fork('fs:read', 'cap:mcp:foo')",
        "SELECT pml_merge(ARRAY['fs:read', 'fs:size'], 'mcp:foo', 'return 8')",
        "SELECT pml_begin('{\"code\": \"return 10\", \"name\": \"mcp:foo\"}')",
    ] {
        let error = db.refusal(statement);
        let message = "Invalid capability name: \"mcp:foo\". The namespace mcp is for servers.";
        assert_eq!((error.code().code(), error.message()), ("PM004", message), "{statement}");
    }
}

#[test]
fn the_answer_says_that_an_old_name_was_used() {
    let mut db = database();
    db.batch_execute("SELECT pml_rename('fs:read', 'fs:load')").unwrap();
    let warning = "Deprecated: using alias \"fs:read\" for capability \"fs:load\"";
    for (tool, args) in [
        ("cap_lookup", json!({"name": "fs:read"})),
        ("cap_whois", json!({"name": "fs:read@v1"})),
        ("cap_history", json!({"name": "local.default:fs:read"})),
        ("cap_rename", json!({"name": "fs:read", "description": "loads"})),
        ("cap_fork", json!({"source": "cap:fs:read", "name": "fs:copy"})),
        (
            "cap_merge",
            json!({"sources": ["fs:read", "fs:size"], "name": "fs:both", "code": "return cap_fs_load(args)"}),
        ),
    ] {
        assert_eq!(cap(&mut db, tool, &args)["warning"], warning, "{tool}");
    }
    for (tool, args) in [("cap_lookup", json!({"name": "fs:load"})), ("cap_list", json!({}))] {
        assert!(cap(&mut db, tool, &args).get("warning").is_none(), "{tool}");
    }
    // Renaming back makes the alias the name.
    let back = cap(&mut db, "cap_rename", &json!({"name": "fs:read", "new_name": "fs:read"}));
    assert_eq!((&back["name"], &back["warning"]), (&json!("fs:read"), &json!(warning)));
}

#[test]
fn a_list_of_nothing_ends_and_patterns_find_namespaces_tags_and_servers() {
    let mut db = database();
    let names = |answer: &Value| -> Vec<String> {
        answer["capabilities"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let nothing = cap(&mut db, "cap_list", &json!({"limit": 0}));
    assert_eq!((names(&nothing).len(), &nothing["next_offset"]), (0, &Value::Null));
    let tagged = cap(&mut db, "cap_list", &json!({"versionTag": "v1.*", "namespace": "f?"}));
    assert_eq!(names(&tagged), ["fs:read"]);
    db.batch_execute("SELECT pml_register_server('files', 'local')").unwrap();
    assert_eq!(names(&cap(&mut db, "cap_list", &json!({"record_type": "mcp-server"}))), ["mcp:files"]);
    assert_eq!(refused(&mut db, "cap_list", &json!({"record_type": "x"})).code().code(), "22023");
}
