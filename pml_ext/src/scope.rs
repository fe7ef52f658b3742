//! `sql/scope.sql`: in which scope the session acts, and what it sees from there.

use pgrx::{PgMemoryContexts, pg_extern, pg_sys};

use crate::{caller::Caller, error::Report, settings};

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

/// A policy runs for every row; who is asking is found out once for each query.
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
