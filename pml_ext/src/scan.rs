//! Index scans without a query: no planner, no transaction id, no executor.
//!
//! Neither privileges nor policies apply here; callers check both. After an ERROR, Postgres' resource owner closes the
//! relation, so that nothing here needs a destructor.

use std::{
    borrow::Cow,
    cell::RefCell,
    ffi::{CStr, c_char, c_int},
    ops::ControlFlow,
    ptr,
};

use pgrx::{pg_sys, pg_sys::ffi::pg_guard_ffi_boundary, varlena};

use crate::unseen::{self, Reads};

/// Postgres' functions without pgrx's guard around each: one guard around a whole scan costs a microsecond less.
mod raw {
    use super::{c_char, c_int, pg_sys::*};

    unsafe extern "C-unwind" {
        pub(super) fn get_namespace_oid(name: *const c_char, missing_ok: bool) -> Oid;
        pub(super) fn get_relname_relid(name: *const c_char, schema: Oid) -> Oid;
        pub(super) fn table_open(table: Oid, lock: c_int) -> Relation;
        pub(super) fn table_close(table: Relation, lock: c_int);
        pub(super) fn index_open(index: Oid, lock: c_int) -> Relation;
        pub(super) fn index_close(index: Relation, lock: c_int);
        pub(super) fn table_slot_create(table: Relation, list: *mut *mut List) -> *mut TupleTableSlot;
        pub(super) fn ExecDropSingleTupleTableSlot(slot: *mut TupleTableSlot);
        pub(super) fn slot_getsomeattrs_int(slot: *mut TupleTableSlot, count: c_int);
        pub(super) fn GetActiveSnapshot() -> Snapshot;
        #[cfg(not(feature = "pg18"))]
        pub(super) fn index_beginscan(
            table: Relation,
            index: Relation,
            snapshot: Snapshot,
            keys: c_int,
            orders: c_int,
        ) -> IndexScanDesc;
        #[cfg(feature = "pg18")]
        pub(super) fn index_beginscan(
            table: Relation,
            index: Relation,
            snapshot: Snapshot,
            instrument: *mut IndexScanInstrumentation,
            keys: c_int,
            orders: c_int,
        ) -> IndexScanDesc;
        pub(super) fn index_rescan(
            scan: IndexScanDesc,
            keys: ScanKey,
            count: c_int,
            orders: ScanKey,
            order_count: c_int,
        );
        pub(super) fn index_getnext_slot(
            scan: IndexScanDesc,
            direction: c_int,
            slot: *mut TupleTableSlot,
        ) -> bool;
        pub(super) fn index_endscan(scan: IndexScanDesc);
        pub(super) fn ScanKeyEntryInitialize(
            entry: ScanKey,
            flags: c_int,
            column: AttrNumber,
            strategy: StrategyNumber,
            subtype: Oid,
            collation: Oid,
            function: Oid,
            value: Datum,
        );
        pub(super) fn cstring_to_text_with_len(text: *const c_char, length: c_int) -> *mut text;
        pub(super) fn pg_detoast_datum_packed(value: *mut varlena) -> *mut varlena;
        pub(super) fn systable_beginscan(
            table: Relation,
            index: Oid,
            use_index: bool,
            snapshot: Snapshot,
            count: c_int,
            keys: ScanKey,
        ) -> SysScanDesc;
        pub(super) fn systable_getnext(scan: SysScanDesc) -> HeapTuple;
        pub(super) fn systable_endscan(scan: SysScanDesc);
    }
}

/// Number of an operator in a btree.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    Less = 1,
    Equal = 3,
}

/// Number of the one operator in a hash index.
const EQUAL_HASH: u16 = 1;

/// A condition on one column of an index.
pub(crate) struct Key {
    strategy: u16,
    function: u32,
    collation: pg_sys::Oid,
    value: pg_sys::Datum,
}

// OIDs of built-in functions, the same in all versions of Postgres.
const TEXT_EQ: u32 = 67;
const TEXT_LT: u32 = 740;
const INT4_EQ: u32 = 65;
const TIMESTAMPTZ_LT: u32 = 1154;
const NAME_EQ: u32 = 62;

impl Key {
    /// Text columns that are looked up have the collation "C".
    pub(crate) fn text(strategy: Order, value: &str) -> Key {
        let function = match strategy {
            Order::Less => TEXT_LT,
            Order::Equal => TEXT_EQ,
        };
        // SAFETY: copies that many bytes; callers have bounded the length, so that it fits.
        let value = unsafe { raw::cstring_to_text_with_len(value.as_ptr().cast(), value.len() as c_int) };
        Key {
            strategy: strategy as u16,
            function,
            collation: pg_sys::C_COLLATION_OID,
            value: pg_sys::Datum::from(value),
        }
    }

    pub(crate) fn is(value: &str) -> Key {
        Key::text(Order::Equal, value)
    }

    fn hashed(value: &str) -> Key {
        Key { strategy: EQUAL_HASH, ..Key::is(value) }
    }

    pub(crate) fn number(value: i32) -> Key {
        Key {
            strategy: Order::Equal as u16,
            function: INT4_EQ,
            collation: pg_sys::InvalidOid,
            value: value.into(),
        }
    }

    /// Before a time, in Postgres' microseconds since 2000.
    pub(crate) fn before(time: i64) -> Key {
        Key {
            strategy: Order::Less as u16,
            function: TIMESTAMPTZ_LT,
            collation: pg_sys::InvalidOid,
            value: time.into(),
        }
    }

    pub(crate) fn name(value: *const pg_sys::NameData) -> Key {
        Key {
            strategy: Order::Equal as u16,
            function: NAME_EQ,
            collation: pg_sys::C_COLLATION_OID,
            value: value.into(),
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Direction {
    Forward = 1,
    Backward = -1,
}

/// The current row of a scan.
pub(crate) struct Row(*mut pg_sys::TupleTableSlot);

impl Row {
    /// The value of a column, counted from 1; valid until the scan moves on.
    pub(crate) fn column(&self, number: usize) -> Option<pg_sys::Datum> {
        // SAFETY: the slot is filled, and the table has that many columns.
        unsafe {
            if usize::try_from((*self.0).tts_nvalid).unwrap_or(0) < number {
                raw::slot_getsomeattrs_int(self.0, number as i32);
            }
            let is_null = *(*self.0).tts_isnull.add(number - 1);
            (!is_null).then(|| *(*self.0).tts_values.add(number - 1))
        }
    }

    /// A text column; empty if it is NULL.
    pub(crate) fn text(&self, number: usize) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(number))
    }

    /// The same, for comparing.
    pub(crate) fn bytes(&self, number: usize) -> &[u8] {
        let Some(datum) = self.column(number) else { return &[] };
        // SAFETY: the column is of type text; unpacking it leaves a plain varlena.
        unsafe { varlena::varlena_to_byte_slice(raw::pg_detoast_datum_packed(datum.cast_mut_ptr())) }
    }
}

/// The schema of our tables, or None before the extension is there.
pub(crate) fn schema() -> Option<pg_sys::Oid> {
    // SAFETY: takes a C string and returns InvalidOid when there is no such schema.
    let oid = unsafe { raw::get_namespace_oid(c"pml".as_ptr(), true) };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

thread_local! {
    /// Cache of OIDs: a lookup by name costs a third of a scan.
    static KNOWN: RefCell<Vec<(&'static CStr, pg_sys::Oid)>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn install() {
    // SAFETY: the callback lives as long as the library, which is never unloaded.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(forget_known), pg_sys::Datum::from(0)) };
}

/// Relcache invalidation: after DROP and CREATE EXTENSION the OIDs are new.
unsafe extern "C-unwind" fn forget_known(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    KNOWN.with_borrow_mut(Vec::clear);
    unseen::relation_changed(relation);
}

/// The table or index `pml.<name>`.
pub(crate) fn relation(name: &'static CStr) -> Option<pg_sys::Oid> {
    if let Some(oid) =
        KNOWN.with_borrow(|known| known.iter().find(|(other, _)| *other == name).map(|(_, oid)| *oid))
    {
        return Some(oid);
    }
    // SAFETY: takes a C string and returns InvalidOid when there is no such relation.
    let oid = unsafe { raw::get_relname_relid(name.as_ptr(), schema()?) };
    (oid != pg_sys::InvalidOid).then(|| {
        KNOWN.with_borrow_mut(|known| known.push((name, oid)));
        oid
    })
}

/// Visits the rows of `pml.<table>` that meet the conditions on the first columns of the index, in its order.
pub(crate) fn rows<T>(
    table: &'static CStr,
    index: &'static CStr,
    keys: &[Key],
    direction: Direction,
    visit: impl FnMut(&Row) -> ControlFlow<T>,
) -> Option<T> {
    // SAFETY: runs on the backend's only thread; an ERROR in there becomes an unwind out here.
    unsafe { pg_guard_ffi_boundary(|| unguarded_rows(table, index, keys, direction, visit)) }
}

/// The first row of `pml.<table>` with this hash that `pick` accepts; `pick` must compare, because of hash collisions.
pub(crate) fn first_hashed<T>(
    table: &'static CStr,
    index: &'static CStr,
    key: &str,
    pick: impl Fn(&Row) -> Option<T>,
) -> Option<T> {
    rows(table, index, &[Key::hashed(key)], Direction::Forward, |row| match pick(row) {
        Some(value) => ControlFlow::Break(value),
        None => ControlFlow::Continue(()),
    })
}

/// SAFETY: to be called inside a guard, since it calls Postgres' functions bare.
unsafe fn unguarded_rows<T>(
    table: &'static CStr,
    index: &'static CStr,
    keys: &[Key],
    direction: Direction,
    mut visit: impl FnMut(&Row) -> ControlFlow<T>,
) -> Option<T> {
    unseen::hide_rows_read();
    let (table, index) = (relation(table)?, relation(index)?);
    const LOCK: c_int = pg_sys::AccessShareLock as c_int;
    // SAFETY: plain use of the index access API: relations are opened before the scan and closed after it, the slot
    // is made for the table, and the keys fit the index by construction.
    unsafe {
        let heap = raw::table_open(table, LOCK);
        let index = raw::index_open(index, LOCK);
        let slot = raw::table_slot_create(heap, ptr::null_mut());
        let (heap_reads, index_reads) = (Reads::of(heap), Reads::of(index));
        let buffers = pg_sys::pgBufferUsage;
        let mut scan_keys: [pg_sys::ScanKeyData; 4] = std::mem::zeroed();
        let count = keys.len().min(scan_keys.len()) as c_int;
        for (position, (key, scan_key)) in keys.iter().zip(&mut scan_keys).enumerate() {
            raw::ScanKeyEntryInitialize(
                scan_key,
                0,
                position as i16 + 1,
                key.strategy,
                pg_sys::InvalidOid,
                key.collation,
                key.function.into(),
                key.value,
            );
        }
        let scan = begin(heap, index, count);
        raw::index_rescan(scan, scan_keys.as_mut_ptr(), count, ptr::null_mut(), 0);
        let mut found = None;
        while raw::index_getnext_slot(scan, direction as c_int, slot) {
            if let ControlFlow::Break(value) = visit(&Row(slot)) {
                found = Some(value);
                break;
            }
        }
        raw::index_endscan(scan);
        raw::ExecDropSingleTupleTableSlot(slot);
        // Restores the counters, which would reveal rows that the caller may not see.
        heap_reads.restore(heap);
        index_reads.restore(index);
        pg_sys::pgBufferUsage = buffers;
        // Locks are held to the end of the transaction, as for any query.
        raw::index_close(index, pg_sys::NoLock as c_int);
        raw::table_close(heap, pg_sys::NoLock as c_int);
        found
    }
}

unsafe fn begin(heap: pg_sys::Relation, index: pg_sys::Relation, keys: c_int) -> pg_sys::IndexScanDesc {
    // SAFETY: the caller has opened both relations, and a query always has an active snapshot.
    unsafe {
        let snapshot = raw::GetActiveSnapshot();
        #[cfg(not(feature = "pg18"))]
        return raw::index_beginscan(heap, index, snapshot, keys, 0);
        #[cfg(feature = "pg18")]
        return raw::index_beginscan(heap, index, snapshot, ptr::null_mut(), keys, 0);
    }
}

/// The tables and indexes of our schema, with their TOAST tables.
pub(crate) fn own_relations() -> Vec<pg_sys::Oid> {
    const NAMESPACE: i16 = 3;
    const OID_EQ: u32 = 184;
    const LOCK: c_int = pg_sys::AccessShareLock as c_int;
    let mut relations = Vec::new();
    let Some(schema) = schema() else { return relations };
    // SAFETY: plain use of the scan of a catalog; its rows begin with Form_pg_class.
    unsafe {
        let catalog = raw::table_open(pg_sys::RelationRelationId, LOCK);
        let mut key: pg_sys::ScanKeyData = std::mem::zeroed();
        raw::ScanKeyEntryInitialize(
            &raw mut key,
            0,
            NAMESPACE,
            Order::Equal as u16,
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
            OID_EQ.into(),
            schema.into(),
        );
        let scan =
            raw::systable_beginscan(catalog, pg_sys::InvalidOid, false, ptr::null_mut(), 1, &raw mut key);
        loop {
            let row = raw::systable_getnext(scan);
            if row.is_null() {
                break;
            }
            let relation: pg_sys::Form_pg_class = pg_sys::GETSTRUCT(row).cast();
            relations.extend(
                [(*relation).oid, (*relation).reltoastrelid]
                    .into_iter()
                    .filter(|oid| *oid != pg_sys::InvalidOid),
            );
        }
        raw::systable_endscan(scan);
        raw::table_close(catalog, LOCK);
    }
    relations
}
