//! Hides side channels: pages read for rows that a policy hid would show in `EXPLAIN (ANALYZE, BUFFERS)`, and rows read in
//! `pg_stat_xact_all_tables`. Both counters are restored after a call; writes stay counted, for autovacuum. In a serializable
//! transaction `pg_locks` would show which rows were read.

use std::{cell::RefCell, ffi::c_int};

use pgrx::pg_sys;

use crate::scan;

/// Pages and WAL used by this session so far.
pub(crate) struct Usage {
    buffers: pg_sys::BufferUsage,
    wal: pg_sys::WalUsage,
}

impl Usage {
    pub(crate) fn now() -> Usage {
        // SAFETY: both are plain numbers of this single-threaded backend.
        unsafe { Usage { buffers: pg_sys::pgBufferUsage, wal: pg_sys::pgWalUsage } }
    }
}

/// Restores the counters.
pub(crate) fn forget(before: &Usage) {
    // SAFETY: as above; the statistics of a relation are this backend's own until they are sent.
    unsafe {
        pg_sys::pgBufferUsage = before.buffers;
        pg_sys::pgWalUsage = before.wal;
        RELATIONS.with_borrow(|relations| {
            for relation in relations {
                forget_reads(pending(*relation));
            }
        });
    }
}

/// Saved counters of a relation.
pub(crate) struct Reads([pg_sys::PgStat_Counter; 5]);

impl Reads {
    /// SAFETY: takes an open relation.
    pub(crate) unsafe fn of(relation: pg_sys::Relation) -> Reads {
        // SAFETY: as the caller says; without statistics the pointer is null.
        unsafe {
            (*relation)
                .pgstat_info
                .as_mut()
                .map_or(Reads([0; 5]), |status| Reads(reads(status).map(|count| *count)))
        }
    }

    /// SAFETY: takes an open relation.
    pub(crate) unsafe fn restore(self, relation: pg_sys::Relation) {
        // SAFETY: as the caller says.
        unsafe {
            if let Some(status) = (*relation).pgstat_info.as_mut() {
                for (count, before) in reads(status).into_iter().zip(self.0) {
                    *count = before;
                }
            }
        }
    }
}

/// SAFETY: takes the statistics of a relation, or null.
unsafe fn forget_reads(status: *mut pg_sys::PgStat_TableStatus) {
    // SAFETY: as the caller says.
    if let Some(status) = unsafe { status.as_mut() } {
        for count in reads(status) {
            *count = 0;
        }
    }
}

#[cfg(any(feature = "pg14", feature = "pg15"))]
fn reads(status: &mut pg_sys::PgStat_TableStatus) -> [&mut pg_sys::PgStat_Counter; 5] {
    let counts = &mut status.t_counts;
    [
        &mut counts.t_numscans,
        &mut counts.t_tuples_returned,
        &mut counts.t_tuples_fetched,
        &mut counts.t_blocks_fetched,
        &mut counts.t_blocks_hit,
    ]
}

#[cfg(not(any(feature = "pg14", feature = "pg15")))]
fn reads(status: &mut pg_sys::PgStat_TableStatus) -> [&mut pg_sys::PgStat_Counter; 5] {
    let counts = &mut status.counts;
    [
        &mut counts.numscans,
        &mut counts.tuples_returned,
        &mut counts.tuples_fetched,
        &mut counts.blocks_fetched,
        &mut counts.blocks_hit,
    ]
}

/// The pending statistics of a relation, or null.
#[cfg(any(feature = "pg14", feature = "pg15"))]
unsafe fn pending(relation: pg_sys::Oid) -> *mut pg_sys::PgStat_TableStatus {
    unsafe extern "C-unwind" {
        fn find_tabstat_entry(relation: pg_sys::Oid) -> *mut pg_sys::PgStat_TableStatus;
    }
    // SAFETY: looks in this backend's own statistics.
    unsafe { find_tabstat_entry(relation) }
}

/// From Postgres 16 on `find_tabstat_entry` returns a copy; this is its source.
#[cfg(not(any(feature = "pg14", feature = "pg15")))]
unsafe fn pending(relation: pg_sys::Oid) -> *mut pg_sys::PgStat_TableStatus {
    /// As in pgstat_internal.h, up to the minor versions of November 2024.
    #[repr(C)]
    struct OldEntry {
        shared_entry: *mut std::ffi::c_void,
        shared_stats: *mut std::ffi::c_void,
        pending: *mut std::ffi::c_void,
    }
    /// As in pgstat_internal.h since then.
    #[repr(C)]
    struct Entry {
        shared_entry: *mut std::ffi::c_void,
        shared_stats: *mut std::ffi::c_void,
        generation: u32,
        pending: *mut std::ffi::c_void,
    }
    #[cfg(not(feature = "pg18"))]
    type Object = pg_sys::Oid;
    #[cfg(feature = "pg18")]
    type Object = u64;
    const RELATION: u32 = 2;
    unsafe extern "C-unwind" {
        fn pgstat_fetch_pending_entry(
            kind: u32,
            database: pg_sys::Oid,
            object: Object,
        ) -> *mut std::ffi::c_void;
    }
    // SAFETY: looks in this backend's own statistics; no entry is a null pointer.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        let object = relation;
        #[cfg(feature = "pg18")]
        let object = u64::from(relation.to_u32());
        let entry = pgstat_fetch_pending_entry(RELATION, pg_sys::MyDatabaseId, object);
        if entry.is_null() {
            std::ptr::null_mut()
        } else if entries_have_a_generation() {
            (*entry.cast::<Entry>()).pending.cast()
        } else {
            (*entry.cast::<OldEntry>()).pending.cast()
        }
    }
}

/// Of the server that runs: a minor version changed it, and needn't be the one that this was built with.
#[cfg(not(any(feature = "pg14", feature = "pg15")))]
fn entries_have_a_generation() -> bool {
    static VERSION: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
    let version = *VERSION.get_or_init(|| {
        // SAFETY: a built-in setting, whose text is copied at once.
        let text = unsafe { pg_sys::GetConfigOption(c"server_version_num".as_ptr(), false, false) };
        let text = unsafe { std::ffi::CStr::from_ptr(text) };
        text.to_str().ok().and_then(|text| text.parse().ok()).expect("a version number")
    });
    match version / 10_000 {
        16 => version >= 160_006,
        17 => version >= 170_002,
        _ => true,
    }
}

thread_local! {
    /// Our tables and indexes with their TOAST tables; filled on first use.
    static RELATIONS: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
}

/// Relcache invalidation (0: all relations): drops the list if the relation is ours.
pub(crate) fn relation_changed(relation: pg_sys::Oid) {
    RELATIONS.with_borrow_mut(|relations| {
        if relation == pg_sys::InvalidOid || relations.contains(&relation) {
            relations.clear();
        }
    });
}

/// Before the call, since an aborted transaction can't read the catalog.
pub(crate) fn remember_relations() {
    if RELATIONS.with_borrow(Vec::is_empty) {
        let relations = scan::own_relations();
        RELATIONS.set(relations);
    }
}

/// Postgres' functions without pgrx's guard; nothing here needs a destructor.
mod raw {
    use super::{c_int, pg_sys::*};

    unsafe extern "C-unwind" {
        pub(super) fn relation_open(relation: Oid, lock: c_int) -> Relation;
        pub(super) fn relation_close(relation: Relation, lock: c_int);
        pub(super) fn PredicateLockRelation(relation: Relation, snapshot: Snapshot);
        pub(super) fn GetActiveSnapshot() -> Snapshot;
    }
}

/// More relations than we have.
const MOST_RELATIONS: usize = 512;

/// In a serializable transaction, locks whole tables and indexes: Postgres then records no reads of single rows or pages.
pub(crate) fn hide_rows_read() {
    // SAFETY: reads the session's state.
    if unsafe { pg_sys::XactIsoLevel } != pg_sys::XACT_SERIALIZABLE as c_int {
        return;
    }
    remember_relations();
    // A copy, since opening a relation may empty the list; on the stack, since an ERROR runs no destructor.
    let mut relations = [pg_sys::InvalidOid; MOST_RELATIONS];
    RELATIONS.with_borrow(|known| {
        for (copy, relation) in relations.iter_mut().zip(known) {
            *copy = *relation;
        }
    });
    for relation in relations.into_iter().take_while(|relation| *relation != pg_sys::InvalidOid) {
        const LOCK: c_int = pg_sys::AccessShareLock as c_int;
        // SAFETY: our relations can't be dropped while the extension is in use; a query has an active snapshot.
        unsafe {
            let relation = raw::relation_open(relation, LOCK);
            let kind = (*(*relation).rd_rel).relkind as u8;
            if kind == pg_sys::RELKIND_RELATION || kind == pg_sys::RELKIND_INDEX {
                raw::PredicateLockRelation(relation, raw::GetActiveSnapshot());
            }
            raw::relation_close(relation, LOCK);
        }
    }
}
