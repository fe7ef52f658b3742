//! `sql/outcome.sql`: what came of a run, and its results as they are shown.

use pgrx::pg_extern;
use pml_core::outcome;

use crate::{
    arguments::json_problem,
    error::{Kind, Report},
};

#[pg_extern(sql = false)]
fn pml_outcome_parts(outcome: &str) -> Vec<String> {
    let parts = outcome::parts(outcome);
    // Of what the type json allows, jsonb refuses half a surrogate pair; nearly no outcome has an escaped one at all.
    let has_surrogate = parts[0].contains("\\ud") || parts[0].contains("\\uD");
    match has_surrogate.then(|| json_problem(&parts[0])).flatten() {
        Some(problem) => Report::or_raise(Err(Report {
            kind: Kind::InvalidArgument,
            message: format!("Invalid outcome: {problem}"),
            detail: None,
            hint: Some("Send text as UTF-8, without escaped surrogates.".to_owned()),
        })),
        None => parts,
    }
}

#[pg_extern(sql = false)]
fn pml_preview(value: &str) -> String {
    outcome::preview(value)
}

#[pg_extern(sql = false)]
fn pml_pretty(value: &str) -> String {
    outcome::pretty(value)
}
