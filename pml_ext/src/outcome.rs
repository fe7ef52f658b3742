//! `sql/outcome.sql`: what came of a run, and its results as they are shown.

use pgrx::pg_extern;
use pml_core::outcome;

#[pg_extern(sql = false)]
fn pml_outcome_parts(outcome: &str) -> Vec<String> {
    outcome::parts(outcome)
}

#[pg_extern(sql = false)]
fn pml_preview(value: &str) -> String {
    outcome::preview(value)
}

#[pg_extern(sql = false)]
fn pml_pretty(value: &str) -> String {
    outcome::pretty(value)
}
