//! The settings of the extension (`SET pml.…`).

use std::ffi::{CStr, CString, IntoStringError};

use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_sys};

static ORG: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"local"));
static PROJECT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"default"));
static ACTOR: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);
static RAN_WITH: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);
static NAME_RESERVATION: GucSetting<i32> = GucSetting::<i32>::new(30 * 24 * 60 * 60);
static WORKFLOW_TTL: GucSetting<i32> = GucSetting::<i32>::new(60 * 60);
static RESULT_TTL: GucSetting<i32> = GucSetting::<i32>::new(60 * 60);
static TRACE_RETENTION: GucSetting<i32> = GucSetting::<i32>::new(30 * 24 * 60 * 60);
static USAGE_RETENTION: GucSetting<i32> = GucSetting::<i32>::new(90 * 24 * 60 * 60);
static FORCE_DELETE: GucSetting<bool> = GucSetting::<bool>::new(false);
static RESTORE_VERSION: GucSetting<bool> = GucSetting::<bool>::new(false);

pub(crate) fn define() {
    GucRegistry::define_string_guc(
        c"pml.org",
        c"The organisation in which this session acts.",
        c"The first part of the scope in which names are looked up and capabilities made.",
        &ORG,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_string_guc(
        c"pml.project",
        c"The project in which this session acts.",
        c"The second part of the scope in which names are looked up and capabilities made.",
        &PROJECT,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_string_guc(
        c"pml.actor",
        c"For whom this session acts.",
        c"Heeded for admins and proxies only; anyone else acts as the role itself.",
        &ACTOR,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"pml.name_reservation",
        c"How long the name of a deleted capability stays reserved.",
        c"Until then nobody can take it, so that old callers get an error, not something else.",
        &NAME_RESERVATION,
        0,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_S,
    );
    GucRegistry::define_int_guc(
        c"pml.workflow_ttl",
        c"How long the state of a run is kept.",
        c"Until then its end can be reported, and what was answered be asked for again.",
        &WORKFLOW_TTL,
        1,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_S,
    );
    GucRegistry::define_int_guc(
        c"pml.result_ttl",
        c"How long the whole results of tasks are kept.",
        c"Until then pml_task_result gives them.",
        &RESULT_TTL,
        0,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_S,
    );
    GucRegistry::define_int_guc(
        c"pml.trace_retention",
        c"How long traces of runs are kept.",
        c"They are dropped by the partition, up to two days and a quarter of this time later.",
        &TRACE_RETENTION,
        0,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_S,
    );
    GucRegistry::define_int_guc(
        c"pml.usage_retention",
        c"How long the rows of calls are kept.",
        c"They are dropped by the partition, up to a quarter of this time later; what they counted stays.",
        &USAGE_RETENTION,
        0,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_S,
    );
    GucRegistry::define_bool_guc(
        c"pml.force_delete",
        c"Delete capabilities even if others depend on them.",
        c"pml_delete(…, force => true) sets it for its own change.",
        &FORCE_DELETE,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_string_guc(
        c"pml.ran_with",
        c"The arguments with which the code that is saved has run.",
        c"pml_finish sets it for its own change: what they lacked isn't required.",
        &RAN_WITH,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"pml.restore_version",
        c"Code that an earlier version had keeps the links it had then.",
        c"pml_rollback sets it for its own change.",
        &RESTORE_VERSION,
        GucContext::Userset,
        GucFlags::default(),
    );
}

pub(crate) fn org() -> String {
    text(&ORG)
}

pub(crate) fn project() -> String {
    text(&PROJECT)
}

/// The actor, if one is set.
pub(crate) fn actor() -> Option<String> {
    Some(text(&ACTOR)).filter(|actor| !actor.is_empty())
}

/// SET LOCAL, with the rights of the caller.
pub(crate) fn set_for_transaction(name: &CStr, value: &str) {
    let value = CString::new(value.replace('\0', "")).unwrap_or_default();
    // SAFETY: both are C strings, which Postgres copies.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_LOCAL,
            true,
            0,
            false,
        );
    }
}

fn text(setting: &'static GucSetting<Option<CString>>) -> String {
    let in_other_encoding = |error: IntoStringError| error.into_cstring().to_string_lossy().into_owned();
    setting.get().map(|value| value.into_string().unwrap_or_else(in_other_encoding)).unwrap_or_default()
}
