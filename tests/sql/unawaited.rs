//! Unawaited calls: reported in the answer, and never a silent success.

use pml_tests::{Ask, Database, Run};
use serde_json::{Value, json};

fn task(target: &str, success: bool, more: &Value) -> Value {
    let mut task = json!({"kind": "tool", "target": target, "success": success});
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

fn outcome(tasks: &[Value]) -> Value {
    json!({"success": true, "result": "done", "tasks": tasks})
}

#[test]
fn a_call_that_was_not_awaited_is_a_warning() {
    let mut db = Database::new().connect();
    let plan = db.begin(&json!({"code": "mcp.fs.write({}); return 'done'", "name": "fs:save"}));
    let left = task("fs:write", true, &json!({"awaited": false, "line": 1}));
    let answer = db.finish(&plan, &outcome(&[left, task("fs:read", true, &json!({}))]));
    assert_eq!((&answer["status"], &answer["capabilityName"]), (&json!("success"), &json!("fs:save")));
    assert_eq!(answer["warning"], "line 1: `fs:write` was not awaited");
}

#[test]
fn one_that_failed_keeps_the_code_from_being_saved() {
    let mut db = Database::new().connect();
    let plan = db.begin(&json!({"code": "mcp.fs.write({}); return 'done'", "name": "fs:save"}));
    let left = task("fs:write", false, &json!({"awaited": false, "line": 1, "error": "disk full"}));
    let answer = db.finish(&plan, &outcome(&[left]));
    assert_eq!((&answer["status"], &answer["capabilityName"]), (&json!("success"), &Value::Null));
    assert_eq!(
        answer["warning"],
        "line 1: `fs:write` was not awaited and failed: disk full. Not saved: await every call, and run it again"
    );
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_records WHERE org = 'local'"), 0);
    // A failure that the code handled is its own affair.
    let plan = db.begin(&json!({"code": "await mcp.fs.write({}).catch(() => 0)", "name": "fs:try"}));
    let answer = db.finish(&plan, &outcome(&[task("fs:write", false, &json!({"error": "disk full"}))]));
    assert_eq!((&answer["capabilityName"], answer.get("warning")), (&json!("fs:try"), None));
}

#[test]
fn those_inside_nested_capabilities_are_told_with_their_name() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('mcp.fs.write({}); return 1', 'fs:save')").unwrap();
    let fqdn = db.text("SELECT pml_resolve('fs:save')", &[]).unwrap();
    let plan = db.begin(&json!({"code": "return await mcp.fs.save({})", "name": "fs:all"}));
    let inner =
        outcome(&[task("fs:write", false, &json!({"awaited": false, "line": 1, "error": "disk full"}))]);
    let nested = json!({"kind": "capability", "target": fqdn, "success": true, "run": inner});
    let answer = db.finish(&plan, &outcome(&[nested]));
    assert_eq!(answer["warning"], "line 1 of `fs:save`: `fs:write` was not awaited and failed: disk full");
    assert_eq!(answer["capabilityName"], "fs:all");
}

#[test]
fn a_call_that_came_too_late_keeps_the_code_from_being_saved() {
    let mut db = Database::new().connect();
    let plan = db
        .begin(&json!({"code": "setTimeout(() => mcp.fs.write({}), 9); return 'done'", "name": "fs:later"}));
    let mut late = outcome(&[task("fs:read", true, &json!({"awaited": false, "line": 2}))]);
    late["missed_calls"] = json!([{"target": "fs:write", "line": 1}, {"target": "fs:sync"}]);
    let answer = db.finish(&plan, &late);
    assert_eq!((&answer["status"], &answer["capabilityName"]), (&json!("success"), &Value::Null));
    assert_eq!(
        answer["warning"],
        "line 2: `fs:read` was not awaited; \
         line 1: `fs:write` was not called: its timer was due after the code had returned; \
         `fs:sync` was not called: its timer was due after the code had returned. \
         Not saved: await every call, and run it again"
    );
    assert_eq!(db.number("SELECT count(*) FROM pml.tool_usage"), 1, "a call that wasn't made isn't counted");
}

#[test]
fn many_are_told_in_few_words() {
    let mut db = Database::new().connect();
    let plan = db.begin(&json!({"code": "for (;;) mcp.fs.write({})"}));
    let tasks: Vec<Value> = (0..500).map(|_| task("fs:write", true, &json!({"awaited": false}))).collect();
    let answer = db.finish(&plan, &outcome(&tasks));
    let warning = answer["warning"].as_str().unwrap();
    assert!(
        warning.ends_with("; and 490 more") && warning.starts_with("`fs:write` was not awaited; "),
        "{warning}"
    );
}
