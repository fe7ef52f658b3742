//! pml_plan and pml_finish_many: nothing is written before a run, and runs that end together are finished together.

use pml_tests::{Ask, Database};
use postgres::{Client, Row};
use serde_json::{Value, json};

use crate::finish::{check_counts, counts};

const FINISH: &str =
    "SELECT * FROM pml_finish_many($1::text[]::uuid[], $2, $3, $4, $5, $6, $7, $8::text[]::jsonb[], $9)";

/// A run that has ended: whose, with which plan, and what came of it.
struct Ended {
    workflow: String,
    actor: &'static str,
    args: String,
    context: Value,
    outcome: String,
}

fn plan(db: &mut Client, request: &Value) -> Value {
    db.query_one("SELECT pml_plan($1)", &[request]).unwrap().get(0)
}

fn ended(number: u8, actor: &'static str, plan: &Value, outcome: &Value) -> Ended {
    Ended {
        workflow: format!("00000000-0000-7000-8000-0000000000{number:02}"),
        actor,
        args: "{}".to_owned(),
        context: plan["context"].clone(),
        outcome: outcome.to_string(),
    }
}

/// The answer of each, or the SQLSTATE of its refusal.
fn finish(db: &mut Client, runs: &[Ended]) -> Vec<Result<Value, String>> {
    fn each<T>(runs: &[Ended], field: impl Fn(&Ended) -> T) -> Vec<T> {
        runs.iter().map(field).collect()
    }
    let workflows = each(runs, |run| run.workflow.clone());
    let (acme, web) = (each(runs, |_| "acme"), each(runs, |_| "web"));
    let (actors, requests) = (each(runs, |run| run.actor), each(runs, |_| "request"));
    let (intents, args) = (each(runs, |_| None::<String>), each(runs, |run| run.args.clone()));
    let contexts = each(runs, |run| run.context.to_string());
    let outcomes = each(runs, |run| run.outcome.clone());
    let mut rows = db
        .query(FINISH, &[&workflows, &acme, &web, &actors, &requests, &intents, &args, &contexts, &outcomes])
        .unwrap();
    rows.sort_by_key(|row| row.get::<_, i64>("place"));
    let answer = |row: &Row| {
        let refusal: Option<Value> = row.get("refusal");
        refusal.map_or_else(
            || Ok(row.get("answer")),
            |refusal| Err(refusal["code"].as_str().unwrap().to_owned()),
        )
    };
    rows.iter().map(answer).collect()
}

/// A database with capabilities of alice, and a proxy.
fn setup() -> (Database, Client, Client) {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute(
        "SET pml.org = 'acme'; SET pml.project = 'web'; SET pml.actor = 'alice';
         SELECT pml_register('return args.n', 'all:n', visibility => 'project'), pml_register('return 2', 'own:two')",
    )
    .unwrap();
    database.create_role("gate", &["pml_proxy"]);
    let mut gate = database.connect_as("gate");
    gate.batch_execute("SET pml.org = 'acme'; SET pml.project = 'web'; SET pml.actor = 'alice'").unwrap();
    (database, db, gate)
}

fn success(result: &Value) -> Value {
    json!({"success": true, "result": result, "duration_ms": 3, "path": ["n1", "d1"], "decisions": [], "tasks": []})
}

#[test]
fn a_plan_writes_nothing_and_holds_for_all_arguments() {
    let (_database, mut db, mut gate) = setup();
    let by_name = plan(&mut gate, &json!({"capability": "all:n", "args": {"n": []}}));
    assert_eq!((&by_name["status"], &by_name["mode"]), (&json!("run"), &json!("call_by_name")));
    assert_eq!(plan(&mut gate, &json!({"tool": "mcp__all__n"})), by_name);
    let code = plan(&mut gate, &json!({"code": "return 1", "name": "new:one"}));
    assert_eq!((&code["context"]["name"], &code["fqdn"]), (&json!("new:one"), &Value::Null));
    assert_eq!(db.number("SELECT count(*) FROM pml.workflow_state"), 0);
    assert_eq!(db.number("SELECT count(*) FROM pml.execution_trace"), 0);
}

#[test]
fn each_run_of_a_batch_is_its_own_principals() {
    let (_database, mut db, mut gate) = setup();
    let (shared, own) = (
        plan(&mut gate, &json!({"capability": "all:n"})),
        plan(&mut gate, &json!({"capability": "own:two"})),
    );
    let failed = json!({"success": false, "error": {"kind": "thrown", "message": "no"}, "duration_ms": 1});
    let called = json!({"success": true, "result": 1, "duration_ms": 5, "tasks": [
        {"kind": "tool", "target": "fs:read", "success": true, "result": {"z": 1, "a": "\u{0}"}, "args": {"b": 1, "a": 2}}]});
    let runs = [
        ended(1, "alice", &shared, &success(&json!({"z": 1, "a": "\u{0}"}))),
        ended(2, "bob", &shared, &success(&json!(2))),
        ended(3, "bob", &shared, &failed),
        ended(4, "alice", &own, &called),
        // Bob doesn't see it: the run is his, and isn't linked to what he can't see.
        ended(5, "bob", &own, &success(&json!(2))),
    ];
    let answers: Vec<Value> = finish(&mut gate, &runs).into_iter().map(Result::unwrap).collect();
    let statuses: Vec<&str> = answers.iter().map(|answer| answer["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["success", "success", "error", "success", "success"]);
    assert!(answers.iter().all(|answer| answer.get("result").is_none()), "the proxy has it");
    assert_eq!(answers[3]["dag"]["tasks"][0]["name"], "fs:read");
    assert_eq!((&answers[0]["_meta"]["fqdn"], &answers[4]["_meta"]["fqdn"]), (&shared["fqdn"], &Value::Null));
    assert_eq!(
        db.texts("SELECT concat_ws(' ', user_id, success, capability_id IS NOT NULL, executed_path) FROM pml.execution_trace WHERE parent_trace_id IS NULL ORDER BY id"),
        ["alice t t {n1,d1}", "bob t t {n1,d1}", "bob f t {}", "alice t t {}", "bob t f {n1,d1}"]
    );
    assert_eq!((counts(&mut db, "all:n"), counts(&mut db, "own:two")), ((3, 2, 7), (1, 1, 5)));
    let fetch = |db: &mut Client, workflow: &str, task: &str| {
        db.query_one("SELECT pml_task_result($1::text::uuid, $2) ->> 'result'", &[&workflow, &task])
            .map(|row| row.get::<_, String>(0))
    };
    assert_eq!(fetch(&mut db, &runs[0].workflow, "result").unwrap(), "{\"z\":1,\"a\":\"\\u0000\"}");
    assert_eq!(fetch(&mut db, &runs[3].workflow, "t1").unwrap(), "{\"z\":1,\"a\":\"\\u0000\"}");
    assert!(fetch(&mut db, &runs[1].workflow, "result").is_err(), "it is bob's");
    check_counts(&mut db);
}

#[test]
fn a_second_report_of_a_run_changes_nothing_and_has_the_same_answer() {
    let (_database, mut db, mut gate) = setup();
    let by_name = plan(&mut gate, &json!({"capability": "all:n"}));
    let code = plan(&mut gate, &json!({"code": "return 7", "name": "new:seven"}));
    let called = json!({"success": true, "result": 1, "duration_ms": 5, "tasks": [
        {"kind": "capability", "target": by_name["fqdn"], "success": true, "result": 1, "run": {"success": true, "fqdn": by_name["fqdn"]}}]});
    let runs = [
        ended(1, "alice", &by_name, &success(&json!(1))),
        ended(2, "alice", &by_name, &called),
        ended(3, "alice", &code, &success(&json!(7))),
    ];
    let first = finish(&mut gate, &runs);
    assert_eq!(first[2].as_ref().unwrap()["capabilityName"], "new:seven");
    let stored = |db: &mut Client| {
        ["execution_trace", "tool_usage", "task_results", "capability_records", "capability_versions"]
            .map(|table| db.number(&format!("SELECT count(*) FROM pml.{table}")))
    };
    let before = stored(&mut db);
    assert_eq!(finish(&mut gate, &runs), first);
    // Also when it comes twice at once, and in another order.
    let [one, two, three] = runs;
    assert_eq!(finish(&mut gate, &[three, one, two]), [first[2].clone(), first[0].clone(), first[1].clone()]);
    assert_eq!(stored(&mut db), before);
    check_counts(&mut db);
}

#[test]
fn what_cannot_be_recorded_does_not_keep_the_others_from_it() {
    let (_database, mut db, mut gate) = setup();
    let by_name = plan(&mut gate, &json!({"capability": "all:n"}));
    let mut unstorable = ended(2, "alice", &by_name, &success(&json!(1)));
    unstorable.args = "{\"n\": \"\\u0000\"}".to_owned();
    let runs = [
        ended(1, "alice", &by_name, &success(&json!(1))),
        unstorable,
        ended(3, "alice", &by_name, &json!({"success": "yes"})),
        ended(4, "", &by_name, &json!({"success": true, "tasks": 1})),
        ended(5, "alice", &by_name, &success(&json!(1))),
    ];
    let codes: Vec<_> = finish(&mut gate, &runs).into_iter().map(Result::err).collect();
    let codes: Vec<_> = codes.iter().map(Option::as_deref).collect();
    assert_eq!(codes, [None, Some("22P05"), Some("22023"), Some("22023"), None]);
    assert_eq!(counts(&mut db, "all:n"), (2, 2, 6));
    check_counts(&mut db);
}

#[test]
fn only_proxies_finish_runs_of_others() {
    let (database, _db, _gate) = setup();
    database.create_role("guest", &[]);
    let mut guest = database.connect_as("guest");
    for call in [
        "pml_plan('{\"capability\": \"all:n\"}')",
        "pml_fold_usage()",
        "pml_finish_many('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')",
    ] {
        assert_eq!(guest.refusal(&format!("SELECT {call}")).code().code(), "42501", "{call}");
    }
}

#[test]
fn counting_waits_for_nobody_and_folding_skips_what_is_in_use() {
    let (database, mut db, mut gate) = setup();
    let by_name = plan(&mut gate, &json!({"capability": "all:n"}));
    let mut other = database.connect();
    let mut open = other.transaction().unwrap();
    open.batch_execute(
        "UPDATE pml.capability_records SET description = 'locked' WHERE display_name = 'all:n'",
    )
    .unwrap();
    finish(&mut gate, &[ended(1, "alice", &by_name, &success(&json!(1)))])[0].as_ref().unwrap();
    assert_eq!(gate.number("SELECT pml_fold_usage()"), 0);
    assert_eq!(counts(&mut db, "all:n"), (1, 1, 3));
    open.rollback().unwrap();
    assert_eq!(gate.number("SELECT pml_fold_usage()"), 1);
    assert_eq!(db.number("SELECT usage_count FROM pml.capability_records WHERE display_name = 'all:n'"), 1);
    check_counts(&mut db);
}

#[test]
fn without_a_proxy_the_counts_of_a_scope_are_folded_too() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'one')").unwrap();
    db.batch_execute(
        "DO $$ BEGIN FOR run IN 1..150 LOOP
           PERFORM pml_finish((pml_begin('{\"capability\": \"one\"}') ->> 'workflow_id')::uuid, '{\"success\": true, \"duration_ms\": 2}');
         END LOOP; END $$",
    )
    .unwrap();
    assert!(db.number("SELECT count(*) FROM pml.capability_usage") < 100);
    assert_eq!(counts(&mut db, "one"), (150, 150, 300));
    check_counts(&mut db);
}
