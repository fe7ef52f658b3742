//! The main loop of the confined process: a fresh engine, a run, its outcome, and again.

mod bridge;
mod connection;
mod engine;
mod from_json;
mod heap;
mod parts;
mod raw;
mod run_state;
mod text;
mod thrown;
mod to_json;
mod watchdog;
mod web;

use std::time::{Duration, Instant};

use pml_worker::{
    protocol::{FromWorker, ToWorker, append_frame, parse_frame},
    return_free_memory,
};

use self::{
    connection::{Connection, ParentGone, send},
    engine::Engine,
    watchdog::Watchdog,
};

/// After a run with a larger heap, free memory is returned to the kernel.
const LARGE_HEAP: u64 = 2 * 1024 * 1024;

/// But only when no other run has come for so long: getting it back costs a run of 16 MB as much as parsing a megabyte.
const REST: Duration = Duration::from_millis(500);

/// Sends the parent a message outside a run.
pub(crate) fn tell(message: &FromWorker<'_>) -> Result<(), ParentGone> {
    let mut frame = Vec::new();
    append_frame(&mut frame, message).map_err(|_| ParentGone)?;
    send(&frame)
}

/// Serves runs until the parent is gone.
pub(crate) fn serve(missing: &str) -> Result<(), ParentGone> {
    keep_free_memory();
    let mut connection = Connection::new();
    let mut is_large = false;
    loop {
        // Sent before every run, not only the first, so that a crash while engines are swapped isn't blamed on the next run.
        let engine = Engine::prepare().map_err(|_| ParentGone)?;
        tell(&FromWorker::Ready { missing })?;
        if is_large && !connection.is_readable_before(Instant::now() + REST)? {
            connection.shrink();
            return_free_memory();
            is_large = false;
        }
        is_large |= serve_one(engine, &mut connection)? > LARGE_HEAP;
    }
}

/// Has the allocator return memory to the kernel only when it is told to.
fn keep_free_memory() {
    const NEVER: libc::c_int = libc::c_int::MAX;
    // SAFETY: mallopt takes no pointer.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, NEVER);
        libc::mallopt(libc::M_MMAP_MAX, 0);
    }
}

/// Waits for a run, runs it and discards the engine; returns its peak heap size.
fn serve_one(engine: Engine, connection: &mut Connection) -> Result<u64, ParentGone> {
    loop {
        let frame = connection.receive_owned()?;
        match parse_frame(frame.get()) {
            Ok(ToWorker::Run { code, args, names, limits }) => {
                let _watchdog = Watchdog::start(&limits);
                return engine.run(code, args, &names, limits, connection);
            }
            // An answer to a call that the previous run didn't wait for.
            Ok(ToWorker::Answer { .. } | ToWorker::Pause | ToWorker::Resume { .. }) => {}
            Err(_) => return Err(ParentGone),
        }
    }
}
