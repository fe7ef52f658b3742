//! Keeps EXPLAIN ANALYZE from counting the rows that a policy hid: "Rows Removed by Filter" would tell that they exist.

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
    if !Caller::current().is_admin() {
        // SAFETY: the plan of a query that has just finished.
        unsafe { forget_filtered(plan, ptr::null_mut()) };
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn forget_filtered(node: *mut pg_sys::PlanState, context: *mut c_void) -> bool {
    // SAFETY: the walker passes live nodes of the finished query; only scans have a relation.
    unsafe {
        if !(*node).instrument.is_null() && scans_protected_table(node) {
            (*(*node).instrument).nfiltered1 = 0.0;
            (*(*node).instrument).nfiltered2 = 0.0;
            let workers = (*node).worker_instrument;
            for number in 0..if workers.is_null() { 0 } else { (*workers).num_workers } {
                let counters = (*workers).instrument.as_mut_ptr().add(number as usize);
                (*counters).nfiltered1 = 0.0;
                (*counters).nfiltered2 = 0.0;
            }
        }
        pg_sys::planstate_tree_walker(node, Some(forget_filtered), context)
    }
}

unsafe fn scans_protected_table(node: *mut pg_sys::PlanState) -> bool {
    use pg_sys::NodeTag;
    // SAFETY: nodes with these tags begin with a ScanState.
    unsafe {
        let is_scan = matches!(
            (*node).type_,
            NodeTag::T_SeqScanState
                | NodeTag::T_IndexScanState
                | NodeTag::T_IndexOnlyScanState
                | NodeTag::T_BitmapHeapScanState
                | NodeTag::T_SampleScanState
                | NodeTag::T_TidScanState
        );
        let relation =
            if is_scan { (*node.cast::<pg_sys::ScanState>()).ss_currentRelation } else { ptr::null_mut() };
        !relation.is_null() && scan::schema() == Some((*(*relation).rd_rel).relnamespace)
    }
}
