//! `sql/arguments.sql`: validation of arguments and of JSON.

use pgrx::pg_extern;
use pml_core::arguments::{self, ArgumentsError};
use serde_json::Value;

use crate::error::{Kind, Report};

impl From<ArgumentsError> for Report {
    fn from(error: ArgumentsError) -> Self {
        let ArgumentsError { message, detail, hint } = error;
        Report { kind: Kind::InvalidArgument, message, detail, hint: Some(hint) }
    }
}

/// Takes text: converting jsonb that serde_json can't read (too deep, numbers too large) would panic in pgrx.
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

/// Why jsonb or serde_json can't read this JSON.
#[pg_extern(sql = false)]
fn pml_json_problem(json: &str) -> Option<String> {
    json_problem(json)
}

pub(crate) fn json_problem(json: &str) -> Option<String> {
    match serde_json::from_str(json) {
        Ok(value) => has_nul(&value).then(|| "it holds the character U+0000".to_owned()),
        Err(error) => Some(format!("it can't be read: {error}")),
    }
}

/// Recursive: the parser has limited the depth.
fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(fields) => fields.iter().any(|(key, value)| key.contains('\0') || has_nul(value)),
        _ => false,
    }
}

#[pg_extern(sql = false)]
fn pml_checked_schema(what: &str, schema: &str) {
    Report::or_raise(arguments::check_schema(what, schema).map_err(Report::from));
}

#[pg_extern(sql = false)]
fn pml_checked_parameters(schema: &str) {
    Report::or_raise(arguments::check_parameters(schema).map_err(Report::from));
}
