//! Keeps EXPLAIN ANALYZE from counting what a policy hid: rows that a filter removed, entries of an index and pages that
//! were read for them would tell that they exist.

use std::{ffi::c_void, ptr};

use pgrx::{pg_guard, pg_sys};

use crate::{caller::Caller, scan};

static mut PREVIOUS: pg_sys::ExecutorFinish_hook_type = None;

pub(crate) fn install() {
    // SAFETY: runs once, when the library is loaded into a single-threaded backend.
    unsafe {
        PREVIOUS = pg_sys::ExecutorFinish_hook;
        pg_sys::ExecutorFinish_hook = Some(finish);
    }
}

unsafe extern "C-unwind" {
    // Not through pgrx: triggers run in here, and their errors must pass with the SQLSTATE that they have.
    fn standard_ExecutorFinish(query: *mut pg_sys::QueryDesc);
}

unsafe extern "C-unwind" fn finish(query: *mut pg_sys::QueryDesc) {
    // SAFETY: called by the executor with a query that has run. An error may leave by longjmp: nothing here is dropped.
    unsafe {
        match PREVIOUS {
            Some(previous) => previous(query),
            None => standard_ExecutorFinish(query),
        }
        // Counters exist only under EXPLAIN ANALYZE and the like.
        if (*query).instrument_options != 0 && !(*query).planstate.is_null() {
            forget_hidden_rows((*query).planstate);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn forget_hidden_rows(plan: *mut pg_sys::PlanState) {
    // SAFETY: the plan of a query that has just finished.
    unsafe {
        if reads_protected(plan, ptr::null_mut()) && !Caller::current().is_admin() {
            forget_counts(plan, ptr::null_mut());
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn reads_protected(node: *mut pg_sys::PlanState, context: *mut c_void) -> bool {
    // SAFETY: the walker passes live nodes of the finished query.
    unsafe {
        let relation = scanned(node);
        let is_protected = !relation.is_null() && scan::schema() == Some((*(*relation).rd_rel).relnamespace);
        is_protected || pg_sys::planstate_tree_walker(node, Some(reads_protected), context)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn forget_counts(node: *mut pg_sys::PlanState, context: *mut c_void) -> bool {
    use pg_sys::NodeTag;
    // SAFETY: the walker passes live nodes of the finished query, and each tag has its own kind of node.
    unsafe {
        let counts_entries = matches!(
            (*node).type_,
            NodeTag::T_BitmapIndexScanState | NodeTag::T_BitmapAndState | NodeTag::T_BitmapOrState
        );
        forget((*node).instrument, counts_entries);
        let workers = (*node).worker_instrument;
        for number in 0..if workers.is_null() { 0 } else { (*workers).num_workers } {
            forget((*workers).instrument.as_mut_ptr().add(number as usize), counts_entries);
        }
        if (*node).type_ == NodeTag::T_BitmapHeapScanState {
            forget_pages(node.cast());
        }
        pg_sys::planstate_tree_walker(node, Some(forget_counts), context)
    }
}

/// SAFETY: takes the counters of a node, or null.
unsafe fn forget(counters: *mut pg_sys::Instrumentation, counts_entries: bool) {
    // SAFETY: as the caller says; what the counters hold is plain numbers.
    unsafe {
        if counters.is_null() {
            return;
        }
        (*counters).nfiltered1 = 0.0;
        (*counters).nfiltered2 = 0.0;
        (*counters).bufusage = std::mem::zeroed();
        if counts_entries {
            (*counters).ntuples = 0.0;
            (*counters).tuplecount = 0.0;
        }
    }
}

/// SAFETY: takes a live node.
unsafe fn forget_pages(node: *mut pg_sys::BitmapHeapScanState) {
    // SAFETY: as the caller says.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        {
            (*node).exact_pages = 0;
            (*node).lossy_pages = 0;
        }
        #[cfg(feature = "pg18")]
        {
            (*node).stats.exact_pages = 0;
            (*node).stats.lossy_pages = 0;
        }
    }
}

/// The table that a node scans, or null. SAFETY: takes a live node.
unsafe fn scanned(node: *mut pg_sys::PlanState) -> pg_sys::Relation {
    use pg_sys::NodeTag;
    // SAFETY: nodes with these tags begin with a ScanState.
    unsafe {
        match (*node).type_ {
            NodeTag::T_SeqScanState
            | NodeTag::T_IndexScanState
            | NodeTag::T_IndexOnlyScanState
            | NodeTag::T_BitmapHeapScanState
            | NodeTag::T_SampleScanState
            | NodeTag::T_TidScanState
            | NodeTag::T_TidRangeScanState => (*node.cast::<pg_sys::ScanState>()).ss_currentRelation,
            _ => ptr::null_mut(),
        }
    }
}
