//! Work on large texts blocks its thread; other tasks are moved to another one meanwhile.

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

/// Work on so many bytes takes a fraction of a millisecond.
const LARGE: usize = 256 * 1024;

/// Does the work; if it is on many bytes, other tasks go on in another thread meanwhile.
#[expect(clippy::disallowed_methods, reason = "it is known here whether the runtime has threads")]
pub fn aside_if_large<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let has_threads =
        || Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes >= LARGE && has_threads() { block_in_place(work) } else { work() }
}
