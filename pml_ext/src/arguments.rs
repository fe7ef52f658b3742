//! `sql/arguments.sql`: arguments held against a schema.

use pgrx::pg_extern;
use pml_core::arguments::{self, ArgumentsError};

use crate::error::{Kind, Report};

impl From<ArgumentsError> for Report {
    fn from(error: ArgumentsError) -> Self {
        let ArgumentsError { message, detail, hint } = error;
        Report { kind: Kind::InvalidArgument, message, detail, hint: Some(hint) }
    }
}

/// As text, since jsonb may hold what Rust's JSON can't: that must be an error of ours, not a panic.
#[pg_extern(sql = false)]
fn pml_checked_args(schema: &str, args: &str) -> String {
    Report::or_raise(arguments::check(schema, args).map_err(Report::from))
}

#[pg_extern(sql = false)]
fn pml_validate_args(schema: &str, args: &str) {
    Report::or_raise(arguments::validate(schema, args).map_err(Report::from));
}

#[pg_extern(sql = false)]
fn pml_allowing_args(schema: &str, args: &str) -> String {
    Report::or_raise(arguments::allow(schema, args).map_err(Report::from))
}

#[pg_extern(sql = false)]
fn pml_checked_schema(what: &str, schema: &str) {
    Report::or_raise(arguments::check_schema(what, schema).map_err(Report::from));
}
