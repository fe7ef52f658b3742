//! How the proxy lives and ends: what is under way, and the signals that end it, one after the other.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// For what should take no time: the last messages, the last statements, the end of processes.
pub(crate) const ENDING: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Lifecycle {
    /// Calls under way. They go on when their client has gone.
    pub calls: TaskTracker,
    /// Outcomes on their way to Postgres.
    pub finishes: TaskTracker,
    /// Cancelled when calls that still run must end.
    pub end_calls: CancellationToken,
    /// Cancelled when no new connections are wanted.
    pub stop_accepting: CancellationToken,
    /// Cancelled when everything must end.
    pub stop: CancellationToken,
    draining: AtomicBool,
}

impl Lifecycle {
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Takes no more calls, lets those that run finish within `patience`, and ends what is left.
    pub async fn drain(&self, patience: Duration) {
        self.draining.store(true, Ordering::Relaxed);
        self.calls.close();
        self.finishes.close();
        tracing::info!(running = self.calls.len(), "shutting down; running calls may finish");
        if tokio::time::timeout(patience, self.calls.wait()).await.is_err() {
            tracing::warn!(running = self.calls.len(), "calls still run at the deadline and are cancelled");
            self.end_calls.cancel();
            let _ = tokio::time::timeout(ENDING, self.calls.wait()).await;
        }
    }

    /// Waits until Postgres has the outcomes of all runs.
    pub(crate) async fn finish(&self) {
        self.end_calls.cancel();
        if tokio::time::timeout(ENDING, self.finishes.wait()).await.is_err() {
            tracing::error!(lost = self.finishes.len(), "outcomes could not be stored: Postgres is away");
        }
    }
}
