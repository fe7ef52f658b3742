//! Two sessions compete for the same names, in every order: one wins, no deadlock, no dangling alias.

use std::{sync::mpsc, thread, time::Duration};

use pml_tests::{Ask, Database};
use postgres::Client;

/// Statements of which two are run against each other; `a`, `b` and `c` exist, `c` was once called `old`.
const ACTIONS: &[&str] = &[
    "SELECT pml_register('return 10', 'x')",
    "SELECT pml_register('return 11', 'x')",
    "SELECT pml_register('return 10')",
    "SELECT pml_rename('a', 'x')",
    "SELECT pml_rename('b', 'x')",
    "SELECT pml_rename('a', 'y')",
    "SELECT pml_rename('c', 'old')",
    "SELECT pml_rename('a', 'old')",
    "SELECT pml_release_alias('old')",
    "SELECT pml_delete('a')",
    "SELECT pml_delete('c')",
    "SELECT pml_update('a', 'return 12')",
    "SELECT pml_fork('a', 'x')",
    "UPDATE pml.capability_records SET display_name = 'x' WHERE display_name = 'b' AND project = pml_project()",
];

fn prepare(db: &mut Client) {
    db.batch_execute(
        "SELECT pml_register('return 1', 'a'); SELECT pml_register('return 2', 'b');
         SELECT pml_register('return 3', 'old'); SELECT pml_rename('old', 'c')",
    )
    .unwrap();
}

/// What must hold whatever has happened.
fn check(db: &mut Client, context: &str) {
    let broken = db.texts(
        "SELECT 'alias to nothing: ' || a.alias FROM pml.capability_aliases a
         LEFT JOIN pml.capability_records r ON r.id = a.target_fqdn AND r.deleted_at IS NULL WHERE r.id IS NULL
         UNION ALL
         SELECT 'two of one name: ' || display_name FROM pml.capability_records WHERE deleted_at IS NULL
         GROUP BY org, project, display_name HAVING count(*) > 1
         UNION ALL
         SELECT 'name and alias: ' || a.alias FROM pml.capability_aliases a
         JOIN pml.capability_records r USING (org, project) WHERE r.display_name = a.alias AND r.deleted_at IS NULL
         UNION ALL
         SELECT 'claim of another: ' || r.display_name FROM pml.capability_records r
         JOIN pml.name_claims c ON (c.org, c.project, c.name) = (r.org, r.project, r.display_name)
         WHERE r.deleted_at IS NULL AND (c.fqdn <> r.id OR c.kind <> 'name')
         UNION ALL
         SELECT 'claim of nobody: ' || c.name FROM pml.name_claims c
         WHERE c.kind = 'alias' AND NOT EXISTS (SELECT FROM pml.capability_aliases a
           WHERE (a.org, a.project, a.alias, a.target_fqdn) = (c.org, c.project, c.name, c.fqdn))
         UNION ALL
         SELECT 'same code twice: ' || code_hash FROM pml.capability_records
         WHERE deleted_at IS NULL AND forked_from IS NULL AND record_type = 'capability'
         GROUP BY org, project, code_hash HAVING count(*) > 1",
    );
    assert_eq!(broken, [""; 0], "{context}");
}

/// Runs the second statement while the first is uncommitted; returns the SQLSTATEs of both ("00000": went through).
fn interleave(database: &Database, first: &str, second: &str, commit: bool) -> (String, String) {
    let code = |result: Result<(), postgres::Error>| {
        result.map_or_else(
            |error| error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned()),
            |()| "00000".to_owned(),
        )
    };
    let (mut one, mut two) = (database.connect(), database.connect());
    let pid: i32 = two.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    one.batch_execute("SET client_min_messages = error; BEGIN").unwrap();
    let first_code = code(one.batch_execute(first));
    let (done, ended) = mpsc::channel();
    let statement = second.to_owned();
    let thread = thread::spawn(move || {
        let code = code(two.batch_execute(&statement));
        done.send(()).ok();
        code
    });
    // The second either ends by itself or waits for a lock of the first.
    let mut observer = database.connect();
    while ended.recv_timeout(Duration::from_millis(1)).is_err() {
        let waits = observer.number(&format!(
            "SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock'"
        ));
        if waits > 0 {
            break;
        }
    }
    one.batch_execute(if commit { "COMMIT" } else { "ROLLBACK" }).unwrap();
    (first_code, thread.join().unwrap())
}

#[test]
fn any_two_actions_in_any_order() {
    for commit in [true, false] {
        for first in ACTIONS {
            // One database for each first statement keeps this quick; the records are made anew for each second one.
            let database = Database::new();
            for (round, second) in ACTIONS.iter().enumerate() {
                let mut db = database.connect();
                let project = format!("ALTER DATABASE {} SET pml.project = 'round_{round}'", database.name);
                db.batch_execute(&project).unwrap();
                let mut db = database.connect();
                prepare(&mut db);
                let context = format!("{first} | {second} | commit: {commit}");
                let (one, two) = interleave(&database, first, second, commit);
                for code in [&one, &two] {
                    assert!(code == "00000" || code.starts_with("PM"), "{context}: {one} {two}");
                }
                // Only a name that is somebody's alias can't be had by the first either.
                assert_eq!(one == "PM003", *first == "SELECT pml_rename('a', 'old')", "{context}: {one}");
                if !commit && *second != "SELECT pml_rename('a', 'old')" {
                    assert_eq!(two, "00000", "{context}");
                }
                let takes_x = |statement: &str| statement.contains("'x'");
                // Two that give x to the same record want the same thing.
                let agree = first.contains("'b'") && second.contains("'b'");
                if commit && takes_x(first) && takes_x(second) && first != second && !agree {
                    assert_eq!(two, "PM003", "{context}");
                }
                check(&mut db, &context);
            }
        }
    }
}

#[test]
fn many_sessions_want_one_name() {
    let database = Database::new();
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let mut db = database.connect();
            thread::spawn(move || {
                db.batch_execute(&format!("SELECT pml_register('return {number}', 'wanted')")).is_ok()
            })
        })
        .collect();
    let won = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count();
    assert_eq!(won, 1);
    check(&mut database.connect(), "eight sessions");
}

#[test]
fn many_sessions_register_the_same_code() {
    let database = Database::new();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let mut db = database.connect();
            thread::spawn(move || db.text("SELECT pml_register('return 1')", &[]).unwrap())
        })
        .collect();
    let fqdns: Vec<String> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(fqdns.iter().all(|fqdn| *fqdn == fqdns[0]), "{fqdns:?}");
    let mut db = database.connect();
    assert_eq!(db.number("SELECT usage_count FROM pml.capability_records WHERE org = 'local'"), 7);
    check(&mut db, "eight sessions");
}

#[test]
fn many_sessions_update_one_capability() {
    let database = Database::new();
    database.connect().batch_execute("SELECT pml_register('return 0', 'x')").unwrap();
    let threads: Vec<_> = (1..=8)
        .map(|number| {
            let mut db = database.connect();
            thread::spawn(move || {
                db.query_one(&format!("SELECT pml_update('x', 'return {number}')"), &[])
                    .unwrap()
                    .get::<_, i32>(0)
            })
        })
        .collect();
    let mut versions: Vec<i32> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    versions.sort_unstable();
    assert_eq!(versions, [2, 3, 4, 5, 6, 7, 8, 9]);
}
