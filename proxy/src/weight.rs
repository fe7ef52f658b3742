//! The size of an answer, so that serialising a large one doesn't block other tasks of the thread.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pml_worker::aside_if_large;

/// The estimated bytes of an answer. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weight(Arc<AtomicUsize>);

impl Weight {
    pub(crate) fn set(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// Runs a step of the answer, off the async thread if the answer is large.
    pub(crate) fn step<T>(&self, step: impl FnOnce() -> T) -> T {
        aside_if_large(self.0.load(Ordering::Relaxed), step)
    }

    /// Polls `work` the same way.
    pub(crate) async fn drive<W: Future>(&self, work: W) -> W::Output {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| self.step(|| work.as_mut().poll(context))).await
    }
}
