//! Records a run's outcome in Postgres, exactly once and for as long as it takes.

use std::time::{Duration, Instant};

use backon::Retryable;
use pml_worker::aside_if_large;
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::Instrument;
use uuid::Uuid;

use super::{Job, RunPlan, outcome::RunOutcome};
use crate::{backoff::UNTIL_TAKEN, database::DatabaseError};

/// How long an answer waits for its record; then it goes out with a warning, and the record is made when it can be.
const RECORDING: Duration = Duration::from_secs(15);
/// As long as a workflow lives in Postgres; later its outcome would be refused.
const RECORDABLE: Duration = Duration::from_secs(3600);

impl Job {
    /// Records the outcome in a task of its own, and waits for that for a while.
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
                let deadline = Instant::now() + RECORDABLE;
                let finish = || app.database.finish(&caller, workflow, &for_postgres);
                let finished = finish
                    .retry(UNTIL_TAKEN)
                    .when(|error| error.is_passing() && Instant::now() < deadline)
                    .notify(|error, pause| {
                        tracing::warn!(%workflow, %error, "the outcome isn't recorded yet; trying again in {pause:?}");
                    });
                finished.await.inspect_err(|error| {
                    tracing::error!(%workflow, %error, "the outcome can't be recorded");
                })
            }
            .in_current_span(),
        );
        match timeout(RECORDING, recording).await {
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(error))) => Ok(unrecorded(workflow, plan, &outcome, &error.to_string())),
            Ok(Err(_)) | Err(_) => Ok(unrecorded(workflow, plan, &outcome, "Postgres can't be reached now")),
        }
    }
}

/// The answer of a run that Postgres doesn't know of (yet).
fn unrecorded(workflow: Uuid, plan: &RunPlan, outcome: &RunOutcome, why: &str) -> Value {
    let mut answer = json!({
        "status": if outcome.success { "success" } else { "error" },
        "mode": plan.mode,
        "capabilityName": plan.name,
        "executionTimeMs": outcome.duration_ms,
        "workflowId": workflow,
        "warning": format!("The run has ended, but isn't recorded: {why}. Don't run it again for that."),
    });
    if let Some(result) = &outcome.result {
        answer["result"] = result.parse().unwrap_or_default();
    }
    if let Some(error) = &outcome.error {
        answer["error"] = json!(error);
    }
    answer
}
