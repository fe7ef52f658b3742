//! Graceful shutdown: what is running, and the signals that stop it, one after the other.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Timeout of each last step: messages, statements, the end of processes.
pub(crate) const ENDING: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Lifecycle {
    /// Running calls. They continue when their client disconnects.
    pub calls: TaskTracker,
    /// Outcomes that are being stored in Postgres.
    pub finishes: TaskTracker,
    /// Cancelled when running calls must stop.
    pub end_calls: CancellationToken,
    /// Cancelled when no new connections are accepted.
    pub stop_accepting: CancellationToken,
    /// Cancelled when everything must stop.
    pub stop: CancellationToken,
    draining: AtomicBool,
}

impl Lifecycle {
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Accepts no more calls, lets running ones finish within `patience`, and cancels the rest.
    pub async fn drain(&self, patience: Duration) {
        self.draining.store(true, Ordering::Relaxed);
        self.calls.close();
        self.finishes.close();
        tracing::info!(running = self.calls.len(), "shutting down; waiting for running calls");
        if tokio::time::timeout(patience, self.calls.wait()).await.is_err() {
            tracing::warn!(running = self.calls.len(), "the drain timeout is over; cancelling running calls");
            self.end_calls.cancel();
            let _ = tokio::time::timeout(ENDING, self.calls.wait()).await;
        }
    }

    /// Waits until Postgres has the outcomes of all runs.
    pub(crate) async fn finish(&self) {
        self.end_calls.cancel();
        if tokio::time::timeout(ENDING, self.finishes.wait()).await.is_err() {
            tracing::error!(
                lost = self.finishes.len(),
                "can't store the outcomes of runs: Postgres can't be reached"
            );
        }
    }
}
