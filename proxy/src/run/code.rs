//! Runs the code of a plan in the sandbox.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use pml_worker::{Call, CallError, CallHandler, Json, Limits, Run};
use serde_json::Value;
use uuid::Uuid;

use super::{
    Job, Step,
    begin::CallFailure,
    calls::{Calls, DynamicCapabilities, RunContext},
    outcome::{RunErrorKind, RunOutcome},
};
use crate::{
    limits::{LimitReached, RunPermit},
    plan::RunPlan,
};

/// Results of this size are handled one at a time for each tenant.
const LARGE_RESULT: usize = 512 * 1024;

/// A plan with what was given for this run.
pub(super) struct Invocation {
    pub plan: Arc<RunPlan>,
    pub args: Json,
    pub intent: Option<String>,
    pub timeout_ms: Option<u64>,
}

impl Job {
    /// Runs a plan and records its outcome; the answer is that of `pml_execute`.
    pub(super) async fn run(self, invocation: Invocation, permit: &RunPermit) -> Result<Value, CallFailure> {
        // Sorts by time: what is recorded together is stored together.
        let workflow = Uuid::now_v7();
        let limits = limits(&self.app.limits, invocation.timeout_ms);
        let tenant = self.caller.scope().tenant();
        let plan = &invocation.plan;
        let run = Run::new(tenant.clone(), plan.executable.clone())
            .with_args(invocation.args.clone())
            .with_names(plan.names())
            .with_limits(limits)
            .with_cpu_meter(permit.cpu.clone());
        let shared = RunContext {
            app: self.app.clone(),
            caller: self.caller.clone(),
            client: self.client.clone(),
            plan: plan.clone(),
            steps: self.steps.clone(),
            cancel: self.cancel.clone(),
            found: DynamicCapabilities::default(),
        };
        let calls = Calls::new(&shared);
        self.steps.report(|| Step::Code);
        let started = Instant::now();
        let admitted = Admitted { calls: &calls, permit, refusal: OnceLock::new() };
        let running = self.app.workers.run(run, &admitted);
        let outcome = tokio::select! {
            outcome = running => {
                let tasks = calls.of(&outcome);
                RunOutcome::of(outcome, tasks)
            }
            () = self.cancel.cancelled() => {
                let message = "The client cancelled the call.";
                RunOutcome::stopped(RunErrorKind::Cancelled, message, started.elapsed(), calls.take())
            }
            () = self.app.lifecycle.end_calls.cancelled() => {
                let message = "The proxy was shut down during the run.";
                RunOutcome::stopped(RunErrorKind::Shutdown, message, started.elapsed(), calls.take())
            }
        };
        if let Some(reached) = admitted.refusal.into_inner() {
            self.limited(&reached);
            return Err(reached.into());
        }
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
        Ok(self.record(workflow, &invocation, outcome).await)
    }
}

/// The calls of a run that is refused if runs before it in the queue have used up its token's allowance.
struct Admitted<'r> {
    calls: &'r Calls<'r>,
    permit: &'r RunPermit,
    refusal: OnceLock<LimitReached>,
}

impl CallHandler for Admitted<'_> {
    fn admit(&self) -> Result<(), String> {
        self.permit.is_still_allowed().map_err(|reached| {
            let why = reached.to_string();
            let _ = self.refusal.set(reached);
            why
        })
    }

    async fn call(&self, call: Call) -> Result<Json, CallError> {
        self.calls.call(call).await
    }
}

/// The configured limits, with the request's timeout if that is shorter.
fn limits(configured: &Limits, timeout_ms: Option<u64>) -> Limits {
    let wall_time = timeout_ms
        .map_or(configured.wall_time, |ms| Duration::from_millis(ms.max(1)).min(configured.wall_time));
    Limits { wall_time, ..configured.clone() }
}
