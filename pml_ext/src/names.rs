//! `sql/names.sql`: names and FQDNs.

use pgrx::pg_extern;
use pml_compile::canonical;
use pml_core::{Error, fqdn::Fqdn, fqdn::SHORTEST_HASH, glob, name, namespace, nearest, tool_name};

use crate::error::{Report, Result};

#[pg_extern(sql = false)]
fn pml_fqdn(org: &str, project: &str, namespace: &str, action: &str, code: &str) -> String {
    let build = || -> Result<String> {
        let hash = canonical::code_hash(code)?;
        let hash = &hash[..SHORTEST_HASH];
        Ok(Fqdn { org, project, namespace, action, hash }.check()?.to_string())
    };
    Report::or_raise(build())
}

#[pg_extern(sql = false)]
fn pml_fqdn_parts(fqdn: &str) -> Vec<String> {
    let fqdn = Report::or_raise(Fqdn::parse(fqdn).map_err(Report::from));
    [fqdn.org, fqdn.project, fqdn.namespace, fqdn.action, fqdn.hash].map(str::to_owned).to_vec()
}

#[pg_extern(sql = false)]
fn pml_scoped(org: &str, project: &str, name: &str) -> String {
    [org, ".", project, ":", name].concat()
}

/// The canonical spelling of a name, an identifier in snake_case: `my_odd_name` for `my-odd_name` and `myOddName` too.
#[pg_extern(sql = false)]
fn pml_spelling(name: &str) -> String {
    let snake = pml_compile::snake_case(name);
    let snake = snake.strip_prefix(':').unwrap_or(&snake);
    let identifier = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    match snake.split_once(':') {
        Some((namespace, action)) => [&identifier(namespace), ":", &identifier(action)].concat(),
        None => identifier(snake),
    }
}

#[pg_extern(sql = false)]
fn pml_check_part<'a>(what: Option<&str>, value: Option<&'a str>) -> Option<&'a str> {
    const KNOWN: [&str; 5] = ["org", "project", "namespace", "action", "server name"];
    let what = KNOWN.into_iter().find(|known| Some(*known) == what).unwrap_or("part of an FQDN");
    Report::or_raise(name::check_part(what, value.unwrap_or_default()).map_err(Report::from));
    value
}

#[pg_extern(sql = false)]
fn pml_check_name(name: &str) -> &str {
    Report::or_raise(name::check_given_name(name).map_err(Report::from));
    name
}

#[pg_extern(sql = false)]
fn pml_is_valid_name(name: &str) -> bool {
    name::check_name(name).is_ok()
}

#[pg_extern(sql = false)]
fn pml_is_unnamed(name: &str) -> bool {
    name::is_unnamed(name)
}

#[pg_extern(sql = false)]
fn pml_birth_parts(name: Option<&str>, code_hash: &str, tools: Option<Vec<Option<String>>>) -> Vec<String> {
    let tools: Vec<String> = tools.into_iter().flatten().flatten().collect();
    let (own_namespace, action) =
        name.map_or_else(|| (None, name::unnamed_action(code_hash)), name::split_name);
    vec![own_namespace.unwrap_or_else(|| namespace::infer(&tools).to_owned()), action]
}

#[pg_extern(sql = false)]
fn pml_glob_to_like(glob: &str) -> String {
    const LONGEST: usize = 1_000;
    if glob.len() > LONGEST {
        let detail = format!("The pattern has {} bytes; at most {LONGEST} are allowed.", glob.len());
        let error = Error::InvalidPart { what: "pattern", value: glob.to_owned(), detail };
        Report::or_raise::<()>(Err(Report {
            hint: Some("Use * and ? as wildcards.".to_owned()),
            ..error.into()
        }));
    }
    glob::to_like(glob)
}

#[pg_extern(sql = false)]
fn pml_nearest(wanted: &str, candidates: Vec<Option<String>>) -> Option<String> {
    nearest::nearest(wanted, candidates.iter().flatten().map(String::as_str)).map(str::to_owned)
}

#[pg_extern(sql = false)]
fn pml_tool_name(name: &str, birth_namespace: &str, identity: &str, attempt: i32) -> String {
    tool_name::tool_name(name, birth_namespace, identity, usize::try_from(attempt).unwrap_or(0))
}

/// The list of its scope that a record is in; the lists begin the keys of indexes, whose size is limited.
#[pg_extern(sql = false)]
fn pml_list_of(record_type: &str, is_unnamed: bool, visibility: &str, created_by: &str) -> String {
    const LONGEST_CREATOR: usize = 200;
    let kind = if record_type == "capability" { "c" } else { "s" };
    let named = if is_unnamed { "u" } else { "n" };
    let mut list = [kind, named, "-", visibility].concat();
    if visibility == "private" {
        list.push('-');
        list.extend(created_by.chars().take(LONGEST_CREATOR));
    }
    list
}
