//! Concurrent pml_finish: everything is counted once, one run gets the name, no deadlock.

use std::thread;

use pml_tests::{Ask, Database, Run};
use serde_json::{Value, json};

use crate::finish::{check_counts, counts, succeed, with_tasks};

#[test]
fn two_reports_at_once_are_one() {
    let database = Database::new();
    let mut db = database.connect();
    let (plan, outcome) = with_tasks(&mut db);
    let threads: Vec<_> = (0..6)
        .map(|_| {
            let mut db = database.connect();
            let (plan, outcome) = (plan.clone(), outcome.clone());
            thread::spawn(move || db.finish(&plan, &outcome))
        })
        .collect();
    let answers: Vec<Value> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(counts(&mut db, "b"), (2, 1, 11));
    check_counts(&mut db);
}

#[test]
fn many_runs_of_the_same_new_code_make_one_capability() {
    let database = Database::new();
    for name in [None, Some("wanted")] {
        let code = format!("return {name:?}").replace("None", "0").replace("Some(", "[").replace(')', "]");
        let begun: Vec<_> = (0..6)
            .map(|_| {
                let mut db = database.connect();
                let plan = db.begin(&json!({"code": code, "name": name}));
                (db, plan)
            })
            .collect();
        let threads: Vec<_> = begun
            .into_iter()
            .map(|(mut db, plan)| thread::spawn(move || db.finish(&plan, &succeed(&json!(1)))))
            .collect();
        let answers: Vec<Value> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        for answer in &answers {
            assert_eq!(
                (&answer["_meta"]["fqdn"], answer.get("warning")),
                (&answers[0]["_meta"]["fqdn"], None)
            );
        }
        assert_eq!(
            counts(&mut database.connect(), answers[0]["capabilityName"].as_str().unwrap()),
            (6, 6, 42)
        );
    }
    check_counts(&mut database.connect());
}

#[test]
fn of_different_codes_that_want_one_name_one_gets_it_and_the_others_are_told() {
    let database = Database::new();
    let begun: Vec<_> = (0..5)
        .map(|number| {
            let mut db = database.connect();
            let plan = db.begin(&json!({"code": format!("return {number}"), "name": "wanted"}));
            (number, db, plan)
        })
        .collect();
    let threads: Vec<_> = begun
        .into_iter()
        .map(|(number, mut db, plan)| thread::spawn(move || db.finish(&plan, &succeed(&json!(number)))))
        .collect();
    let answers: Vec<Value> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let (winners, others): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer["capabilityName"] == "wanted");
    assert_eq!(winners.len(), 1);
    for (number, other) in answers.iter().enumerate() {
        assert_eq!((&other["status"], &other["result"]), (&json!("success"), &json!(number)));
    }
    for other in others {
        assert!(other["warning"].as_str().unwrap().contains("'wanted' already exists"), "{other}");
        assert!(other["capabilityName"].as_str().unwrap().starts_with("unnamed_"));
    }
    check_counts(&mut database.connect());
}

#[test]
fn runs_that_call_the_same_in_other_orders_do_not_wait_for_each_other() {
    let database = Database::new();
    let mut db = database.connect();
    let fqdns: Vec<String> = (0..6)
        .map(|number| {
            db.text("SELECT pml_register($1, $2)", &[&format!("return {number}"), &format!("n:c{number}")])
                .unwrap()
        })
        .collect();
    let threads: Vec<_> = (0..6)
        .map(|number| {
            let mut db = database.connect();
            let mut targets = fqdns.clone();
            targets.rotate_left(number);
            if number % 2 == 1 {
                targets.reverse();
            }
            thread::spawn(move || {
                for _ in 0..20 {
                    let plan = db.begin(&json!({"capability": targets[0]}));
                    let tasks: Vec<Value> = targets.iter().map(|target| json!({"kind": "capability", "target": target, "success": true, "duration_ms": 1})).collect();
                    db.finish(&plan, &json!({"success": true, "duration_ms": 1, "tasks": tasks}));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    check_counts(&mut db);
    assert_eq!(
        db.number("SELECT sum(usage_count)::bigint FROM pml.capability_records"),
        6 * 20 * 7,
        "folded by check_counts"
    );
}
