//! Runs what clients call: a plan from Postgres, code in the sandbox or a server's tool, the outcome back to Postgres.
//!
//! A call is a task of its own: it goes on and is recorded when its client has gone, and is recorded exactly once,
//! because `pml_finish` is idempotent and repeated until Postgres has taken it.

mod begin;
mod calls;
mod code;
mod outcome;
mod plan;
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
pub(crate) use begin::{CallFailure, call_listed, execute};
pub use plan::{Plan, RunPlan};
pub use progress::{Reporter, Step, Steps};
pub(crate) use tool::call_tool;

/// What the parts of a call have in common.
#[derive(Clone)]
pub struct Job {
    pub app: Arc<App>,
    pub caller: Caller,
    /// Whom the servers that it calls may ask.
    pub client: Option<CallingClient>,
    pub steps: Steps,
    pub cancel: CancellationToken,
}

impl Job {
    /// Runs `work` as a task that outlives whoever waits for it. Cancels it if the waiting ends first.
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

    /// Begins a run on the caller's account. `keeps_code` if it brings code that isn't stored yet.
    pub fn begin_run(&self, keeps_code: bool) -> Result<RunPermit, LimitReached> {
        let (limits, principal) = (&self.app.run_limits, &self.caller.principal);
        let begun = limits.begin(principal, keeps_code).inspect_err(|reached| self.limited(reached))?;
        if limits.should_count_rows(principal) {
            let (app, caller) = (self.app.clone(), self.caller.clone());
            // Nobody waits for it: the next runs go by what it says.
            self.app.lifecycle.finishes.spawn(async move {
                match app.database.stored_rows(&caller).await {
                    Ok(rows) => app.run_limits.rows_counted(&caller.principal, rows),
                    Err(error) => tracing::debug!(%error, "the stored rows can't be counted"),
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
