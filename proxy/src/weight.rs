//! The size of an answer, known before it is written: a large one is written while other tasks go on in another thread.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pml_worker::aside_if_large;

/// The bytes of one answer, as far as they are known. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weight(Arc<AtomicUsize>);

impl Weight {
    pub(crate) fn set(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// Does the next step of the answer.
    pub(crate) fn step<T>(&self, step: impl FnOnce() -> T) -> T {
        aside_if_large(self.0.load(Ordering::Relaxed), step)
    }

    /// The same work, each step by its weight.
    pub(crate) async fn carried<W: Future>(&self, work: W) -> W::Output {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| self.step(|| work.as_mut().poll(context))).await
    }
}
