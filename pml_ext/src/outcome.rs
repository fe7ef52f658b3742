//! `sql/outcome.sql`: outcomes of runs and previews of results.

use pgrx::pg_extern;
use pml_core::outcome::{self, PlainOutcome};

use crate::{
    arguments::json_problem,
    error::{Kind, Report},
};

#[pg_extern(sql = false)]
fn pml_outcome_parts(outcome: &str) -> Vec<String> {
    let parts = outcome::parts(outcome);
    // json allows lone surrogates, jsonb doesn't. Fast path: escaped surrogates are rare.
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

/// No node of a plain outcome holds this separator.
const BETWEEN_NODES: &str = "\u{1f}";

#[pg_extern(sql = false)]
fn pml_plain_outcome(outcome: &str) -> Option<Vec<String>> {
    let plain = PlainOutcome::read(outcome)?;
    let path = plain.path.join(BETWEEN_NODES);
    Some(vec![plain.duration_ms.to_owned(), path, plain.decisions.to_owned(), plain.result.to_owned()])
}

#[pg_extern(sql = false)]
fn pml_preview(value: &str) -> String {
    outcome::preview(value)
}

#[pg_extern(sql = false)]
fn pml_pretty(value: &str) -> String {
    outcome::pretty(value)
}
