//! `sql/scope.sql`: the scope and actor of the session, and what they may do and see.

use pgrx::{PgMemoryContexts, pg_extern, pg_sys};
use pml_core::name;

use crate::{
    caller::{Caller, Seen},
    error::{Kind, Report, Result},
    gate, settings,
};

#[pg_extern(sql = false)]
fn pml_org() -> String {
    settings::org()
}

#[pg_extern(sql = false)]
fn pml_project() -> String {
    settings::project()
}

#[pg_extern(sql = false)]
fn pml_actor() -> String {
    Caller::current().actor()
}

#[pg_extern(sql = false)]
fn pml_caller() -> pg_sys::Oid {
    gate::asking()
}

#[pg_extern(sql = false)]
fn pml_is_admin() -> bool {
    Caller::current().is_admin()
}

#[pg_extern(sql = false)]
fn pml_may_act(org: &str, project: &str, fcinfo: pg_sys::FunctionCallInfo) -> bool {
    caller_of_this_query(fcinfo).may_act(org, project)
}

#[pg_extern(sql = false)]
fn pml_check_may_act(org: &str, project: &str) {
    Report::or_raise(Caller::current().check_may_act(org, project));
}

#[pg_extern(sql = false)]
fn pml_visible(
    org: &str,
    project: &str,
    visibility: &str,
    created_by: &str,
    fcinfo: pg_sys::FunctionCallInfo,
) -> bool {
    caller_of_this_query(fcinfo).sees(org, project, visibility, created_by)
}

/// As an actor in a scope sees it, whoever asks: what is derived for a record may come only from what its creator sees.
#[pg_extern(sql = false)]
fn pml_visible_from(
    viewer_org: &str,
    viewer_project: &str,
    viewer: &str,
    org: &str,
    project: &str,
    visibility: &str,
    created_by: &str,
) -> bool {
    Seen { org, project, visibility, created_by }.by(viewer_org, viewer_project, viewer)
}

/// Sets scope and actor of a proxy for the rest of the transaction.
#[pg_extern(sql = false)]
fn pml_act_as(
    org: Option<&str>,
    project: Option<&str>,
    actor: Option<&str>,
    request_id: Option<&str>,
) -> bool {
    let (org, project, actor) = Report::or_raise(check_served(org, project, actor));
    settings::set_for_transaction(c"pml.org", org);
    settings::set_for_transaction(c"pml.project", project);
    settings::set_for_transaction(c"pml.actor", actor);
    // Postgres truncates it and replaces unprintable characters.
    settings::set_for_transaction(c"application_name", &format!("pml/{}", request_id.unwrap_or_default()));
    true
}

fn check_served<'a>(
    org: Option<&'a str>,
    project: Option<&'a str>,
    actor: Option<&'a str>,
) -> Result<(&'a str, &'a str, &'a str)> {
    if !Caller::current().may_speak_for_others() {
        return Err(Report {
            kind: Kind::NotPermitted,
            message: "Only a proxy may act for somebody else".to_owned(),
            detail: None,
            hint: Some("Log in as a member of pml_proxy; anyone else acts as the role itself.".to_owned()),
        });
    }
    let (org, project) = (org.unwrap_or_default(), project.unwrap_or_default());
    name::check_part("org", org)?;
    name::check_part("project", project)?;
    // Without an actor the setting would fall back to the proxy itself.
    let actor = actor.unwrap_or_default();
    if actor.is_empty() || actor.len() > LONGEST_ACTOR || actor.chars().any(char::is_control) {
        return Err(Report {
            kind: Kind::InvalidArgument,
            message: "Invalid actor".to_owned(),
            detail: None,
            hint: Some(format!(
                "Say for whom the proxy acts, in 1 to {LONGEST_ACTOR} bytes without control characters."
            )),
        });
    }
    Ok((org, project, actor))
}

const LONGEST_ACTOR: usize = 256;

/// A policy runs for every row; the caller is determined once for each query and cached in fn_extra.
fn caller_of_this_query<'a>(fcinfo: pg_sys::FunctionCallInfo) -> &'a Caller {
    // SAFETY: Postgres sets flinfo for every call through SQL; fn_extra is ours to use, and what it points to lives in
    // fn_mcxt, as long as flinfo itself.
    unsafe {
        let flinfo = (*fcinfo).flinfo;
        let known = (*flinfo).fn_extra.cast::<Caller>();
        if !known.is_null() && (*known).is_current() {
            return &*known;
        }
        let caller = PgMemoryContexts::For((*flinfo).fn_mcxt).leak_and_drop_on_delete(Caller::current());
        (*flinfo).fn_extra = caller.cast();
        &*caller
    }
}
