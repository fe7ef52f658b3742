//! The settings of the extension (`SET pml.…`).

use std::ffi::{CString, IntoStringError};

use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting};

static ORG: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"local"));
static PROJECT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"default"));
static ACTOR: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);
static NAME_RESERVATION: GucSetting<i32> = GucSetting::<i32>::new(30 * 24 * 60 * 60);
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
    GucRegistry::define_bool_guc(
        c"pml.force_delete",
        c"Delete capabilities even if others depend on them.",
        c"pml_delete(…, force => true) sets it for its own change.",
        &FORCE_DELETE,
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

fn text(setting: &'static GucSetting<Option<CString>>) -> String {
    let in_other_encoding = |error: IntoStringError| error.into_cstring().to_string_lossy().into_owned();
    setting.get().map(|value| value.into_string().unwrap_or_else(in_other_encoding)).unwrap_or_default()
}
