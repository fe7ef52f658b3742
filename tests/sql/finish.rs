//! pml_finish: traces, counts, saves code that succeeded, and is idempotent.

use std::time::Duration;

use pml_tests::{Ask, Database, Run, failure};
use postgres::Client;
use serde_json::{Value, json};

pub(super) fn succeed(result: &Value) -> Value {
    json!({"success": true, "result": result, "duration_ms": 7})
}

fn failed() -> Value {
    json!({"success": false, "error": {"kind": "exception", "message": "no such file", "line": 3}, "duration_ms": 4, "path": ["n1"]})
}

/// Name, usage, successes and latency of a capability.
pub(super) fn counts(db: &mut Client, spec: &str) -> (i64, i64, i64) {
    let row = db
        .query_one("SELECT u.uses, u.successes, u.latency_ms FROM pml.capability_records r, pml_internal.pml_used(r.id, r.usage_count, r.success_count, r.total_latency_ms) u WHERE r.id = pml_resolve($1)", &[&spec])
        .unwrap();
    (row.get(0), row.get(1), row.get(2))
}

/// The counts of the records are those of the calls, whatever happened, before and after they are added up.
pub(super) fn check_counts(db: &mut Client) {
    assert_eq!(db.texts(WRONG_COUNTS), [""; 0]);
    db.batch_execute("SELECT pml_fold_usage()").unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_usage"), 0);
    assert_eq!(db.texts(WRONG_COUNTS), [""; 0]);
}

const WRONG_COUNTS: &str = "SELECT r.display_name FROM pml.capability_records r
         CROSS JOIN pml_internal.pml_used(r.id, r.usage_count, r.success_count, r.total_latency_ms) counted
         LEFT JOIN (SELECT capability_fqdn, count(*) AS uses, count(*) FILTER (WHERE success) AS successes, sum(duration_ms) AS latency
                    FROM pml.tool_usage GROUP BY 1) u ON u.capability_fqdn = r.id
         WHERE (counted.uses, counted.successes, counted.latency_ms) IS DISTINCT FROM (coalesce(u.uses, 0), coalesce(u.successes, 0), coalesce(u.latency, 0))";

#[test]
fn new_code_that_ran_well_becomes_a_capability() {
    let mut db = Database::new().connect();
    let answer = db.run(
        &json!({"code": "return args.a", "name": "my-config-reader", "intent": "read the config"}),
        &json!([1, null]),
    );
    assert_eq!(
        (&answer["status"], &answer["result"], &answer["mode"]),
        (&json!("success"), &json!([1, null]), &json!("direct"))
    );
    assert_eq!(
        (&answer["capabilityName"], &answer["executionTimeMs"]),
        (&json!("my-config-reader"), &json!(7))
    );
    assert_eq!(answer["dag"], json!({"nodes": [], "edges": [], "tasks": []}));
    let fqdn = db.text("SELECT pml_resolve('my-config-reader')", &[]).unwrap();
    assert_eq!((&answer["_meta"]["fqdn"], &answer["_meta"]["version"]), (&json!(fqdn), &json!(1)));
    assert!(answer.get("warning").is_none());
    assert_eq!(
        db.text("SELECT description FROM pml_lookup('my-config-reader')", &[]).unwrap(),
        "read the config"
    );
    assert_eq!(counts(&mut db, "my-config-reader"), (1, 1, 7));
    let trace: String = db.text("SELECT id::text FROM pml.execution_trace WHERE capability_id = $1 AND success AND duration_ms = 7 AND intent = 'read the config'", &[&fqdn]).unwrap();
    assert_eq!(answer["_meta"]["traceId"], json!(trace));
}

#[test]
fn code_without_a_name_gets_one_and_the_same_code_is_the_same_capability() {
    let mut db = Database::new().connect();
    let first = db.run(&json!({"code": "return 1", "intent": "one"}), &json!(1));
    let name = first["capabilityName"].as_str().unwrap().to_owned();
    assert!(name.starts_with("unnamed_"), "{name}");
    let second = db.run(&json!({"code": "return 1; // again", "intent": "uno"}), &json!(1));
    assert_eq!(second["_meta"]["fqdn"], first["_meta"]["fqdn"]);
    assert_eq!(counts(&mut db, &name), (2, 2, 14));
    // It can still be given a name, once.
    let named = db.run(&json!({"code": "return 1", "name": "one"}), &json!(1));
    assert_eq!((&named["capabilityName"], &named["_meta"]["fqdn"]), (&json!("one"), &first["_meta"]["fqdn"]));
    assert_eq!(counts(&mut db, "one"), (3, 3, 21));
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_records WHERE org = 'local'"), 1);
    check_counts(&mut db);
}

#[test]
fn a_failed_run_is_traced_and_never_saved() {
    let mut db = Database::new().connect();
    let plan = db.begin(&json!({"code": "throw 1", "name": "bad", "intent": "fail"}));
    let answer = db.finish(&plan, &failed());
    assert_eq!((&answer["status"], &answer["capabilityName"]), (&json!("error"), &Value::Null));
    assert_eq!(answer["error"], json!({"kind": "exception", "message": "no such file", "line": 3}));
    assert!(answer.get("result").is_none());
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_records WHERE org = 'local'"), 0);
    assert_eq!(db.number("SELECT count(*) FROM pml.execution_trace WHERE NOT success AND error_message = 'no such file' AND executed_path = '{n1}' AND capability_id IS NULL"), 1);
    assert_eq!(db.number("SELECT count(*) FROM pml.tool_usage"), 0);
    db.batch_execute("SELECT pml_register('return 5', 'bad')").unwrap();
    let plan = db.begin(&json!({"code": "throw 2"}));
    assert_eq!(db.finish(&plan, &json!({"success": false}))["error"]["kind"], "unknown");
}

#[test]
fn a_call_by_name_is_counted_and_changes_nothing_else() {
    let database = Database::new();
    let (mut db, mut listener) = (database.connect(), database.connect());
    db.batch_execute("SELECT pml_register('return args', 'echo')").unwrap();
    let before = db.text("SELECT (r.version, r.updated_at, r.updated_by)::text FROM pml.capability_records r WHERE display_name = 'echo'", &[]);
    listener.batch_execute("LISTEN pml_tools_changed").unwrap();
    let answer = db.run(&json!({"capability": "echo", "args": {"x": 1}}), &json!({"x": 1}));
    assert_eq!(
        (&answer["mode"], &answer["capabilityName"], &answer["result"]),
        (&json!("call_by_name"), &json!("echo"), &json!({"x": 1}))
    );
    let plan = db.begin(&json!({"capability": "echo"}));
    let answer = db.finish(&plan, &failed());
    assert_eq!((&answer["status"], &answer["capabilityName"]), (&json!("error"), &json!("echo")));
    assert_eq!(counts(&mut db, "echo"), (2, 1, 11));
    check_counts(&mut db);
    assert_eq!(db.number("SELECT count(*) FROM pml.tool_usage WHERE server_id = 'pml-capabilities' AND tool_id = 'echo' AND capability_fqdn = pml_resolve('echo')"), 2);
    assert_eq!(db.texts("SELECT error_message FROM pml.tool_usage WHERE NOT success"), ["no such file"]);
    assert_eq!(db.text("SELECT (r.version, r.updated_at, r.updated_by)::text FROM pml.capability_records r WHERE display_name = 'echo'", &[]), before);
    assert_eq!(
        db.number("SELECT count(*) FROM pml.capability_versions WHERE capability_fqdn LIKE 'local.%'"),
        1
    );
    db.batch_execute("NOTIFY pml_tools_changed, 'marker'").unwrap();
    let mut heard = Vec::new();
    while heard.is_empty() {
        heard = listener.notifications_for(Duration::from_millis(20));
    }
    assert_eq!(heard, ["marker"]);
}

#[test]
fn an_older_version_and_an_alias_are_told_as_called() {
    let mut db = Database::new().connect();
    db.batch_execute("SET client_min_messages = error; SELECT pml_register('return 1', 'old'); SELECT pml_update('old', 'return 2'); SELECT pml_rename('old', 'new')").unwrap();
    let answer = db.run(&json!({"capability": "old@v1"}), &json!(1));
    assert_eq!((&answer["capabilityName"], &answer["_meta"]["version"]), (&json!("new"), &json!(1)));
    assert_eq!(db.texts("SELECT tool_id FROM pml.tool_usage"), ["old"]);
}

/// A run that called a tool, and a capability that called another capability and failed once.
pub(super) fn with_tasks(db: &mut Client) -> (Value, Value) {
    db.batch_execute(
        "SELECT pml_register('return 1', 'c');
         SELECT pml_register('return mcp[\"c\"]({})', 'b')",
    )
    .unwrap();
    let [b, c] = ["b", "c"].map(|name| db.text("SELECT pml_resolve($1)", &[&name]).unwrap());
    let plan = db.begin(&json!({"code": "await mcp.fs.read({}); await mcp.b({}); return 2", "name": "a", "args": {"secret": "x"}}));
    let inner = json!({"node": "n1", "kind": "capability", "target": c, "args": {"deep": null}, "result": 1, "success": true, "duration_ms": 1,
        "run": {"success": true, "result": 1, "duration_ms": 1, "fqdn": c, "version": 1}});
    let outcome = json!({"success": true, "result": 2, "duration_ms": 30, "path": ["n1", "n2"], "decisions": [{"node": "d1", "outcome": "true"}], "logs": [],
    "tasks": [
        {"node": "n1", "kind": "tool", "target": "fs:read", "args": {"path": "/x"}, "result": "y".repeat(1000), "success": true, "duration_ms": 9},
        {"node": "n2", "kind": "capability", "target": b, "args": {}, "result": null, "success": false, "duration_ms": 5, "error": {"kind": "exception", "message": "inner"},
         "run": {"success": false, "error": {"message": "inner"}, "duration_ms": 4, "path": ["n1"], "fqdn": b, "version": 1, "tasks": [inner]}},
        {"node": "n2", "kind": "capability", "target": format!("{b}@v1"), "result": {"ok": true}, "success": true, "duration_ms": 6.4,
         "run": {"success": true, "duration_ms": 6, "fqdn": b, "version": 1, "tasks": [inner]}},
    ]});
    (plan, outcome)
}

#[test]
fn what_a_run_called_is_traced_counted_and_kept() {
    let mut db = Database::new().connect();
    let (plan, outcome) = with_tasks(&mut db);
    let answer = db.finish(&plan, &outcome);
    assert_eq!(
        (counts(&mut db, "a"), counts(&mut db, "b"), counts(&mut db, "c")),
        ((1, 1, 30), (2, 1, 11), (2, 2, 2))
    );
    check_counts(&mut db);
    assert_eq!(
        db.texts("SELECT server_id || ' ' || tool_id FROM pml.tool_usage ORDER BY id"),
        [
            "pml-capabilities a",
            "fs fs:read",
            "pml-capabilities b",
            "pml-capabilities c",
            "pml-capabilities b",
            "pml-capabilities c"
        ]
    );
    // Each run inside has its own trace, under that of the run which called it.
    let traces = db.texts(
        "SELECT concat_ws(' < ', r.display_name, p.display_name, g.display_name) || ' ' || t.success
         FROM pml.execution_trace t JOIN pml.capability_records r ON r.id = t.capability_id
         LEFT JOIN pml.execution_trace pt ON pt.id = t.parent_trace_id LEFT JOIN pml.capability_records p ON p.id = pt.capability_id
         LEFT JOIN pml.execution_trace gt ON gt.id = pt.parent_trace_id LEFT JOIN pml.capability_records g ON g.id = gt.capability_id ORDER BY 1",
    );
    assert_eq!(traces, ["a true", "b < a false", "b < a true", "c < b < a true", "c < b < a true"]);
    let row = db.query_one("SELECT initial_context, executed_path, decisions, task_results FROM pml.execution_trace WHERE parent_trace_id IS NULL", &[]).unwrap();
    assert_eq!(
        (row.get::<_, Value>(0), row.get::<_, Vec<String>>(1)),
        (json!({"secret": "x"}), vec!["n1".to_owned(), "n2".to_owned()])
    );
    assert_eq!(row.get::<_, Value>(2), json!([{"node": "d1", "outcome": "true"}]));
    assert_eq!(row.get::<_, Value>(3).as_array().unwrap().len(), 3);
    assert_eq!(
        db.number("SELECT count(*) FROM pml.execution_trace WHERE initial_context = '{\"deep\": null}'"),
        2
    );

    let tasks = answer["dag"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 3);
    assert_eq!(
        (&tasks[0]["name"], &tasks[0]["taskId"], &tasks[0]["durationMs"]),
        (&json!("fs:read"), &json!("t1"), &json!(9))
    );
    assert_eq!(tasks[0]["resultPreview"].as_str().unwrap().len(), 240);
    assert_eq!(
        (&tasks[1]["name"], &tasks[1]["success"], &tasks[1]["error"]),
        (&json!("b"), &json!(false), &json!("inner"))
    );
    assert_eq!((&tasks[2]["name"], &tasks[2]["resultPreview"]), (&json!("b"), &json!("{\"ok\":true}")));
    let mut shown = answer.clone();
    shown.as_object_mut().unwrap().remove("_meta");
    assert!(!shown.to_string().contains("local.default."), "{shown}");
    // Those of the three tasks, and its own.
    assert_eq!(db.number("SELECT count(*) FROM pml.task_results"), 4);
}

#[test]
fn a_loop_of_thousands_is_kept_whole_and_shown_in_part() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'c')").unwrap();
    let fqdn = db.text("SELECT pml_resolve('c')", &[]).unwrap();
    let plan = db.begin(&json!({"code": "for (const i of args.list) await mcp.c({})"}));
    let task = json!({"kind": "capability", "target": fqdn, "success": true, "duration_ms": 1, "run": {"success": true, "fqdn": fqdn}});
    let answer = db.finish(&plan, &json!({"success": true, "tasks": vec![task; 2000]}));
    assert_eq!(
        (answer["dag"]["tasks"].as_array().unwrap().len(), &answer["dag"]["omittedTasks"]),
        (50, &json!(1950))
    );
    assert_eq!(counts(&mut db, "c"), (2000, 2000, 2000));
    assert_eq!(db.number("SELECT count(*) FROM pml.execution_trace"), 2001);
}

#[test]
fn a_second_report_gets_the_same_answer_and_counts_nothing() {
    let mut db = Database::new().connect();
    let (plan, outcome) = with_tasks(&mut db);
    let first = db.finish(&plan, &outcome);
    let state = |db: &mut Client| {
        db.texts("SELECT t::text FROM pml.tool_usage t UNION ALL SELECT t::text FROM pml.execution_trace t UNION ALL SELECT t::text FROM pml.capability_records t UNION ALL SELECT t::text FROM pml.task_results t ORDER BY 1")
    };
    let before = state(&mut db);
    for again in [&outcome, &failed(), &json!({"nonsense": 1})] {
        assert_eq!(db.finish(&plan, again), first);
    }
    assert_eq!(state(&mut db), before);
}

#[test]
fn a_bad_outcome_is_refused_and_the_run_can_still_be_finished() {
    let mut db = Database::new().connect();
    let plan = db.begin(&json!({"code": "return 1"}));
    let mut deep = json!({"success": true});
    for _ in 0..110 {
        deep = json!({"success": true, "tasks": [{"kind": "capability", "target": "x", "success": true, "run": deep}]});
    }
    for (outcome, message) in [
        (json!([]), "The outcome: expected an object, found a list"),
        (json!({}), "The outcome needs \"success\""),
        (json!({"success": "yes"}), "\"success\" must be a boolean"),
        (json!({"success": true, "extra": 1}), "The outcome has no argument \"extra\""),
        (json!({"success": true, "duration_ms": "1"}), "\"duration_ms\" must be a number"),
        (json!({"success": true, "path": [1]}), "\"path\" must be a list of strings"),
        (json!({"success": true, "decisions": {}}), "\"decisions\" must be a list"),
        (json!({"success": false, "error": "x"}), "\"error\" must be an object"),
        (json!({"success": true, "tasks": 5}), "\"tasks\" must be a list"),
        (json!({"success": true, "tasks": [5]}), "A task: expected an object, found a number"),
        (json!({"success": true, "tasks": [{"kind": "tool", "success": true}]}), "A task needs \"target\""),
        (
            json!({"success": true, "tasks": [{"kind": "spoon", "target": "x", "success": true}]}),
            "The \"kind\" of a task must be tool or capability",
        ),
        (
            json!({"success": true, "tasks": [{"kind": "tool", "target": "x", "success": true, "run": {}}]}),
            "The outcome needs \"success\"",
        ),
        (deep, "The outcome has runs inside runs, over 100 deep"),
    ] {
        let error = db.finish_fails(&plan, &outcome);
        assert_eq!((error.code().code(), error.message()), ("22023", message));
    }
    assert_eq!(
        failure(db.query("SELECT pml_finish(($1::jsonb ->> 'workflow_id')::uuid, NULL)", &[&plan]))
            .code()
            .code(),
        "22023"
    );
    assert_eq!(db.number("SELECT count(*) FROM pml.execution_trace"), 0);
    let odd = json!({"success": true, "result": null, "duration_ms": -5, "tasks": [
        {"kind": "tool", "target": "no colon", "success": false, "duration_ms": 1e300, "error": "text"},
        {"kind": "capability", "target": "not.an.fqdn", "success": false},
        {"kind": "capability", "target": "", "success": true, "run": null}]});
    let error = db.finish_fails(&plan, &odd);
    assert_eq!(error.message(), "A task needs \"target\"");
    let mut odd = odd;
    odd["tasks"].as_array_mut().unwrap().pop();
    assert_eq!(db.finish(&plan, &odd)["status"], "success");
    check_counts(&mut db);
}

#[test]
fn a_run_is_finished_by_the_one_who_began_it() {
    let database = Database::new();
    database.create_role("gate", &["pml_proxy"]);
    let mut gate = database.connect_as("gate");
    gate.batch_execute("SET pml.org = 'acme'; SET pml.project = 'web'; SET pml.actor = 'alice'").unwrap();
    let plan = gate.begin(&json!({"code": "return 1"}));
    let unknown = json!({"workflow_id": "00000000-0000-0000-0000-000000000000"});
    for other in [
        "SET pml.actor = 'bob'",
        "SET pml.actor = 'alice'; SET pml.project = 'app'",
        "SET pml.org = 'other'; SET pml.project = 'web'",
    ] {
        gate.batch_execute(other).unwrap();
        let (hidden, missing) =
            (gate.finish_fails(&plan, &succeed(&json!(1))), gate.finish_fails(&unknown, &succeed(&json!(1))));
        assert_eq!((hidden.code().code(), hidden.hint()), ("PM001", missing.hint()));
        assert!(hidden.message().starts_with("Workflow not found: "), "{}", hidden.message());
    }
    // Not even an admin finishes it by mistake.
    assert_eq!(database.connect().finish_fails(&plan, &succeed(&json!(1))).code().code(), "PM001");
    assert_eq!(gate.refusal("SELECT pml_finish(NULL, '{}')").code().code(), "PM001");
    gate.batch_execute("SET pml.org = 'acme'; SET pml.project = 'web'; SET pml.actor = 'alice'").unwrap();
    assert_eq!(gate.finish(&plan, &succeed(&json!(1)))["status"], "success");
}

#[test]
fn a_capability_of_another_scope_is_counted_where_it_is() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute("SET pml.org = 'other'; SELECT pml_register('return 1', 'shared', visibility => 'public'); SELECT pml_register('return 2', 'hidden')").unwrap();
    let hidden = db.text("SELECT pml_resolve('hidden')", &[]).unwrap();
    database.create_role("gate", &["pml_proxy"]);
    let mut gate = database.connect_as("gate");
    gate.batch_execute("SET pml.org = 'acme'; SET pml.actor = 'alice'").unwrap();
    let plan = gate.begin(&json!({"capability": "other.default:shared"}));
    assert_eq!(plan["name"], "other.default:shared");
    // What an outcome says of what one can't see is noted, and not believed.
    let answer = gate.finish(&plan, &json!({"success": true, "duration_ms": 3, "tasks": [
        {"kind": "capability", "target": hidden, "success": true, "run": {"success": true, "fqdn": hidden}}]}));
    assert_eq!(
        (&answer["capabilityName"], &answer["dag"]["tasks"][0]["name"]),
        (&json!("other.default:shared"), &json!("unknown:capability"))
    );
    assert_eq!((counts(&mut db, "shared"), counts(&mut db, "hidden")), ((1, 1, 3), (0, 0, 0)));
    assert_eq!(db.number("SELECT usage_count FROM pml_lookup('shared')"), 1);
    assert_eq!(db.number("SELECT usage_count FROM pml_list() WHERE name = 'shared'"), 1);
    let error = failure(gate.execute("INSERT INTO pml.tool_usage (org, project, actor, server_id, tool_id, capability_fqdn, success, duration_ms) VALUES ('acme', 'default', 'alice', 'pml-capabilities', 'x', $1, true, 1)", &[&hidden]));
    assert_eq!(error.code().code(), "42501");
}

#[test]
fn what_happens_to_the_capability_meanwhile_does_no_harm() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute("SET pml.actor = 'alice'; SELECT pml_register('return 1', 'fleeting', visibility => 'project'), pml_register('return 2', 'shy', visibility => 'project')").unwrap();
    database.create_role("gate", &["pml_proxy"]);
    let mut gate = database.connect_as("gate");
    gate.batch_execute("SET pml.actor = 'bob'").unwrap();
    let plans = [gate.begin(&json!({"capability": "fleeting"})), gate.begin(&json!({"capability": "shy"}))];
    db.batch_execute("SELECT pml_delete('fleeting'); SELECT pml_rename('shy', visibility => 'private')")
        .unwrap();
    for plan in plans {
        assert_eq!(gate.finish(&plan, &succeed(&json!(1)))["status"], "success");
    }
    assert_eq!(gate.number("SELECT count(*) FROM pml.runs"), 2);
}

#[test]
fn restored_and_imported_calls_are_not_counted_again() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register('return 1', 'x');
         INSERT INTO pml.tool_usage (org, project, actor, server_id, tool_id, capability_fqdn, success, duration_ms, used_at)
         SELECT 'local', 'default', 'me', 'pml-capabilities', 'x', pml_resolve('x'), true, 1, '2026-01-01' FROM generate_series(1, 5)",
    )
    .unwrap();
    assert_eq!(counts(&mut db, "x"), (0, 0, 0));
    // By hand, a call is counted as well.
    db.batch_execute("INSERT INTO pml.tool_usage (org, project, actor, server_id, tool_id, capability_fqdn, success, duration_ms) SELECT 'local', 'default', 'me', 'pml-capabilities', 'x', pml_resolve('x'), i > 1, i FROM generate_series(1, 3) AS i").unwrap();
    assert_eq!(counts(&mut db, "x"), (3, 2, 6));
}

#[test]
fn calls_of_real_tools_are_recorded() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_tool_used('fs', 'read_file', true, 12); SELECT pml_tool_used('mcp:fs', 'write', false, NULL, 'disk full')").unwrap();
    assert_eq!(db.texts("SELECT concat_ws(' ', server_id, tool_id, success, duration_ms, error_message) FROM pml.tool_usage ORDER BY id"), ["fs fs:read_file t 12", "fs fs:write f 0 disk full"]);
    let report = |id: u8, calls: &str| {
        format!("SELECT pml_tools_used('00000000-0000-0000-0000-00000000000{id}', '{calls}')::bigint")
    };
    let calls = r#"[{"server": "fs", "tool": "a", "success": true, "duration_ms": 3, "ago_ms": 5000},
                    {"server": "web", "tool": "b", "success": false, "error": {"message": "no"}}]"#;
    assert_eq!(db.number(&report(1, calls)), 2);
    assert_eq!(db.number(&report(1, calls)), 0, "the same report");
    assert_eq!(db.number(&report(2, "[]")), 0);
    assert_eq!(
        db.texts("SELECT concat_ws(' ', tool_id, success, duration_ms, error_message, used_at < now() - interval '4 seconds') FROM pml.tool_usage ORDER BY id OFFSET 2"),
        ["fs:a t 3 t", "web:b f 0 no f"]
    );
    for calls in [
        r#"{}"#,
        r#"[1]"#,
        r#"[{"server": "fs", "tool": "", "success": true}]"#,
        r#"[{"server": "fs", "tool": "x"}]"#,
        r#"[{"tool": "x", "success": true}]"#,
    ] {
        let code = db.refusal(&report(3, calls)).code().code().to_owned();
        assert!(code == "22023" || code == "PM004", "{calls}: {code}");
    }
    assert_eq!(
        db.number(&report(3, r#"[{"server": "fs", "tool": "x", "success": true}]"#)),
        1,
        "what was refused wasn't reported"
    );
    for arguments in [
        "'fs', NULL, true, 1",
        "'fs', '', true, 1",
        "NULL, 'x', true, 1",
        "'a b', 'x', true, 1",
        "'fs', 'x', NULL, 1",
        "'fs', repeat('x', 300), true, 1",
    ] {
        let code = db.refusal(&format!("SELECT pml_tool_used({arguments})")).code().code().to_owned();
        assert!(code == "22023" || code == "PM004", "{arguments}: {code}");
    }
}

#[test]
fn a_dag_that_ran_well_becomes_a_dag_capability() {
    let mut db = Database::new().connect();
    let source = json!({"type": "dag", "dagStructure": {"tasks": [
        {"id": "read", "tool": "fs:read", "arguments": {"path": {"type": "parameter", "parameterName": "path"}}},
        {"id": "parse", "tool": "json:parse", "arguments": {"json": {"type": "reference", "expression": "read.content"}}}]}});
    let answer = db.run(&json!({"source": source, "name": "fs:load", "intent": "load a file"}), &json!(1));
    assert_eq!((&answer["status"], &answer["capabilityName"]), (&json!("success"), &json!("fs:load")));
    let whois: Value = db.query_one("SELECT pml_whois('fs:load')", &[]).unwrap().get(0);
    assert_eq!((&whois["source"], &whois["description"]), (&source, &json!("load a file")));
    assert_eq!(whois["tools_used"], json!(["fs:read", "json:parse"]));
    // The same DAG again is the same capability; one that failed is none.
    db.run(&json!({"source": source}), &json!(1));
    let failing = json!({"type": "tool", "toolId": "fs:write", "defaultArgs": {"path": "x"}});
    let plan: Value = db.query_one("SELECT pml_begin($1)", &[&json!({"source": failing})]).unwrap().get(0);
    db.query_one(
        "SELECT pml_finish($1::text::uuid, $2)",
        &[&plan["workflow_id"].as_str().unwrap(), &failed()],
    )
    .unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml_list()"), 1);
    for (request, message) in [
        (json!({"source": source, "code": "return 1"}), "Give either \"code\" or \"source\", not both"),
        (
            json!({"source": source, "capability": "fs:load"}),
            "Give either \"source\" or \"capability\", not both",
        ),
        (json!({"source": {"type": "dag"}}), "Invalid dagStructure"),
    ] {
        let error = failure(db.query("SELECT pml_begin($1)", &[&request]));
        assert_eq!(error.code().code(), "22023", "{request}");
        assert!(error.message().starts_with(message), "{}", error.message());
    }
}

#[test]
fn a_capability_may_be_called_by_its_id_and_an_old_name_is_told() {
    let mut db = Database::new().connect();
    let fqdn = db.text("SELECT pml_register('return 1', 'math:one')", &[]).unwrap();
    for request in [json!({"capabilityId": fqdn}), json!({"capability_id": "math:one"})] {
        let answer = db.run(&request, &json!(1));
        assert_eq!(
            (&answer["capabilityName"], answer.get("warning")),
            (&json!("math:one"), None),
            "{request}"
        );
    }
    db.batch_execute("SET client_min_messages = error; SELECT pml_rename('math:one', 'math:uno')").unwrap();
    for request in [json!({"capability": "math:one"}), json!({"tool": "mcp__math__one"})] {
        let answer = db.run(&request, &json!(1));
        assert_eq!(
            answer["warning"], "Deprecated: using alias \"math:one\" for capability \"math:uno\"",
            "{request}"
        );
    }
    assert_eq!(
        failure(db.query("SELECT pml_begin($1)", &[&json!({"capability": "a", "capabilityId": "b"})]))
            .code()
            .code(),
        "22023"
    );
}

#[test]
fn tools_that_only_the_run_shows_are_kept_with_the_code() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register_server('files', 'local')").unwrap();
    let plan: Value = db
        .query_one(
            "SELECT pml_begin($1)",
            &[&json!({"code": "await mcp.net.get({}); return mcp[args.tool]({})", "name": "a:dynamic"})],
        )
        .unwrap()
        .get(0);
    let task = |target: &str| json!({"kind": "tool", "target": target, "success": true, "args": {}});
    let outcome =
        json!({"success": true, "tasks": [task("net:get"), task("files:read"), task("files:read")]});
    db.query_one(
        "SELECT pml_finish($1::text::uuid, $2)",
        &[&plan["workflow_id"].as_str().unwrap(), &outcome],
    )
    .unwrap();
    let whois: Value = db.query_one("SELECT pml_whois('a:dynamic')", &[]).unwrap().get(0);
    assert_eq!(whois["tools_used"], json!(["net:get", "files:read"]));
    assert_eq!((&whois["routing"], &whois["version"]), (&json!("local"), &json!(1)));
    let plan: Value = db
        .query_one(
            "SELECT pml_begin($1)",
            &[&json!({"capability": "a:dynamic", "args": {"tool": "files:read"}})],
        )
        .unwrap()
        .get(0);
    assert_eq!(plan["tools"], json!(["net:get", "files:read"]));
}

#[test]
fn routing_follows_capabilities_that_only_the_run_shows() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register_server('files', 'local');
         SELECT pml_register('return await mcp.files.read({})', 'p:read');
         SELECT pml_register('return await mcp.p.read({})', 'p:outer'); SELECT pml_register('return 1', 'p:plain')",
    )
    .unwrap();
    let fqdn = |db: &mut Client, name: &str| db.text("SELECT pml_resolve($1)", &[&name]).unwrap();
    let (outer, plain) = (fqdn(&mut db, "p:outer"), fqdn(&mut db, "p:plain"));
    for (name, targets, tools, routing) in [
        ("a:local", vec![plain.clone(), format!("{outer}@v1")], json!(["net:get", "files:read"]), "local"),
        ("a:cloud", vec![plain.clone(), "not.an.fqdn".to_owned()], json!(["net:get"]), "cloud"),
    ] {
        let code = format!("await mcp.net.get({{}}); return capabilities[args.name]({{}}, '{name}')");
        let plan: Value =
            db.query_one("SELECT pml_begin($1)", &[&json!({"code": code, "name": name})]).unwrap().get(0);
        let tasks: Vec<Value> = targets
            .iter()
            .map(|target| json!({"kind": "capability", "target": target, "success": true, "run": {"success": true, "fqdn": target}}))
            .collect();
        db.query_one(
            "SELECT pml_finish($1::text::uuid, $2)",
            &[&plan["workflow_id"].as_str().unwrap(), &json!({"success": true, "tasks": tasks})],
        )
        .unwrap();
        let whois: Value = db.query_one("SELECT pml_whois($1)", &[&name]).unwrap().get(0);
        assert_eq!((&whois["tools_used"], &whois["routing"]), (&tools, &json!(routing)), "{name}");
    }
}
