//! `sql/restore.sql`: who writes a row. Triggers ask it of every row, and prepare it anew for every statement.

use std::ffi::CStr;

use pgrx::{pg_extern, pg_sys};

use crate::gate;

/// Whether an admin's statement comes from a dump that is being loaded.
#[pg_extern(sql = false)]
fn pml_is_restore() -> bool {
    !is_ours() && is_set(c"check_function_bodies", c"off") && is_set(c"search_path", c"")
}

/// Whether an admin writes this statement, not a function of the extension or a restore.
#[pg_extern(sql = false)]
fn pml_by_hand() -> bool {
    !is_ours() && !pml_is_restore()
}

/// Whether the current user is one of the extension's own roles.
fn is_ours() -> bool {
    // SAFETY: reads the session's state; a missing role is InvalidOid, which no user is.
    unsafe {
        let user = pg_sys::GetUserId();
        [gate::ENGINE, gate::KEEPER].iter().any(|role| pg_sys::get_role_oid(role.as_ptr(), true) == user)
    }
}

fn is_set(setting: &CStr, value: &CStr) -> bool {
    // SAFETY: the names are C strings; nothing changes the setting while its value is compared.
    unsafe {
        let current = pg_sys::GetConfigOption(setting.as_ptr(), true, false);
        !current.is_null() && CStr::from_ptr(current) == value
    }
}
