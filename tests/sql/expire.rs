//! Expiry of the state of runs: a few rows with every finished run, or all with pml_expire. The rest is in retention.rs.

use pml_tests::{Ask, Database, Run};
use serde_json::json;

const OLD: &str = "INSERT INTO pml.workflow_state (org, project, actor, expires_at) SELECT 'acme', 'web', 'alice', now() - interval '1 hour' FROM generate_series(1, 45)";
const EXPIRED: &str = "SELECT count(*) FROM pml.workflow_state WHERE expires_at < now()";

#[test]
fn every_finished_run_removes_a_few_of_anybodys() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute(OLD).unwrap();
    database.create_role("gate", &["pml_proxy"]);
    let mut gate = database.connect_as("gate");
    gate.batch_execute("SET pml.actor = 'bob'").unwrap();
    for left in [25, 5, 0] {
        gate.run(&json!({"code": "return 1"}), &json!(1));
        assert_eq!(db.number(EXPIRED), left);
    }
    assert_eq!(db.number("SELECT count(*) FROM pml.workflow_state"), 3, "what is still of use stays");
}

#[test]
fn a_row_that_somebody_is_at_is_left_alone() {
    let database = Database::new();
    let (mut db, mut other) = (database.connect(), database.connect());
    let plan = db.begin(&json!({"code": "return 1"}));
    db.batch_execute("UPDATE pml.workflow_state SET expires_at = now() - interval '1 second'").unwrap();
    let mut finishing = other.transaction().unwrap();
    finishing
        .query(
            "SELECT pml_finish(($1::jsonb ->> 'workflow_id')::uuid, '{\"success\": true, \"result\": 1}')",
            &[&plan],
        )
        .unwrap();
    db.batch_execute("SELECT pml_expire()").unwrap();
    finishing.commit().unwrap();
    // It was late, and not too late; its answer can be asked for again.
    assert_eq!(db.finish(&plan, &json!({}))["result"], 1);
}

#[test]
fn an_admin_removes_all() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute(OLD).unwrap();
    db.begin(&json!({"code": "return 1"}));
    database.create_role("gate", &["pml_proxy"]);
    assert_eq!(database.connect_as("gate").refusal("SELECT pml_expire()").code().code(), "PM006");
    assert_eq!(db.number("SELECT pml_expire()"), 45);
    assert_eq!(db.number("SELECT pml_expire()"), 0);
    assert_eq!(db.number("SELECT count(*) FROM pml.workflow_state"), 1);
}
