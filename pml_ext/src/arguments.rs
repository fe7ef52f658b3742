//! `sql/arguments.sql`: arguments held against a schema.

use pgrx::pg_extern;
use pml_core::arguments;

use crate::error::{Kind, Report};

/// As text, since jsonb may hold what Rust's JSON can't: that must be an error of ours, not a panic.
#[pg_extern(sql = false)]
fn pml_checked_args(schema: &str, args: &str) -> String {
    Report::or_raise(arguments::check(schema, args).map_err(|error| Report {
        kind: Kind::InvalidArgument,
        message: error.message,
        detail: error.detail,
        hint: Some(error.hint),
    }))
}
