//! What grows is kept for its retention and then dropped by the partition: traces, calls and results of runs.

use pml_tests::{Ask, Database, Run, failure};
use postgres::Client;
use serde_json::{Value, json};

use crate::finish::counts;

const TABLES: [&str; 3] = ["execution_trace", "task_results", "tool_usage"];

/// Moves the slots and what is in them into the past.
fn age(db: &mut Client, by: &str) {
    db.batch_execute(&format!(
        "UPDATE pml.slots SET since = since - interval '{by}';
         UPDATE pml.task_results SET expires_at = expires_at - interval '{by}', created_at = created_at - interval '{by}';
         UPDATE pml.workflow_state SET expires_at = expires_at - interval '{by}';
         UPDATE pml.execution_trace SET executed_at = executed_at - interval '{by}';
         UPDATE pml.tool_usage SET used_at = used_at - interval '{by}'"
    ))
    .unwrap();
}

fn rotate(db: &mut Client) -> i64 {
    db.number("SELECT pml_expire_some()")
}

fn stored(db: &mut Client) -> [i64; 3] {
    TABLES.map(|table| db.number(&format!("SELECT count(*) FROM pml.{table}")))
}

/// The slots of a table in use, the oldest first.
fn slots(db: &mut Client, table: &str) -> Vec<String> {
    db.texts(&format!("SELECT slot::text FROM pml.slots WHERE table_name = '{table}' ORDER BY since"))
}

fn setup() -> (Database, Client) {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute(
        "SET pml.trace_retention = '8d'; SET pml.usage_retention = '8d'; SET pml.result_ttl = '1d';
         SELECT pml_register('return args.n', 'all:n', visibility => 'public')",
    )
    .unwrap();
    (database, db)
}

fn call(db: &mut Client) -> Value {
    db.run(&json!({"capability": "all:n", "args": {"n": 1}}), &json!(1))
}

/// An id as proxies make them, for a run that began so long ago.
fn run_id(db: &mut Client, number: u32, ago: &str) -> String {
    let milliseconds = format!("(extract(epoch FROM now() - interval '{ago}') * 1000)::bigint");
    db.text(&format!("SELECT lpad(to_hex({milliseconds}), 12, '0') || '7' || lpad('{number}', 19, '0')"), &[])
        .unwrap()
}

/// Reports a run as a proxy does; its answer.
fn report(db: &mut Client, id: &str, outcome: &Value) -> Value {
    db.query_one(
        "SELECT f.answer FROM pml_plan('{\"capability\": \"all:n\"}') AS plan, pml_finish_many(
           ARRAY[$1::text::uuid], ARRAY[pml_org()], ARRAY[pml_project()], ARRAY[pml_actor()], '{request}', '{NULL}', '{\"{}\"}',
           ARRAY[plan -> 'context'], ARRAY[$2::jsonb::text]) AS f",
        &[&id, &outcome],
    )
    .unwrap()
    .get(0)
}

fn plain() -> Value {
    json!({"success": true, "result": 1, "duration_ms": 3, "path": [], "decisions": [], "tasks": []})
}

fn nested(plan_of: &str) -> Value {
    json!({"success": true, "result": 1, "duration_ms": 5, "tasks": [
        {"kind": "capability", "target": plan_of, "success": true, "result": 1, "run": {"success": true, "fqdn": plan_of}}]})
}

#[test]
fn slots_take_turns_and_rows_go_when_their_time_is_over() {
    let (_database, mut db) = setup();
    assert_eq!(rotate(&mut db), 0);
    assert_eq!(slots(&mut db, "tool_usage"), ["0"]);
    let mut most = 0;
    for _ in 0..30 {
        age(&mut db, "1 day");
        rotate(&mut db);
        call(&mut db);
        let [traces, results, calls] = stored(&mut db);
        most = most.max(traces);
        // A quarter more than the retention, the time ahead of a slot, and for traces the longest run.
        assert!(traces <= 14 && results <= 3 && calls <= 12, "{traces} {results} {calls}");
    }
    assert!(most >= 9, "a trace is kept for its whole retention");
    for table in TABLES {
        let young = if table == "task_results" { "expires_at > now()" } else { "true" };
        let kept = format!("SELECT count(*) FROM pml.{table} WHERE {young}");
        assert!(db.number(&kept) >= 1);
        assert_eq!(
            db.number(&format!("SELECT count(DISTINCT slot) FROM pml.{table} WHERE slot NOT IN (SELECT slot FROM pml.slots WHERE table_name = '{table}')")),
            0
        );
    }
    let kept = db.number("SELECT count(*) FROM pml.tool_usage WHERE used_at > now() - interval '8 days'");
    assert_eq!(kept, 8, "nothing goes before its time");
    // All is gone, and what was counted stays.
    age(&mut db, "30 days");
    rotate(&mut db);
    age(&mut db, "30 days");
    assert_eq!(rotate(&mut db), 3);
    assert_eq!(stored(&mut db), [0, 0, 0]);
    assert_eq!(counts(&mut db, "all:n").0, 30);
    db.batch_execute("SELECT pml_fold_usage()").unwrap();
    assert_eq!(counts(&mut db, "all:n").0, 30);
    let stats: Value = db.query_one("SELECT pml_stats()", &[]).unwrap().get(0);
    assert_eq!((&stats["usageCount"], &stats["successCount"]), (&json!(30), &json!(30)));
}

#[test]
fn a_second_report_across_a_rotation_changes_nothing() {
    let (_database, mut db) = setup();
    rotate(&mut db);
    age(&mut db, "1 hour");
    let fqdn = db.text("SELECT pml_resolve('all:n')", &[]).unwrap();
    let outcomes = [plain(), nested(&fqdn)];
    let ids = [(1, "10 minutes"), (2, "10 minutes"), (3, "25 hours"), (4, "25 hours")]
        .map(|(number, ago)| run_id(&mut db, number, ago));
    let all = |db: &mut Client| -> Vec<Value> {
        ids.iter().zip(outcomes.iter().cycle()).map(|(id, outcome)| report(db, id, outcome)).collect()
    };
    let first = all(&mut db);
    let before = (stored(&mut db), counts(&mut db, "all:n"));
    assert_eq!(before.0, [6, 6, 6]);
    // The slots turn while the ids stay what they were.
    for _ in 0..3 {
        db.batch_execute("UPDATE pml.slots SET since = since - interval '3 days' WHERE since = (SELECT min(since) FROM pml.slots); SELECT pml_expire_some()").unwrap();
        db.batch_execute("UPDATE pml.slots SET since = now() - interval '1 minute' WHERE since > now()")
            .unwrap();
        assert_eq!(all(&mut db), first);
        assert_eq!((stored(&mut db), counts(&mut db, "all:n")), before);
    }
    assert!(slots(&mut db, "execution_trace").len() > 1, "it did rotate");
    // Also one that a report of today meets in an older slot.
    let current = db.number("SELECT pml_internal.pml_slot('execution_trace')::bigint");
    let new = run_id(&mut db, 9, "0 minutes");
    report(&mut db, &new, &plain());
    assert_eq!(db.number(&format!("SELECT count(*) FROM pml.execution_trace WHERE slot = {current}")), 1);
}

#[test]
fn retention_can_be_changed_at_any_time() {
    let (_database, mut db) = setup();
    rotate(&mut db);
    call(&mut db);
    age(&mut db, "3 days");
    rotate(&mut db);
    age(&mut db, "1 hour");
    call(&mut db);
    assert_eq!(slots(&mut db, "tool_usage"), ["0", "1"]);
    age(&mut db, "2 days");
    assert_eq!(
        stored(&mut db),
        [2, 2, 2],
        "results expire within a day, and not before a new slot has begun"
    );
    db.batch_execute("SET pml.trace_retention = '1h'; SET pml.usage_retention = '1h'").unwrap();
    rotate(&mut db);
    // The newest slot, whose rows are too old as well, goes when the next one has had its time.
    assert_eq!(stored(&mut db), [1, 1, 1]);
    db.batch_execute("SET pml.usage_retention = '300d'").unwrap();
    age(&mut db, "250 days");
    rotate(&mut db);
    assert_eq!(stored(&mut db), [0, 0, 1]);
}

#[test]
fn while_no_slot_can_be_emptied_the_newest_goes_on() {
    let (_database, mut db) = setup();
    for _ in 0..8 {
        rotate(&mut db);
        call(&mut db);
        // Slots turn twice as fast as they may be emptied.
        age(&mut db, "2 days");
        db.batch_execute("SET pml.usage_retention = '80d'; UPDATE pml.slots SET since = since - interval '18 days' WHERE table_name = 'tool_usage' AND since = (SELECT max(since) FROM pml.slots WHERE table_name = 'tool_usage')").unwrap();
    }
    assert_eq!(stored(&mut db)[2], 8);
    assert!(slots(&mut db, "tool_usage").len() <= 6);
}

#[test]
fn results_that_were_promised_for_longer_stay() {
    let (_database, mut db) = setup();
    rotate(&mut db);
    let answer = call(&mut db);
    age(&mut db, "7 hours");
    db.batch_execute("SET pml.result_ttl = '1min'").unwrap();
    rotate(&mut db);
    age(&mut db, "7 hours");
    rotate(&mut db);
    let fetch = format!(
        "SELECT pml_task_result('{}', 'result') ->> 'result'",
        answer["workflowId"].as_str().unwrap()
    );
    assert_eq!(db.text(&fetch, &[]).unwrap(), "1");
    age(&mut db, "11 hours");
    assert_eq!(failure(db.query(&fetch, &[])).message().split(' ').next_back(), Some("expired"));
    rotate(&mut db);
    assert_eq!(stored(&mut db)[1], 0);
    assert_eq!(failure(db.query(&fetch, &[])).message().split(' ').next_back(), Some("expired"));
}

#[test]
fn a_long_reader_holds_up_nobody() {
    let (database, mut db) = setup();
    rotate(&mut db);
    call(&mut db);
    age(&mut db, "3 days");
    rotate(&mut db);
    age(&mut db, "20 days");
    let mut reader = database.connect();
    let mut reading = reader.transaction().unwrap();
    for table in TABLES {
        reading.batch_execute(&format!("LOCK TABLE pml.{table} IN ACCESS SHARE MODE")).unwrap();
    }
    db.batch_execute("SET statement_timeout = '10s'").unwrap();
    assert_eq!(rotate(&mut db), 0, "it gives up soon");
    assert_eq!(stored(&mut db), [1, 1, 1]);
    call(&mut db);
    reading.commit().unwrap();
    assert_eq!(rotate(&mut db), 3);
    assert_eq!(stored(&mut db), [1, 1, 1]);
    // Of two at once, one does it.
    let mut other = database.connect();
    let mut rotating = other.transaction().unwrap();
    rotating.batch_execute("SELECT pml_expire_some()").unwrap();
    assert_eq!(rotate(&mut db), 0);
    call(&mut db);
    rotating.commit().unwrap();
}

#[test]
fn an_old_snapshot_rotates_nothing() {
    let (_database, mut db) = setup();
    rotate(&mut db);
    call(&mut db);
    age(&mut db, "3 days");
    rotate(&mut db);
    age(&mut db, "20 days");
    db.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    assert_eq!(rotate(&mut db), 0);
    db.batch_execute("COMMIT").unwrap();
    assert_eq!(rotate(&mut db), 3);
}

#[test]
fn only_proxies_and_admins_expire() {
    let (database, mut db) = setup();
    for (role, member_of) in [("guest", None), ("gate", Some("pml_proxy")), ("boss", Some("pml_admin"))] {
        database.create_role(role, member_of.as_slice());
        let mut client = database.connect_as(role);
        // The settings are known from here on.
        client.batch_execute("SELECT pml_actor()").unwrap();
        for statement in [
            "TRUNCATE pml.execution_trace",
            "TRUNCATE pml.tool_usage_0",
            "ALTER TABLE pml.tool_usage DETACH PARTITION pml.tool_usage_0",
            "SELECT pml_internal.pml_rotate()",
            "SET pml.trace_retention = '1s'",
            "SET pml.usage_retention = '1s'",
        ] {
            let is_admins = role == "boss" && statement.starts_with("SELECT");
            if !is_admins {
                assert_eq!(client.refusal(statement).code().code(), "42501", "{role}: {statement}");
            }
        }
        let expired = client.query("SELECT pml_expire_some()", &[]);
        assert_eq!(expired.is_ok(), member_of.is_some(), "{role}");
    }
    // Neither are they seen or written below their table.
    let guest = database.role("guest");
    db.batch_execute("SELECT pml_finish((pml_begin('{\"capability\": \"all:n\"}') ->> 'workflow_id')::uuid, '{\"success\": true, \"result\": 1}')").unwrap();
    let mut client = database.connect_as("guest");
    for table in TABLES {
        for slot in 0..6 {
            let query = format!("SELECT count(*) FROM pml.{table}_{slot}");
            assert_eq!(client.refusal(&query).code().code(), "42501");
            db.batch_execute(&format!("GRANT SELECT ON pml.{table}_{slot} TO {guest}")).unwrap();
            assert_eq!(client.number(&query), 0);
        }
    }
}

/// A lookup probes the index of each partition, whatever their sizes.
#[test]
fn lookups_scan_no_partition() {
    let (_database, mut db) = setup();
    let answer = call(&mut db);
    let id = answer["workflowId"].as_str().unwrap();
    db.batch_execute("ANALYZE; SET ROLE pml_engine; SET enable_seqscan = off").unwrap();
    for query in [
        format!("SELECT FROM pml.task_results WHERE workflow_id = '{id}' AND task_id = 'result'"),
        format!("SELECT FROM pml.execution_trace WHERE id = '{id}'"),
        format!("SELECT FROM pml.execution_trace WHERE parent_trace_id = '{id}'"),
    ] {
        let plan = db.texts(&format!("EXPLAIN {query}")).join("\n");
        assert_eq!(plan.matches("Index Cond").count(), 6, "{plan}");
        assert!(!plan.contains("Seq Scan"), "{plan}");
    }
}
