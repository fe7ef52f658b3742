//! Finding a record and one of its versions, as the current user sees them.

use std::{ffi::CStr, ops::ControlFlow};

use pgrx::{FromDatum, pg_sys};
use pml_core::version::{VersionSpec, sort_key_prefix};

use crate::{
    caller::Caller,
    error::{Kind, Report, Result},
    scan::{self, Direction, Key, Order, Row},
};

/// Where the columns stand in `pml.capability_records` (sql/records.sql).
mod column {
    pub(super) const ID: usize = 1;
    pub(super) const DISPLAY_NAME: usize = 2;
    pub(super) const ORG: usize = 3;
    pub(super) const PROJECT: usize = 4;
    pub(super) const VISIBILITY: usize = 5;
    pub(super) const CREATED_BY: usize = 6;
    pub(super) const DELETED_AT: usize = 7;
    pub(super) const VERSION: usize = 8;
    pub(super) const VERSION_TAG: usize = 9;
    pub(super) const CREATED_AT: usize = 10;
}

pub(crate) struct Found {
    pub(crate) fqdn: String,
    pub(crate) display_name: String,
    pub(crate) version: i32,
    version_tag: String,
    /// Microseconds since Postgres' epoch.
    created_at: i64,
}

/// Microseconds from the Unix epoch to that of Postgres, 2000-01-01.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

pub(crate) fn by_name(caller: &Caller, org: &str, project: &str, name: &str) -> Option<Found> {
    let keys = [Key::is(org), Key::is(project), Key::is(name)];
    find(caller, c"capability_records_name", &keys)
}

pub(crate) fn by_fqdn(caller: &Caller, fqdn: &str) -> Option<Found> {
    find(caller, c"capability_records_pkey", &[Key::is(fqdn)])
}

pub(crate) fn by_alias(caller: &Caller, org: &str, project: &str, alias: &str) -> Option<Found> {
    const TARGET_FQDN: usize = 4;
    let keys = [Key::is(org), Key::is(project), Key::is(alias)];
    let target =
        scan::rows(c"capability_aliases", c"capability_aliases_pkey", &keys, Direction::Forward, |row| {
            ControlFlow::Break(row.text(TARGET_FQDN))
        })?;
    by_fqdn(caller, &target)
}

/// Whether another than this record holds the name: as its name or alias, or reserved after its deletion.
pub(crate) fn is_taken(org: &str, project: &str, name: &str, own_fqdn: Option<&str>) -> bool {
    const FQDN: usize = 4;
    const RESERVED_UNTIL: usize = 6;
    let keys = [Key::is(org), Key::is(project), Key::is(name)];
    let taken = scan::rows(c"name_claims", c"name_claims_pkey", &keys, Direction::Forward, |row| {
        // SAFETY: the column is of type timestamptz, a 64-bit integer; the clock of the transaction is set.
        let is_over = unsafe {
            row.column(RESERVED_UNTIL)
                .and_then(|time| i64::from_datum(time, false))
                .is_some_and(|time| time <= pg_sys::GetCurrentTransactionStartTimestamp())
        };
        ControlFlow::Break(!is_over && own_fqdn != Some(row.text(FQDN).as_str()))
    });
    taken.unwrap_or(false)
}

fn find(caller: &Caller, index: &'static CStr, keys: &[Key]) -> Option<Found> {
    scan::rows(c"capability_records", index, keys, Direction::Forward, |row| {
        let is_live = row.column(column::DELETED_AT).is_none();
        if is_live && is_seen(caller, row) {
            ControlFlow::Break(read(row))
        } else {
            ControlFlow::Continue(())
        }
    })
}

fn is_seen(caller: &Caller, row: &Row) -> bool {
    caller.is_admin()
        || caller.sees(
            &row.text(column::ORG),
            &row.text(column::PROJECT),
            &row.text(column::VISIBILITY),
            &row.text(column::CREATED_BY),
        )
}

fn read(row: &Row) -> Found {
    Found {
        fqdn: row.text(column::ID),
        display_name: row.text(column::DISPLAY_NAME),
        version: number(row, column::VERSION),
        version_tag: row.text(column::VERSION_TAG),
        // SAFETY: the column is of type timestamptz, a 64-bit integer.
        created_at: row
            .column(column::CREATED_AT)
            .and_then(|time| unsafe { i64::from_datum(time, false) })
            .unwrap_or(i64::MAX),
    }
}

fn number(row: &Row, column: usize) -> i32 {
    // SAFETY: the column is of type integer.
    row.column(column).and_then(|value| unsafe { i32::from_datum(value, false) }).unwrap_or_default()
}

/// Whether the record alone shows that the specifier picks one of its versions: numbers have no gaps, the first
/// version is as old as the record, and the current tag is there. A `false` says nothing.
pub(crate) fn surely_has_version(found: &Found, spec: &VersionSpec<'_>) -> bool {
    match spec {
        VersionSpec::Latest => true,
        VersionSpec::Major(major) => {
            i32::try_from(*major).is_ok_and(|number| (1..=found.version).contains(&number))
        }
        VersionSpec::Minor(..) => false,
        VersionSpec::Exact(tag) => found.version_tag == tag.stored(),
        VersionSpec::Before(moment) => {
            moment.checked_sub(POSTGRES_EPOCH).is_some_and(|moment| found.created_at < moment)
        }
    }
}

/// The number of the version that the specifier picks.
pub(crate) fn version(found: &Found, spec: &VersionSpec<'_>) -> Option<i32> {
    match spec {
        VersionSpec::Latest => Some(found.version),
        VersionSpec::Exact(tag) => {
            let keys = [Key::is(&found.fqdn), Key::is(&tag.stored())];
            find_version(c"capability_versions_capability_fqdn_version_tag_key", &keys, |_| true)
        }
        VersionSpec::Minor(major, minor) => highest_tag(found, &sort_key_prefix(*major, Some(*minor))),
        VersionSpec::Major(major) => highest_tag(found, &sort_key_prefix(*major, None)).or_else(|| {
            let keys = [Key::is(&found.fqdn), Key::number(i32::try_from(*major).ok()?)];
            find_version(c"capability_versions_capability_fqdn_version_key", &keys, |_| true)
        }),
        VersionSpec::Before(moment) => {
            let keys = [Key::is(&found.fqdn), Key::before(moment.checked_sub(POSTGRES_EPOCH)?)];
            find_version(c"capability_versions_time", &keys, |_| true)
        }
    }
}

fn highest_tag(found: &Found, prefix: &str) -> Option<i32> {
    const VERSION_KEY: usize = 5;
    // Sort keys are ASCII: this is above every key with the prefix, and only just.
    let above = format!("{prefix}\u{7f}");
    let keys = [Key::is(&found.fqdn), Key::text(Order::Less, &above)];
    find_version(c"capability_versions_key", &keys, |row| row.text(VERSION_KEY).starts_with(prefix))
}

/// The last version in the order of the index, if it fits.
fn find_version(index: &'static CStr, keys: &[Key], fits: impl Fn(&Row) -> bool) -> Option<i32> {
    const VERSION: usize = 3;
    scan::rows(c"capability_versions", index, keys, Direction::Backward, |row| {
        ControlFlow::Break(fits(row).then(|| number(row, VERSION)))
    })?
}

/// Scans don't look at privileges; a role from which SELECT was revoked must not read this way either.
pub(crate) fn check_privileges() -> Result<()> {
    for table in [c"capability_records", c"capability_aliases", c"capability_versions"] {
        let Some(oid) = scan::relation(table) else { continue };
        // SAFETY: looks the privilege up in the system cache.
        #[allow(clippy::useless_conversion, reason = "the type of a privilege is wider from Postgres 16 on")]
        let allowed = unsafe {
            pg_sys::pg_class_aclcheck(oid, pg_sys::GetUserId(), pg_sys::ACL_SELECT.into())
                == pg_sys::AclResult::ACLCHECK_OK
        };
        if !allowed {
            return Err(Report {
                kind: Kind::InsufficientPrivilege,
                message: format!("permission denied for table {}", table.to_string_lossy()),
                detail: None,
                hint: Some(
                    "It was revoked: GRANT SELECT on the tables of schema pml brings it back.".to_owned(),
                ),
            });
        }
    }
    Ok(())
}
