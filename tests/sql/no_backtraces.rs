//! No error shows where in the source it was raised: no backtrace, no text of a Rust panic.

use std::collections::BTreeMap;

use fastrand::Rng;
use pml_tests::{Cluster, Database};
use postgres::error::DbError;

use crate::{functions::functions, odd_arguments::world};

/// What a Rust panic leaves in an error or in the server's log.
const TRACES: [&str; 5] = ["backtrace", "panicked", ".rs:", "unwrap()", "core::"];

/// Whether an error has any of them in what a client is shown.
pub(crate) fn shows_a_backtrace(error: &DbError) -> bool {
    let shown = [Some(error.message()), error.detail(), error.hint(), error.where_()];
    shown.into_iter().flatten().any(|text| TRACES.iter().any(|trace| text.contains(trace)))
}

/// What all tests of this process have provoked until now.
pub(crate) fn check_server_log() {
    let log = Cluster::shared().log();
    let found: Vec<_> =
        log.lines().filter(|line| TRACES.iter().any(|trace| line.contains(trace))).take(5).collect();
    assert_eq!(found, [""; 0], "the server's log");
}

/// An error of Postgres' own that passes through Rust, on a server whose environment asks for backtraces.
#[test]
fn an_error_that_passes_through_has_no_backtrace() {
    let database = Database::new();
    let role = database.create_role("stranger", &[]);
    let mut db = database.connect();
    db.batch_execute(&format!("SELECT pml_grant('{role}', 'local', 'default'); SET ROLE {role}")).unwrap();
    db.batch_execute("SET row_security = off").unwrap();
    let error = db.batch_execute("SELECT pml_resolve('nothing')").unwrap_err();
    let error = error.as_db_error().unwrap();
    assert!(error.message().contains("row-level security"), "{error:?}");
    assert!(!shows_a_backtrace(error), "{error:?}");
}

/// The functions behind the public ones, which admins can call, are given what those would have refused.
#[test]
fn internal_functions_fail_in_words() {
    let world = world();
    let mut db = world.database.connect();
    db.batch_execute("SET client_min_messages = error; SET statement_timeout = '60s'; BEGIN").unwrap();
    let walked = functions(
        &mut db,
        "p.pronamespace = 'pml_internal'::regnamespace AND p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'c')",
    );
    assert!(walked.len() > 40);
    let mut random = Rng::with_seed(7);
    let (mut answered, mut refused) = (0, 0);
    let mut found = BTreeMap::new();
    for function in &walked {
        let odd: Vec<Vec<String>> =
            function.parameters.iter().map(|parameter| world.odd(&parameter.kind)).collect();
        for _ in 0..if odd.is_empty() { 1 } else { 60 } {
            let values: Vec<&str> =
                odd.iter().map(|values| values[random.usize(..values.len())].as_str()).collect();
            let statement = format!("SELECT {}({})", function.name, values.join(", "));
            match db.batch_execute(&format!("SAVEPOINT before; {statement}")) {
                Ok(()) => answered += 1,
                Err(error) => {
                    refused += 1;
                    let error = error.as_db_error().unwrap_or_else(|| panic!("{statement:.300}: {error}"));
                    // An internal error is a panic that has been caught.
                    if shows_a_backtrace(error) || error.code().code() == "XX000" {
                        found.entry(function.name.clone()).or_insert(format!("{statement:.300}: {error:?}"));
                    }
                }
            }
            db.batch_execute("ROLLBACK TO before").unwrap();
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    assert!(answered > 500 && refused > 50, "{answered} answered, {refused} refused");
    check_server_log();
}
