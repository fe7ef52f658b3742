//! The main loop of the confined process: a fresh engine, a run, its outcome, and again.

mod bridge;
mod connection;
mod engine;
mod heap;
mod parts;
mod run_state;
mod text;
mod thrown;
mod to_json;
mod watchdog;
mod web;

use pml_worker::protocol::{FromWorker, ToWorker, append_frame, parse_frame};

use self::{
    connection::{Connection, ParentGone, send},
    engine::Engine,
    watchdog::Watchdog,
};

/// After a run with a larger heap, free memory is returned to the kernel.
const LARGE_HEAP: u64 = 2 * 1024 * 1024;

/// Sends the parent a message outside a run.
pub(crate) fn tell(message: &FromWorker<'_>) -> Result<(), ParentGone> {
    let mut frame = Vec::new();
    append_frame(&mut frame, message).map_err(|_| ParentGone)?;
    send(&frame)
}

/// Serves runs until the parent is gone.
pub(crate) fn serve(missing: &str) -> Result<(), ParentGone> {
    let mut connection = Connection::new();
    loop {
        // Sent before every run, not only the first, so that a crash while engines are swapped isn't blamed on the next run.
        let engine = Engine::prepare().map_err(|_| ParentGone)?;
        tell(&FromWorker::Ready { missing })?;
        let peak = serve_one(engine, &mut connection)?;
        connection.shrink();
        if peak > LARGE_HEAP {
            // SAFETY: malloc_trim takes no pointer.
            unsafe { libc::malloc_trim(0) };
        }
    }
}

/// Waits for a run, runs it and discards the engine; returns its peak heap size.
fn serve_one(engine: Engine, connection: &mut Connection) -> Result<u64, ParentGone> {
    loop {
        // Copied, because the answers to the code's calls come in the same buffer.
        let frame = connection.receive(None)?.ok_or(ParentGone)?.to_vec();
        match parse_frame(&frame) {
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
