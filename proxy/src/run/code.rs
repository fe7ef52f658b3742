//! Runs the code of a plan in the sandbox.

use std::time::{Duration, Instant};

use pml_worker::{Limits, Run};
use serde_json::Value;

use super::{
    Job, RunPlan, Step,
    calls::{Calls, DynamicCapabilities, RunContext},
    outcome::{RunErrorKind, RunOutcome},
};
use crate::{database::DatabaseError, limits::RunPermit};

/// Results of this size are handled one at a time for each tenant.
const LARGE_RESULT: usize = 512 * 1024;

impl Job {
    /// Runs a plan and records its outcome; the answer is that of `pml_execute`.
    pub(super) async fn run(self, plan: Box<RunPlan>, permit: &RunPermit) -> Result<Value, DatabaseError> {
        let workflow = plan.workflow_id;
        let limits = limits(&self.app.limits, plan.timeout_ms);
        let tenant = self.caller.scope().tenant();
        let run = Run::new(tenant.clone(), plan.executable.clone())
            .with_args(plan.args.clone())
            .with_names(plan.names())
            .with_limits(limits)
            .with_cpu_meter(permit.cpu.clone());
        let shared = RunContext {
            app: self.app.clone(),
            caller: self.caller.clone(),
            client: self.client.clone(),
            plan,
            steps: self.steps.clone(),
            cancel: self.cancel.clone(),
            found: DynamicCapabilities::default(),
        };
        let calls = Calls::new(&shared);
        self.steps.report(|| Step::Code);
        let started = Instant::now();
        let running = self.app.workers.run(run, &calls);
        let outcome = tokio::select! {
            outcome = running => RunOutcome::of(outcome, calls.take()),
            () = self.cancel.cancelled() => {
                let message = "The client cancelled the call.";
                RunOutcome::stopped(RunErrorKind::Cancelled, message, started.elapsed(), calls.take())
            }
            () = self.app.lifecycle.end_calls.cancelled() => {
                let message = "The proxy was shut down during the run.";
                RunOutcome::stopped(RunErrorKind::Shutdown, message, started.elapsed(), calls.take())
            }
        };
        let bytes = outcome.result.as_ref().map_or(0, |result| result.get().len());
        let outcome = match permit.charge_result(bytes) {
            Ok(()) => outcome,
            Err(reached) => {
                self.limited(&reached);
                outcome.without_result(RunErrorKind::Limit, &reached.to_string())
            }
        };
        // Large results take CPU time here and in Postgres.
        let large = bytes >= LARGE_RESULT;
        let _turn = if large { self.app.large_results.enter(&tenant, 0).await.ok() } else { None };
        let error_kind = outcome.error.as_ref().map(|error| error.kind);
        if error_kind == Some(RunErrorKind::QueueFull) {
            self.app.metrics.limited(RunErrorKind::QueueFull.name(), "tenant");
        }
        tracing::info!(
            %workflow,
            success = outcome.success,
            error = error_kind.map(RunErrorKind::name),
            calls = outcome.tasks.len(),
            ms = outcome.duration_ms,
            "run"
        );
        if let Some(error) = outcome.error.as_ref().filter(|error| error.is_sandbox_failure()) {
            tracing::warn!(%workflow, error = error.message, "a sandbox process was lost");
        }
        self.record(workflow, &shared.plan, outcome).await
    }
}

/// The configured limits, with the request's timeout if that is shorter.
fn limits(configured: &Limits, timeout_ms: Option<u64>) -> Limits {
    let wall_time = timeout_ms
        .map_or(configured.wall_time, |ms| Duration::from_millis(ms.max(1)).min(configured.wall_time));
    Limits { wall_time, ..configured.clone() }
}
