//! Finding a record and one of its versions, as the current user sees them.

use std::{borrow::Cow, ffi::CStr, ops::ControlFlow};

use pgrx::{FromDatum, pg_sys};
use pml_core::version::{VersionSpec, sort_key_prefix};

use crate::{
    caller::Caller,
    scan::{self, Direction, Key, Order, Row},
};

/// Column numbers of `pml.capability_records` (sql/records.sql).
mod record {
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

/// Column numbers of `pml.capability_aliases` (sql/aliases.sql).
mod alias {
    pub(super) const ALIAS: usize = 1;
    pub(super) const ORG: usize = 2;
    pub(super) const PROJECT: usize = 3;
    pub(super) const TARGET_FQDN: usize = 4;
}

/// Column numbers of `pml.capability_versions` (sql/versions.sql).
mod version {
    pub(super) const CAPABILITY_FQDN: usize = 2;
    pub(super) const VERSION: usize = 3;
    pub(super) const VERSION_TAG: usize = 4;
    pub(super) const VERSION_KEY: usize = 5;
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

/// A name in a scope.
pub(crate) struct Place<'a> {
    org: Cow<'a, str>,
    project: Cow<'a, str>,
    pub(crate) name: &'a str,
    /// `org.project:name`, as the indexes have it.
    key: String,
}

impl<'a> Place<'a> {
    pub(crate) fn new(org: impl Into<Cow<'a, str>>, project: impl Into<Cow<'a, str>>, name: &'a str) -> Self {
        let (org, project) = (org.into(), project.into());
        let key = [&org, ".", &project, ":", name].concat();
        Place { org, project, name, key }
    }

    /// Whether these columns of a row have this scope and name.
    fn is_at(&self, row: &Row, org: usize, project: usize, name: usize) -> bool {
        row.bytes(name) == self.name.as_bytes()
            && row.bytes(project) == self.project.as_bytes()
            && row.bytes(org) == self.org.as_bytes()
    }
}

pub(crate) fn by_name(caller: &Caller, place: &Place<'_>) -> Option<Found> {
    find(caller, c"capability_records_scoped_name", &place.key, |row| {
        place.is_at(row, record::ORG, record::PROJECT, record::DISPLAY_NAME)
    })
}

pub(crate) fn by_fqdn(caller: &Caller, fqdn: &str) -> Option<Found> {
    find(caller, c"capability_records_fqdn", fqdn, |row| row.bytes(record::ID) == fqdn.as_bytes())
}

/// The records whose FQDNs have these parts before the hash; at most two, which is enough to know that it is ambiguous.
pub(crate) fn by_parts(caller: &Caller, parts: [&str; 4]) -> Vec<Found> {
    const ENOUGH: usize = 5;
    let index = c"capability_records_org_project_namespace_action_hash_key";
    let mut found = Vec::new();
    scan::rows(c"capability_records", index, &parts.map(Key::is), Direction::Forward, |row| {
        if row.column(record::DELETED_AT).is_none() && is_seen(caller, row) {
            found.push(read(row));
        }
        if found.len() < ENOUGH { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    found
}

pub(crate) fn by_alias(caller: &Caller, place: &Place<'_>) -> Option<Found> {
    let (table, index) = (c"capability_aliases", c"capability_aliases_scoped_name");
    let target = scan::first_hashed(table, index, &place.key, |row| {
        let is_meant = place.is_at(row, alias::ORG, alias::PROJECT, alias::ALIAS);
        is_meant.then(|| row.text(alias::TARGET_FQDN).into_owned())
    })?;
    by_fqdn(caller, &target)
}

/// Whether another record holds the name: as name or alias, or reserved after deletion.
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
        ControlFlow::Break(!is_over && own_fqdn != Some(&*row.text(FQDN)))
    });
    taken.unwrap_or(false)
}

fn find(caller: &Caller, index: &'static CStr, key: &str, is_meant: impl Fn(&Row) -> bool) -> Option<Found> {
    scan::first_hashed(c"capability_records", index, key, |row| {
        let is_live = row.column(record::DELETED_AT).is_none();
        (is_live && is_meant(row) && is_seen(caller, row)).then(|| read(row))
    })
}

fn is_seen(caller: &Caller, row: &Row) -> bool {
    caller.is_admin()
        || caller.sees(
            &row.text(record::ORG),
            &row.text(record::PROJECT),
            &row.text(record::VISIBILITY),
            &row.text(record::CREATED_BY),
        )
}

fn read(row: &Row) -> Found {
    Found {
        fqdn: row.text(record::ID).into_owned(),
        display_name: row.text(record::DISPLAY_NAME).into_owned(),
        version: number(row, record::VERSION),
        version_tag: row.text(record::VERSION_TAG).into_owned(),
        // SAFETY: the column is of type timestamptz, a 64-bit integer.
        created_at: row
            .column(record::CREATED_AT)
            .and_then(|time| unsafe { i64::from_datum(time, false) })
            .unwrap_or(i64::MAX),
    }
}

fn number(row: &Row, column: usize) -> i32 {
    // SAFETY: the column is of type integer.
    row.column(column).and_then(|value| unsafe { i32::from_datum(value, false) }).unwrap_or_default()
}

/// Fast path: whether the record alone shows that the specifier matches a version (numbers have no gaps, the first version is
/// as old as the record, the current tag exists). `false` means unknown.
pub(crate) fn surely_has_version(found: &Found, spec: &VersionSpec) -> bool {
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
pub(crate) fn version(found: &Found, spec: &VersionSpec) -> Option<i32> {
    match spec {
        VersionSpec::Latest => Some(found.version),
        VersionSpec::Exact(tag) => {
            let (fqdn, tag) = (found.fqdn.as_str(), tag.stored());
            let (table, index) = (c"capability_versions", c"capability_versions_tag");
            scan::first_hashed(table, index, &[fqdn, "@", &tag].concat(), |row| {
                let is_meant = row.bytes(version::CAPABILITY_FQDN) == fqdn.as_bytes()
                    && row.bytes(version::VERSION_TAG) == tag.as_bytes();
                is_meant.then(|| number(row, version::VERSION))
            })
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
    // Sort keys are ASCII, so this is the upper bound of keys with the prefix.
    let above = format!("{prefix}\u{7f}");
    let keys = [Key::is(&found.fqdn), Key::text(Order::Less, &above)];
    find_version(c"capability_versions_key", &keys, |row| row.text(version::VERSION_KEY).starts_with(prefix))
}

/// The last version in the order of the index, if it fits.
fn find_version(index: &'static CStr, keys: &[Key], fits: impl Fn(&Row) -> bool) -> Option<i32> {
    scan::rows(c"capability_versions", index, keys, Direction::Backward, |row| {
        ControlFlow::Break(fits(row).then(|| number(row, version::VERSION)))
    })?
}
