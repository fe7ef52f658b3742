//! pml_task_result: pages of a task's result, until it expires, for the actor who ran it.

use pml_tests::{Ask, Database, Run, failure};
use postgres::Client;
use serde_json::{Value, json};

fn finished(db: &mut Client, results: &[Value]) -> String {
    let plan = db.begin(&json!({"code": "return 1"}));
    let tasks: Vec<Value> = results
        .iter()
        .map(|result| json!({"kind": "tool", "target": "fs:read", "success": true, "duration_ms": 1, "result": result}))
        .collect();
    db.finish(&plan, &json!({"success": true, "result": {"whole": true}, "duration_ms": 1, "tasks": tasks}));
    plan["workflow_id"].as_str().unwrap().to_owned()
}

fn piece(db: &mut Client, workflow: &str, arguments: &str) -> Value {
    let query = format!("SELECT pml_task_result('{workflow}', {arguments})");
    db.query_one(&query, &[]).unwrap_or_else(|error| panic!("{arguments}: {error:?}")).get(0)
}

#[test]
fn a_result_comes_whole_or_in_pieces() {
    let mut db = Database::new().connect();
    let long = json!({"list": vec!["é🦀"; 500]});
    let workflow = finished(&mut db, &[long.clone(), json!("text"), Value::Null]);
    let whole = piece(&mut db, &workflow, "'t1'");
    let text = whole["result"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), long);
    assert_eq!(
        (whole["total"].as_u64().unwrap() as usize, &whole["next_offset"]),
        (text.chars().count(), &Value::Null)
    );
    let (mut pieces, mut offset) = (String::new(), json!(0));
    while !offset.is_null() {
        let next = piece(&mut db, &workflow, &format!("'t1', {offset}, 700"));
        pieces.push_str(next["result"].as_str().unwrap());
        offset = next["next_offset"].clone();
    }
    assert_eq!(pieces, text);
    let pretty = piece(&mut db, &workflow, "'t1', format => 'pretty'");
    assert!(pretty["result"].as_str().unwrap().contains("\n    \"list\": ["));
    assert_eq!(piece(&mut db, &workflow, "'t2'")["result"], "\"text\"");
    assert_eq!(piece(&mut db, &workflow, "'t3'")["result"], "null");
    assert_eq!(piece(&mut db, &workflow, "'result'")["result"], "{\"whole\":true}");
}

#[test]
fn odd_offsets_and_limits_give_what_there_is() {
    let mut db = Database::new().connect();
    let workflow = finished(&mut db, &[json!(12345)]);
    for (arguments, result, next) in [
        ("'t1', 2, 2", "34", json!(4)),
        ("'t1', 3, 2", "45", Value::Null),
        ("'t1', 99, 2", "", Value::Null),
        ("'t1', -5, 2", "12", json!(2)),
        ("'t1', 0, 0", "", Value::Null),
        ("'t1', 0, -1", "", Value::Null),
        ("'t1', NULL, NULL", "12345", Value::Null),
        ("'t1', 2147483646, 2147483647", "", Value::Null),
    ] {
        let given = piece(&mut db, &workflow, arguments);
        assert_eq!((&given["result"], &given["next_offset"]), (&json!(result), &next), "{arguments}");
    }
}

#[test]
fn what_is_not_there_and_what_is_anothers_are_the_same_answer() {
    let database = Database::new();
    database.create_role("gate", &["pml_proxy"]);
    let mut gate = database.connect_as("gate");
    gate.batch_execute("SET pml.actor = 'alice'").unwrap();
    let workflow = finished(&mut gate, &[json!("secret")]);
    let mut ask = |who: &str, workflow: &str, task: &str| {
        gate.batch_execute(who).unwrap();
        failure(gate.query(&format!("SELECT pml_task_result('{workflow}', {task})"), &[]))
    };
    let nowhere = "00000000-0000-0000-0000-000000000000";
    let missing = ask("SET pml.actor = 'bob'", nowhere, "'t1'");
    for who in ["SET pml.actor = 'bob'", "SET pml.actor = 'alice'; SET pml.project = 'other'"] {
        for task in ["'t1'", "'result'", "'t9'"] {
            let hidden = ask(who, &workflow, task);
            assert_eq!(hidden.message(), missing.message().replace(nowhere, &workflow));
            assert_eq!(
                (hidden.code(), hidden.hint(), hidden.detail()),
                (missing.code(), missing.hint(), missing.detail())
            );
        }
    }
    let error = ask("SET pml.project = 'default'", &workflow, "'t9'");
    assert_eq!(
        (error.code().code(), error.message()),
        ("PM001", format!("Task not found: t9 in workflow {workflow}").as_str())
    );
    assert_eq!(ask("", &workflow, "NULL").code().code(), "PM001");
    assert_eq!(ask("", &workflow, "'t1', format => 'xml'").code().code(), "22023");
    assert_eq!(ask("", &workflow, "'t1', format => NULL").code().code(), "22023");
    assert_eq!(gate.refusal("SELECT pml_task_result(NULL, 't1')").code().code(), "PM001");
}

#[test]
fn an_expired_result_is_said_to_be() {
    let mut db = Database::new().connect();
    let workflow = finished(&mut db, &[json!("x")]);
    db.batch_execute("UPDATE pml.task_results SET expires_at = now() - interval '1 second'").unwrap();
    let expired = format!("Workflow {workflow} has expired");
    let error = db.refusal(&format!("SELECT pml_task_result('{workflow}', 't1')"));
    assert_eq!((error.code().code(), error.message()), ("PM001", expired.as_str()));
    // And after the row itself has gone.
    db.batch_execute("DELETE FROM pml.task_results; DELETE FROM pml.workflow_state; UPDATE pml.execution_trace SET executed_at = now() - interval '2 hours'").unwrap();
    assert_eq!(db.refusal(&format!("SELECT pml_task_result('{workflow}', 't1')")).message(), expired);
    assert_eq!(
        db.refusal(&format!("SELECT pml_finish('{workflow}', '{{\"success\": true}}')")).message(),
        expired
    );
}

#[test]
fn how_long_results_are_kept_can_be_set() {
    let mut db = Database::new().connect();
    db.batch_execute("SET pml.result_ttl = '2min'; SET pml.workflow_ttl = '3min'").unwrap();
    finished(&mut db, &[json!("x")]);
    assert_eq!(
        db.number(
            "SELECT count(*) FROM pml.task_results WHERE expires_at = created_at + interval '2 minutes'"
        ),
        2,
        "of the run, and of its task"
    );
    let plan = db.begin(&json!({"code": "return 2"}));
    assert_eq!(db.number(&format!("SELECT count(*) FROM pml.workflow_state WHERE workflow_id = '{}' AND expires_at = created_at + interval '5 minutes'", plan["workflow_id"].as_str().unwrap())), 1);
    db.begin(&json!({"code": "return 3", "options": {"timeout": 86_400_000}}));
    assert_eq!(
        db.number("SELECT count(*) FROM pml.workflow_state WHERE expires_at > now() + interval '1 day'"),
        1
    );
}

#[test]
fn results_keep_the_order_of_their_keys_and_hold_any_character() {
    let mut db = Database::new().connect();
    let result = r#"{"z":1,"a":{"y":"\u0000","b":[{"d":1,"c":2}]}}"#;
    let begin = "SELECT pml_begin('{\"code\": \"return mcp.fs.read({})\"}') ->> 'workflow_id'";
    let workflow = db.text(begin, &[]).unwrap();
    let outcome = format!(
        r#"{{"success": true, "result": {result}, "duration_ms": 1, "logs": [{{"text": "\u0000"}}],
            "tasks": [{{"kind": "tool", "target": "fs:read", "success": true, "args": {{"b": "\u0000", "a": 1}}, "result": {result}}}]}}"#
    );
    let answer =
        db.text("SELECT pml_finish($1::text::uuid, $2::text::json)::text", &[&workflow, &outcome]).unwrap();
    assert!(answer.contains(&format!(r#""result": {result}"#)), "{answer}");
    assert!(answer.contains(r#""resultPreview": "{\"z\":1,\"a\":"#), "{answer}");
    let again = db.text("SELECT pml_finish($1::text::uuid, '{}')::text", &[&workflow]).unwrap();
    assert_eq!(again, answer);
    for task in ["t1", "result"] {
        let fetch = "SELECT pml_task_result($1::text::uuid, $2, format => $3) ->> 'result'";
        assert_eq!(db.text(fetch, &[&workflow, &task, &"raw"]).unwrap(), result, "{task}");
        let pretty = db.text(fetch, &[&workflow, &task, &"pretty"]).unwrap();
        assert!(
            pretty.starts_with("{\n    \"z\": 1,\n    \"a\": {\n        \"y\": \"\\u0000\","),
            "{pretty}"
        );
    }
    assert_eq!(db.number("SELECT count(*) FROM pml.runs WHERE success"), 1);
}
