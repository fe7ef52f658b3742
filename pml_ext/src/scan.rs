//! Reading rows through an index without a query: no plan, no transaction id, no executor.
//!
//! Neither privileges nor policies apply down here; callers check both. A relation left open by an ERROR is closed by
//! Postgres' resource owner, so that nothing here needs a destructor.

use std::{ffi::CStr, ops::ControlFlow, ptr};

use pgrx::{IntoDatum, pg_sys};

/// Number of an operator in a btree.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    Less = 1,
    Equal = 3,
}

/// A condition on one column of an index.
pub(crate) struct Key {
    strategy: Order,
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
        Key {
            strategy,
            function,
            collation: pg_sys::C_COLLATION_OID,
            value: value.into_datum().unwrap_or(0.into()),
        }
    }

    pub(crate) fn is(value: &str) -> Key {
        Key::text(Order::Equal, value)
    }

    pub(crate) fn number(value: i32) -> Key {
        Key { strategy: Order::Equal, function: INT4_EQ, collation: pg_sys::InvalidOid, value: value.into() }
    }

    /// Before a time, in Postgres' microseconds since 2000.
    pub(crate) fn before(time: i64) -> Key {
        Key {
            strategy: Order::Less,
            function: TIMESTAMPTZ_LT,
            collation: pg_sys::InvalidOid,
            value: time.into(),
        }
    }

    pub(crate) fn name(value: *const pg_sys::NameData) -> Key {
        Key {
            strategy: Order::Equal,
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

/// The row at which a scan stands.
pub(crate) struct Row(*mut pg_sys::TupleTableSlot);

impl Row {
    /// The value of a column, counted from 1; it lives as long as the scan stands here.
    pub(crate) fn column(&self, number: usize) -> Option<pg_sys::Datum> {
        // SAFETY: the slot is filled, and the table has that many columns.
        unsafe {
            if usize::try_from((*self.0).tts_nvalid).unwrap_or(0) < number {
                pg_sys::slot_getsomeattrs_int(self.0, number as i32);
            }
            let is_null = *(*self.0).tts_isnull.add(number - 1);
            (!is_null).then(|| *(*self.0).tts_values.add(number - 1))
        }
    }

    /// The bytes of a text column, copied.
    pub(crate) fn text(&self, number: usize) -> String {
        let datum = self.column(number);
        // SAFETY: the column is of type text.
        datum.and_then(|datum| unsafe { pgrx::FromDatum::from_datum(datum, false) }).unwrap_or_default()
    }
}

/// The schema of our tables, or None before the extension is there.
pub(crate) fn schema() -> Option<pg_sys::Oid> {
    // SAFETY: takes a C string and returns InvalidOid when there is no such schema.
    let oid = unsafe { pg_sys::get_namespace_oid(c"pml".as_ptr(), true) };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

/// The table or index `pml.<name>`.
pub(crate) fn relation(name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: takes a C string and returns InvalidOid when there is no such relation.
    let oid = unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema()?) };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

/// Visits the rows of `pml.<table>` that meet the conditions on the first columns of the index, in its order.
pub(crate) fn rows<T>(
    table: &CStr,
    index: &CStr,
    keys: &[Key],
    direction: Direction,
    mut visit: impl FnMut(&Row) -> ControlFlow<T>,
) -> Option<T> {
    let (table, index) = (relation(table)?, relation(index)?);
    const LOCK: i32 = pg_sys::AccessShareLock as i32;
    // SAFETY: plain use of the index access API: relations are opened before the scan and closed after it, the slot
    // is made for the table, and the keys fit the index by construction.
    unsafe {
        let heap = pg_sys::table_open(table, LOCK);
        let index = pg_sys::index_open(index, LOCK);
        let slot = pg_sys::table_slot_create(heap, ptr::null_mut());
        let mut scan_keys: [pg_sys::ScanKeyData; 4] = std::mem::zeroed();
        let count = keys.len().min(scan_keys.len()) as i32;
        for (position, (key, scan_key)) in keys.iter().zip(&mut scan_keys).enumerate() {
            pg_sys::ScanKeyEntryInitialize(
                scan_key,
                0,
                position as i16 + 1,
                key.strategy as u16,
                pg_sys::InvalidOid,
                key.collation,
                key.function.into(),
                key.value,
            );
        }
        let scan = begin(heap, index, count);
        pg_sys::index_rescan(scan, scan_keys.as_mut_ptr(), count, ptr::null_mut(), 0);
        let mut found = None;
        while pg_sys::index_getnext_slot(scan, direction as i32, slot) {
            if let ControlFlow::Break(value) = visit(&Row(slot)) {
                found = Some(value);
                break;
            }
        }
        pg_sys::index_endscan(scan);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::index_close(index, LOCK);
        pg_sys::table_close(heap, LOCK);
        found
    }
}

unsafe fn begin(heap: pg_sys::Relation, index: pg_sys::Relation, keys: i32) -> pg_sys::IndexScanDesc {
    // SAFETY: the caller has opened both relations, and a query always has an active snapshot.
    unsafe {
        let snapshot = pg_sys::GetActiveSnapshot();
        #[cfg(not(feature = "pg18"))]
        return pg_sys::index_beginscan(heap, index, snapshot, keys, 0);
        #[cfg(feature = "pg18")]
        return pg_sys::index_beginscan(heap, index, snapshot, ptr::null_mut(), keys, 0);
    }
}
