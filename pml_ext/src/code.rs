//! `sql/code.sql`: code and versions as pure functions of text.

use pgrx::pg_extern;
use pml_compile::canonical;
use pml_core::{Error, diff, hash::text_hash, version::Tag};

use crate::{compile::compiler, error::Report};

fn valid<T>(result: Result<T, Error>) -> T {
    Report::or_raise(result.map_err(Report::from))
}

#[pg_extern(sql = false)]
fn pml_code_hash(code: &str) -> String {
    compiler(code, |code| Ok(canonical::code_hash(code)?))
}

#[pg_extern(sql = false)]
fn pml_long_code_hash(code: &str) -> String {
    compiler(code, |code| Ok(canonical::long_code_hash(code)?))
}

#[pg_extern(sql = false)]
fn pml_text_hash(content: &str) -> String {
    text_hash(content)
}

#[pg_extern(sql = false)]
fn pml_version_tag(tag: &str) -> String {
    valid(Tag::parse(tag)).stored()
}

#[pg_extern(sql = false)]
fn pml_version_key(tag: &str) -> String {
    valid(Tag::parse(tag)).sort_key()
}

#[pg_extern(sql = false)]
fn pml_diff(old: &str, new: &str, old_label: &str, new_label: &str) -> String {
    diff::unified(old, new, old_label, new_label)
}
