//! The life of the process once its doors are shut: a fresh engine, a run, its outcome, and again.

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

/// A run whose heap was larger than this leaves free memory worth giving back to the kernel.
const LARGE_HEAP: u64 = 2 * 1024 * 1024;

/// Tells the parent one thing outside a run.
pub(crate) fn tell(message: &FromWorker<'_>) -> Result<(), ParentGone> {
    let mut frame = Vec::new();
    append_frame(&mut frame, message).map_err(|_| ParentGone)?;
    send(&frame)
}

/// Serves runs until the parent is gone.
pub(crate) fn serve(missing: &str) -> Result<(), ParentGone> {
    let mut connection = Connection::new();
    loop {
        // Said before every run, not only the first: what goes wrong while an engine is thrown away or made is then known
        // not to be the next run's doing.
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

/// Waits for a run, runs it, and throws the engine away; gives the size of its heap.
fn serve_one(engine: Engine, connection: &mut Connection) -> Result<u64, ParentGone> {
    loop {
        // Copied, because the answers to the code's calls come in the same buffer.
        let frame = connection.receive(None)?.ok_or(ParentGone)?.to_vec();
        match parse_frame(&frame) {
            Ok(ToWorker::Run { code, args, names, limits }) => {
                let _watchdog = Watchdog::start(&limits);
                return engine.run(code, args, &names, limits, connection);
            }
            // To a call that the last run didn't wait for.
            Ok(ToWorker::Answer { .. } | ToWorker::Pause | ToWorker::Resume { .. }) => {}
            Err(_) => return Err(ParentGone),
        }
    }
}
