//! The run loop: a plan from Postgres, the run in the sandbox, its outcome back to Postgres.
//!
//! A call is a task of its own: it goes on and is recorded when its client has gone, and is recorded exactly once,
//! because `pml_finish` is idempotent and repeated until Postgres has taken it.

mod calls;
mod outcome;
mod plan;
mod progress;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use pml_worker::{Limits, Run, aside_if_large};
use rmcp::model::CallToolResponse;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use uuid::Uuid;

use crate::{
    app::App,
    database::DatabaseError,
    downstream::{Answer, Call, CallContext, Client, DownstreamError, Input, Progress},
    limits::{LimitReached, RunPermit},
    scope::Caller,
    usage::Used,
};
use calls::{Calls, Shared};
use outcome::RunOutcome;
pub(crate) use outcome::millis;
pub use plan::{Plan, RunPlan};
pub use progress::{Reporter, Step, Steps};

/// How long an answer waits for its record; then it goes out with a warning, and the record is made when it can be.
const RECORDING: Duration = Duration::from_secs(15);
/// Results above it take their tenant's turn.
const LARGE_RESULT: usize = 512 * 1024;
/// As long as a workflow lives in Postgres; later its outcome would be refused.
const RECORDABLE: Duration = Duration::from_secs(3600);

/// What the parts of a call have in common.
#[derive(Clone)]
pub struct Job {
    pub app: Arc<App>,
    pub caller: Caller,
    /// Whom the servers that it calls may ask.
    pub client: Option<Client>,
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
        let calls = self.app.calls.clone();
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

    /// Whoever made a change sees it in the next list, though the database's word of it may be on its way.
    pub fn tools_may_have_changed(&self) {
        self.app.known.changed(&self.caller.scope().place());
    }

    /// Begins a run on the caller's account. `keeps_code` if it brings code that isn't stored yet.
    pub fn begin_run(&self, keeps_code: bool) -> Result<RunPermit, LimitReached> {
        let (limits, principal) = (&self.app.run_limits, &self.caller.principal);
        let begun = limits.begin(principal, keeps_code).inspect_err(|reached| self.limited(reached))?;
        if limits.should_count_rows(principal) {
            let (app, caller) = (self.app.clone(), self.caller.clone());
            // Nobody waits for it: the next runs go by what it says.
            self.app.finishes.spawn(async move {
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

    /// Runs a plan to its recorded end; the answer is what `pml_execute` shows.
    pub async fn run(self, plan: Box<RunPlan>, permit: &RunPermit) -> Result<Value, DatabaseError> {
        let workflow = plan.workflow_id;
        let limits = limits(&self.app.limits, plan.timeout_ms);
        let tenant = self.caller.scope().tenant();
        let run = Run::new(tenant.clone(), plan.executable.clone())
            .with_args(plan.args.clone())
            .with_limits(limits)
            .with_cpu_meter(permit.cpu.clone());
        let shared = Shared {
            app: self.app.clone(),
            caller: self.caller.clone(),
            client: self.client.clone(),
            plan,
            steps: self.steps.clone(),
            cancel: self.cancel.clone(),
        };
        let calls = Calls::new(&shared);
        self.steps.tell(|| Step::Code);
        let started = Instant::now();
        let running = self.app.workers.run(run, &calls);
        let outcome = tokio::select! {
            outcome = running => RunOutcome::of(outcome, calls.take(), &shared.plan),
            () = self.cancel.cancelled() => {
                RunOutcome::stopped("cancelled", "The client cancelled the call.", started.elapsed(), calls.take())
            }
            () = self.app.end_calls.cancelled() => {
                let message = "The proxy was shut down before the run had ended.";
                RunOutcome::stopped("shutdown", message, started.elapsed(), calls.take())
            }
        };
        let bytes = outcome.result.as_ref().map_or(0, |result| result.get().len());
        let outcome = match permit.charge_result(bytes) {
            Ok(()) => outcome,
            Err(reached) => {
                self.limited(&reached);
                outcome.without_result("limit", &reached.to_string())
            }
        };
        // One large result of a tenant at a time: each takes processors here and in Postgres.
        let large = bytes >= LARGE_RESULT;
        let _turn = if large { self.app.large_results.enter(&tenant, 0).await.ok() } else { None };
        if let Some(error) = outcome.error.as_ref().filter(|error| error.kind == "queue_full") {
            self.app.metrics.limited(error.kind, "tenant");
        }
        tracing::info!(
            %workflow,
            success = outcome.success,
            error = outcome.error.as_ref().map(|error| error.kind),
            calls = outcome.tasks.len(),
            ms = outcome.duration_ms,
            "run"
        );
        if let Some(error) = outcome.error.as_ref().filter(|error| error.is_of_the_sandbox()) {
            tracing::warn!(%workflow, error = error.message, "a sandbox process was lost");
        }
        self.record(workflow, &shared.plan, outcome).await
    }

    /// Records the outcome in a task of its own, and waits for that for a while.
    async fn record(
        self,
        workflow: Uuid,
        plan: &RunPlan,
        outcome: RunOutcome,
    ) -> Result<Value, DatabaseError> {
        let bytes = outcome.result.as_ref().map_or(0, |result| result.get().len());
        let (for_postgres, replaced) = aside_if_large(bytes, || outcome.for_postgres());
        let (app, caller) = (self.app.clone(), self.caller.clone());
        let recording = self.app.finishes.spawn(
            async move {
                let deadline = Instant::now() + RECORDABLE;
                let mut pause = Duration::from_millis(100);
                loop {
                    match app.database.finish(&caller, workflow, &for_postgres).await {
                        Err(error) if error.is_passing() && Instant::now() < deadline => {
                            tracing::warn!(%workflow, %error, "the outcome isn't recorded yet; trying again in {pause:?}");
                            sleep(pause).await;
                            pause = (pause * 2).min(Duration::from_secs(5));
                        }
                        Err(error) => {
                            tracing::error!(%workflow, %error, "the outcome can't be recorded");
                            return Err(error);
                        }
                        Ok(answer) => return Ok(answer),
                    }
                }
            }
            .in_current_span(),
        );
        match timeout(RECORDING, recording).await {
            Ok(Ok(Ok(mut answer))) => {
                // The caller gets what the code returned, also where Postgres can't hold it.
                if let (true, Some(result)) = (replaced, &outcome.result) {
                    answer["result"] = result.parse().unwrap_or_default();
                }
                Ok(answer)
            }
            Ok(Ok(Err(error))) => Ok(unrecorded(workflow, plan, &outcome, &error.to_string())),
            Ok(Err(_)) | Err(_) => Ok(unrecorded(workflow, plan, &outcome, "Postgres can't be reached now")),
        }
    }

    /// Calls a downstream server's tool on behalf of the client, unchanged in both directions.
    /// A question of the server is the answer for a client that can only be asked so.
    pub async fn call_tool(&self, call: &Call, input: Input) -> Result<Answer, DownstreamError> {
        let started = Instant::now();
        let (sender, mut receiver) = self.steps.wanted().then(mpsc::unbounded_channel).unzip();
        let context = CallContext {
            cancel: self.cancel.clone(),
            progress: sender,
            client: self.client.clone(),
            may_ask_back: true,
            input,
            request_id: self.caller.request_id.clone(),
            ..CallContext::default()
        };
        let answered = {
            let calling = self.app.servers.call(call, context);
            tokio::pin!(calling);
            loop {
                tokio::select! {
                    biased;
                    Some(progress) = next(receiver.as_mut()) => self.steps.tell(|| Step::Tool(progress)),
                    answered = &mut calling => break answered,
                    () = self.app.end_calls.cancelled() => {
                        break Err(DownstreamError::Closed { server: call.server.clone() });
                    }
                }
            }
        };
        // A call that isn't over is counted when it is.
        if !matches!(answered, Ok(Answer::Parsed(CallToolResponse::InputRequired(_)))) {
            self.count(call, started, &answered);
        }
        answered
    }

    /// Adds a call that has ended to the statistics, for which its client needn't wait.
    fn count(&self, call: &Call, started: Instant, answered: &Result<Answer, DownstreamError>) {
        let error = match answered {
            Ok(answer) if answer.is_error() => Some("the tool answered with an error".to_owned()),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        let used = Used {
            caller: self.caller.clone(),
            server: call.server.clone(),
            tool: call.tool.clone(),
            duration: started.elapsed(),
            error,
            ended: Instant::now(),
        };
        let app = self.app.clone();
        let counting = async move {
            let Used { server, tool, duration, error, .. } = &used;
            tracing::info!(server, tool, success = error.is_none(), ms = millis(*duration), "tool");
            app.usage.add(used);
        };
        self.app.calls.spawn(counting.in_current_span());
    }
}

/// The next progress, if any is wanted.
async fn next(progress: Option<&mut mpsc::UnboundedReceiver<Progress>>) -> Option<Progress> {
    progress?.recv().await
}

/// The configured limits, with no more time than the request asks for.
fn limits(configured: &Limits, timeout_ms: Option<u64>) -> Limits {
    let wall_time = timeout_ms
        .map_or(configured.wall_time, |ms| Duration::from_millis(ms.max(1)).min(configured.wall_time));
    Limits { wall_time, ..configured.clone() }
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
