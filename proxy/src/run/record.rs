//! Records a run's outcome in Postgres: exactly once, with retries.

use std::time::{Duration, Instant};

use backon::Retryable;
use pml_worker::aside_if_large;
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::Instrument;
use uuid::Uuid;

use super::{Job, RunPlan, outcome::RunOutcome};
use crate::{backoff::UNTIL_TAKEN, database::DatabaseError};

/// How long an answer waits for its record. Then it is sent with a warning, and recording continues in the background.
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// The lifetime of a workflow in Postgres, after which its outcome is refused.
const LONGEST_RETRY: Duration = Duration::from_secs(3600);

impl Job {
    /// Records the outcome in a separate task, and waits for it up to a limit.
    pub(super) async fn record(
        self,
        workflow: Uuid,
        plan: &RunPlan,
        outcome: RunOutcome,
    ) -> Result<Value, DatabaseError> {
        let bytes = outcome.result.as_ref().map_or(0, |result| result.get().len());
        let for_postgres = aside_if_large(bytes, || outcome.for_postgres());
        let (app, caller) = (self.app.clone(), self.caller.clone());
        let recording = self.app.lifecycle.finishes.spawn(
            async move {
                let deadline = Instant::now() + LONGEST_RETRY;
                let finish = || app.database.finish(&caller, workflow, &for_postgres);
                let finished = finish
                    .retry(UNTIL_TAKEN)
                    .when(|error| error.is_passing() && Instant::now() < deadline)
                    .notify(|error, pause| {
                        tracing::warn!(%workflow, %error, "can't record the outcome yet; retrying in {pause:?}");
                    });
                finished.await.inspect_err(|error| {
                    tracing::error!(%workflow, %error, "can't record the outcome");
                })
            }
            .in_current_span(),
        );
        match timeout(LONGEST_WAIT, recording).await {
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(error))) => Ok(unrecorded(workflow, plan, &outcome, &error.to_string())),
            Ok(Err(_)) | Err(_) => Ok(unrecorded(workflow, plan, &outcome, "Postgres can't be reached")),
        }
    }
}

/// The answer of a run that isn't recorded (yet).
fn unrecorded(workflow: Uuid, plan: &RunPlan, outcome: &RunOutcome, why: &str) -> Value {
    let mut answer = json!({
        "status": if outcome.success { "success" } else { "error" },
        "mode": plan.mode,
        "capabilityName": plan.name,
        "executionTimeMs": outcome.duration_ms,
        "workflowId": workflow,
        "warning": format!("The run has ended, but isn't recorded: {why}. Don't repeat it because of that."),
    });
    if let Some(result) = &outcome.result {
        answer["result"] = result.parse().unwrap_or_default();
    }
    if let Some(error) = &outcome.error {
        answer["error"] = json!(error);
    }
    answer
}
