//! The gate: public functions that read or change tables run behind it, as a role of their own.
//!
//! Ordinary roles have no privilege on the tables or on the functions of schema `pml_internal`. A public function is this one
//! C function under another name (`sql/public.sql`): it calls its namesake in `pml_internal` as `pml_engine`, which is subject
//! to row-level security, and records the caller, for whom the policies decide. `SECURITY DEFINER` would lose the caller.
//!
//! An ERROR is a longjmp past everything here. Postgres restores the user when it aborts the (sub)transaction, and the frames
//! are popped at the same moment, so that neither outlives the other.

use std::{
    cell::RefCell,
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
};

use pgrx::{pg_sys, pgrx_extern_c_guard};

use crate::{
    caller,
    error::{Kind, Report},
    unseen::{self, Usage},
};

/// The schema of internal functions.
pub(crate) const INTERNAL: &CStr = c"pml_internal";
/// The role that public functions run as.
pub(crate) const ENGINE: &CStr = c"pml_engine";
/// The role that owns the `SECURITY DEFINER` functions.
pub(crate) const KEEPER: &CStr = c"pml_keeper";

/// Postgres' functions without pgrx's guard, which loses our SQLSTATEs. Safe, as no destructor is pending here.
mod raw {
    use super::{c_char, c_int, pg_sys::*};

    unsafe extern "C-unwind" {
        pub(super) fn GetUserId() -> Oid;
        pub(super) fn GetUserIdAndSecContext(user: *mut Oid, context: *mut c_int);
        pub(super) fn SetUserIdAndSecContext(user: Oid, context: c_int);
        pub(super) fn GetCurrentTransactionNestLevel() -> c_int;
        pub(super) fn get_role_oid(name: *const c_char, missing_ok: bool) -> Oid;
        pub(super) fn get_namespace_oid(name: *const c_char, missing_ok: bool) -> Oid;
        pub(super) fn SearchSysCache1(cache: c_int, key: Datum) -> HeapTuple;
        pub(super) fn SearchSysCache3(cache: c_int, key1: Datum, key2: Datum, key3: Datum) -> HeapTuple;
        pub(super) fn ReleaseSysCache(tuple: HeapTuple);
        pub(super) fn MemoryContextAllocZero(context: MemoryContext, size: usize) -> *mut core::ffi::c_void;
        pub(super) fn fmgr_info_cxt(function: Oid, info: *mut FmgrInfo, context: MemoryContext);
    }
}

/// A call through the gate in progress.
struct Frame {
    engine: pg_sys::Oid,
    keeper: pg_sys::Oid,
    caller: pg_sys::Oid,
    /// Nesting level of the (sub)transaction in which it began, and with which it ends.
    nest_level: c_int,
    /// Buffer usage before the call, to be restored if the caller may not learn what it used.
    before: Option<Usage>,
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn install() {
    // SAFETY: the callbacks live as long as the library, which is never unloaded.
    unsafe {
        pg_sys::RegisterXactCallback(Some(transaction_ends), ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_ends), ptr::null_mut());
    }
}

/// The caller: the current user, or the role that came through the gate if our code runs now.
pub(crate) fn asking() -> pg_sys::Oid {
    // SAFETY: reads the session's state.
    let user = unsafe { raw::GetUserId() };
    FRAMES.with_borrow(|frames| match frames.last() {
        Some(frame) if user == frame.engine || user == frame.keeper => frame.caller,
        _ => user,
    })
}

/// Runs a closure as the engine, for the current caller.
pub(crate) fn as_engine<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: entered and left on the backend's only thread; after an ERROR the transaction's end leaves in its place.
    unsafe {
        let entered = enter();
        let value = work();
        leave(&entered);
        value
    }
}

/// Declares `pml_gate` to Postgres, as PG_FUNCTION_INFO_V1 does in C.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn pg_finfo_pml_gate() -> &'static pg_sys::Pg_finfo_record {
    const VERSION_1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
    &VERSION_1
}

/// The body of every public function that isn't a pure C function.
///
/// # Safety
/// Called by Postgres' function manager only.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn pml_gate(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: the function manager passes a whole call; the copy has the same arguments and lives until the call returns.
    unsafe {
        let inner = inner_function((*call).flinfo);
        let mut copy = Call::of(call, inner);
        let rows = materialised((*call).resultinfo);
        let entered = enter();
        let value = match (*inner).fn_addr {
            Some(function) => function(copy.pointer()),
            None => pg_sys::Datum::null(),
        };
        leave(&entered);
        if let Some((set, modes)) = rows {
            (*set).allowedModes = modes;
        }
        (*call).isnull = copy.is_null();
        value
    }
}

/// More arguments than any public function has.
const MOST_ARGUMENTS: usize = 32;

/// A call with the arguments of another, on the stack as LOCAL_FCINFO has it in C.
#[repr(C)]
struct Call {
    base: pg_sys::FunctionCallInfoBaseData,
    arguments: [pg_sys::NullableDatum; MOST_ARGUMENTS],
}

impl Call {
    /// SAFETY: takes a whole call.
    unsafe fn of(call: pg_sys::FunctionCallInfo, function: *mut pg_sys::FmgrInfo) -> Call {
        // SAFETY: as the caller says; zeroes are valid for both parts.
        unsafe {
            let mut copy: Call = std::mem::zeroed();
            let count = usize::try_from((*call).nargs).unwrap_or(0).min(MOST_ARGUMENTS);
            copy.base.flinfo = function;
            copy.base.context = (*call).context;
            copy.base.resultinfo = (*call).resultinfo;
            copy.base.fncollation = (*call).fncollation;
            copy.base.nargs = (*call).nargs;
            ptr::copy_nonoverlapping((*call).args.as_ptr(), copy.arguments.as_mut_ptr(), count);
            copy
        }
    }

    fn pointer(&mut self) -> pg_sys::FunctionCallInfo {
        ptr::from_mut(self).cast()
    }

    fn is_null(&self) -> bool {
        self.base.isnull
    }
}

/// The namesake of a public function in `pml_internal`, looked up once for each place that calls it.
/// SAFETY: takes what the function manager knows of the public function.
unsafe fn inner_function(outer: *mut pg_sys::FmgrInfo) -> *mut pg_sys::FmgrInfo {
    // SAFETY: as the caller says; fn_extra is ours to use, and what it points to lives in fn_mcxt, as long as `outer`.
    unsafe {
        if !(*outer).fn_extra.is_null() {
            return (*outer).fn_extra.cast();
        }
        let namesake = namesake((*outer).fn_oid);
        if namesake == pg_sys::InvalidOid {
            Report::or_raise::<()>(Err(broken("its function in schema pml_internal is missing")));
        }
        let inner: *mut pg_sys::FmgrInfo =
            raw::MemoryContextAllocZero((*outer).fn_mcxt, size_of::<pg_sys::FmgrInfo>()).cast();
        raw::fmgr_info_cxt(namesake, inner, (*outer).fn_mcxt);
        (*inner).fn_expr = (*outer).fn_expr;
        (*outer).fn_extra = inner.cast();
        inner
    }
}

/// SAFETY: takes the OID of a function.
unsafe fn namesake(outer: pg_sys::Oid) -> pg_sys::Oid {
    use pg_sys::SysCacheIdentifier::{PROCNAMEARGSNSP, PROCOID};
    // SAFETY: rows of pg_proc begin with Form_pg_proc, whose argument types are its last fixed column.
    unsafe {
        let schema = raw::get_namespace_oid(INTERNAL.as_ptr(), true);
        let row = raw::SearchSysCache1(PROCOID as c_int, outer.into());
        if row.is_null() {
            return pg_sys::InvalidOid;
        }
        let outer: pg_sys::Form_pg_proc = pg_sys::GETSTRUCT(row).cast();
        let found = raw::SearchSysCache3(
            PROCNAMEARGSNSP as c_int,
            (&raw const (*outer).proname).into(),
            (&raw const (*outer).proargtypes).into(),
            schema.into(),
        );
        let mut namesake = pg_sys::InvalidOid;
        if !found.is_null() {
            namesake = (*pg_sys::GETSTRUCT(found).cast::<pg_sys::FormData_pg_proc>()).oid;
            raw::ReleaseSysCache(found);
        }
        raw::ReleaseSysCache(row);
        namesake
    }
}

/// Requests materialised rows: lazily produced ones would be computed after the gate is closed.
/// SAFETY: takes the resultinfo of a call.
unsafe fn materialised(result: pg_sys::fmNodePtr) -> Option<(*mut pg_sys::ReturnSetInfo, c_int)> {
    // SAFETY: as the caller says; the tag tells what the node is.
    unsafe {
        if result.is_null() || (*result).type_ != pg_sys::NodeTag::T_ReturnSetInfo {
            return None;
        }
        let set: *mut pg_sys::ReturnSetInfo = result.cast();
        let modes = (*set).allowedModes;
        (*set).allowedModes |= pg_sys::SetFunctionReturnMode::SFRM_Materialize_Preferred as c_int;
        Some((set, modes))
    }
}

/// The user before the call.
struct Entered {
    user: pg_sys::Oid,
    context: c_int,
    /// Whether this call opened the gate.
    opened: bool,
}

unsafe fn enter() -> Entered {
    // SAFETY: changes the session's user as SECURITY DEFINER does: SET ROLE is refused inside, and an abort undoes it.
    unsafe {
        let mut entered = Entered { user: pg_sys::InvalidOid, context: 0, opened: false };
        raw::GetUserIdAndSecContext(&raw mut entered.user, &raw mut entered.context);
        let before = Usage::now();
        let engine = raw::get_role_oid(ENGINE.as_ptr(), true);
        if engine == pg_sys::InvalidOid {
            Report::or_raise::<()>(Err(broken("the role pml_engine is missing")));
        }
        if entered.user == engine {
            return entered;
        }
        let keeper = raw::get_role_oid(KEEPER.as_ptr(), true);
        let caller = if entered.user == keeper { asking() } else { entered.user };
        let before = if caller::is_ordinary(caller) {
            unseen::remember_relations();
            Some(before)
        } else {
            None
        };
        unseen::hide_rows_read();
        let nest_level = raw::GetCurrentTransactionNestLevel();
        FRAMES.with_borrow_mut(|frames| frames.push(Frame { engine, keeper, caller, nest_level, before }));
        raw::SetUserIdAndSecContext(engine, entered.context | pg_sys::SECURITY_LOCAL_USERID_CHANGE as c_int);
        entered.opened = true;
        entered
    }
}

unsafe fn leave(entered: &Entered) {
    if entered.opened {
        // SAFETY: restores what `enter` found.
        unsafe { raw::SetUserIdAndSecContext(entered.user, entered.context) };
        close(FRAMES.with_borrow_mut(Vec::pop));
    }
}

fn close(frame: Option<Frame>) {
    if let Some(before) = frame.and_then(|frame| frame.before) {
        unseen::forget(&before);
    }
}

/// Pops the frames that an ERROR left in this (sub)transaction and nested ones.
fn shut_from(nest_level: c_int) {
    let left_open = || FRAMES.with_borrow_mut(|frames| frames.pop_if(|frame| frame.nest_level >= nest_level));
    while let Some(frame) = left_open() {
        close(Some(frame));
    }
}

unsafe extern "C-unwind" fn transaction_ends(event: pg_sys::XactEvent::Type, _: *mut c_void) {
    use pg_sys::XactEvent::{XACT_EVENT_ABORT, XACT_EVENT_PARALLEL_ABORT};
    if event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT {
        // SAFETY: runs while the transaction is being aborted.
        unsafe { pgrx_extern_c_guard(|| shut_from(0)) };
    }
}

unsafe extern "C-unwind" fn subtransaction_ends(
    event: pg_sys::SubXactEvent::Type,
    _: pg_sys::SubTransactionId,
    _: pg_sys::SubTransactionId,
    _: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // SAFETY: runs while that subtransaction is still the current one.
        unsafe { pgrx_extern_c_guard(|| shut_from(raw::GetCurrentTransactionNestLevel())) };
    }
}

fn broken(why: &str) -> Report {
    Report {
        kind: Kind::Broken,
        message: format!("The installation of PML is incomplete: {why}"),
        detail: None,
        hint: Some(
            "DROP EXTENSION and DROP ROLE leave it so; an admin has to restore what was dropped.".to_owned(),
        ),
    }
}
