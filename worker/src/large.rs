//! Keeps CPU-bound work on large texts from blocking the async runtime.

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

/// Below this, the work takes a fraction of a millisecond.
const LARGE: usize = 256 * 1024;

/// Does the work; if it is on many bytes, the runtime moves other tasks to another thread first.
#[expect(clippy::disallowed_methods, reason = "it is known here whether the runtime has threads")]
pub fn aside_if_large<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let has_threads =
        || Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes >= LARGE && has_threads() { block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::{LARGE, aside_if_large};

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn large_work_leaves_the_only_thread_to_others() {
        let (sender, receiver) = mpsc::channel();
        let large = tokio::spawn(async move {
            tokio::spawn(async move { sender.send(()) });
            // Would wait forever if the other task had to wait for it.
            aside_if_large(LARGE, || receiver.recv())
        });
        assert!(large.await.unwrap().is_ok());
    }
}
