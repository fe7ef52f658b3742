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
    let mut ready = Some(FromWorker::Ready { missing });
    loop {
        let engine = Engine::prepare().map_err(|_| ParentGone)?;
        if let Some(ready) = ready.take() {
            tell(&ready)?;
        }
        // The code and its arguments are copied, because the answers to its calls come in the same buffer.
        let frame = connection.receive(None)?.ok_or(ParentGone)?.to_vec();
        let (code, args, limits) = match parse_frame(&frame) {
            Ok(ToWorker::Run { code, args, limits }) => (code, args, limits),
            // To a call that the last run didn't wait for.
            Ok(ToWorker::Answer { .. }) => continue,
            Err(_) => return Err(ParentGone),
        };
        let peak = {
            let _watchdog = Watchdog::start(&limits);
            engine.run(code, args, limits, &mut connection)?
        };
        drop(frame);
        connection.shrink();
        if peak > LARGE_HEAP {
            // SAFETY: malloc_trim takes no pointer.
            unsafe { libc::malloc_trim(0) };
        }
    }
}
