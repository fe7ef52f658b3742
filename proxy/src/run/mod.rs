//! Runs clients' calls: gets the plan from Postgres, runs code in the sandbox or calls a server's tool, records the outcome.
//!
//! A call is its own task, which continues when its client disconnects. It is recorded exactly once (`recorder.rs`).

mod ask;
mod begin;
mod calls;
mod code;
mod outcome;
mod progress;
mod record;
mod tool;

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    app::App,
    downstream::CallingClient,
    limits::{LimitReached, RunPermit},
    scope::Caller,
};
pub(crate) use ask::{ask_server, error_of};
pub(crate) use begin::{CallFailure, call_listed, execute};
pub use progress::{Reporter, Step, Steps};
pub(crate) use tool::call_tool;

/// The context of a call.
#[derive(Clone)]
pub struct Job {
    pub app: Arc<App>,
    pub caller: Caller,
    /// The client that servers may ask.
    pub client: Option<CallingClient>,
    pub steps: Steps,
    pub cancel: CancellationToken,
}

impl Job {
    /// Runs `work` as a task that outlives this future. Dropping the future cancels the job.
    pub async fn detached<T, W>(self, work: impl FnOnce(Job) -> W) -> Option<T>
    where
        T: Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        let gone = self.cancel.clone().drop_guard();
        let calls = self.app.lifecycle.calls.clone();
        let (sender, receiver) = oneshot::channel();
        let work = work(self);
        calls.spawn(
            async move {
                let _ = sender.send(work.await);
            }
            .in_current_span(),
        );
        let answer = receiver.await.ok();
        gone.disarm();
        answer
    }

    /// Charges a run to the caller's limits. `keeps_code` if it brings code that isn't stored yet.
    pub fn begin_run(&self, keeps_code: bool) -> Result<RunPermit, LimitReached> {
        let (limits, principal) = (&self.app.run_limits, &self.caller.principal);
        let begun = limits.begin(principal, keeps_code).inspect_err(|reached| self.limited(reached))?;
        if limits.should_count_rows(principal) {
            let (app, caller) = (self.app.clone(), self.caller.clone());
            // In the background: the count applies to the next runs.
            self.app.lifecycle.finishes.spawn(async move {
                match app.database.stored_rows(&caller).await {
                    Ok(rows) => app.run_limits.rows_counted(&caller.principal, rows),
                    Err(error) => tracing::debug!(%error, "can't count the stored rows"),
                }
            });
        }
        Ok(begun)
    }

    fn limited(&self, reached: &LimitReached) {
        self.app.metrics.limited(reached.limit.key(), reached.whose.name());
        tracing::info!(limit = reached.limit.key(), of = reached.whose.name(), "refused");
    }
}
