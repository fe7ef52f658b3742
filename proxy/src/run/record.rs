//! Records a run's outcome, and answers with what Postgres made of it.

use std::time::Duration;

use pml_worker::{Json, aside_if_large};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use super::{Job, code::Invocation, outcome::RunOutcome};
use crate::{database::EndedRun, plan::RunPlan};

/// How long an answer waits for its record. Then it is sent with a warning, and recording continues in the background.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

impl Job {
    /// The answer of `pml_execute`.
    pub(super) async fn record(self, workflow: Uuid, invocation: &Invocation, outcome: RunOutcome) -> Value {
        let bytes = outcome.result.as_ref().map_or(0, |result| result.get().len());
        let plan = &invocation.plan;
        let run = EndedRun {
            workflow,
            caller: self.caller.clone(),
            intent: invocation.intent.clone(),
            args: invocation.args.clone(),
            context: plan.context.clone(),
            outcome: aside_if_large(bytes, || outcome.for_postgres()),
            calls: outcome.tasks.len(),
            keeps_code: plan.fqdn.is_none(),
        };
        let recorded = timeout(LONGEST_WAIT, self.app.recorder.record(run)).await;
        let why = match recorded {
            Ok(Ok(Ok(answer))) => return whole(answer, plan, outcome.result.as_ref(), bytes),
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_)) | Err(_) => "Postgres can't be reached".to_owned(),
        };
        unrecorded(workflow, plan, &outcome, &why)
    }
}

/// Adds the result and the structure, which Postgres needn't send back.
fn whole(answer: Value, plan: &RunPlan, result: Option<&Json>, bytes: usize) -> Value {
    let Value::Object(mut answer) = answer else { return answer };
    if let (Some(Value::Object(dag)), Value::Object(structure)) = (answer.get_mut("dag"), &plan.dag) {
        dag.extend(structure.clone());
    }
    let Some(result) = result.filter(|_| answer.get("status") == Some(&json!("success"))) else {
        return Value::Object(answer);
    };
    let result = aside_if_large(bytes, || result.parse().unwrap_or_default());
    let mut whole = Map::from_iter([("status".to_owned(), json!("success")), ("result".to_owned(), result)]);
    answer.shift_remove("status");
    whole.extend(answer);
    Value::Object(whole)
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
