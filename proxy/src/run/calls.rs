//! Handles the calls of running code: servers' tools, and capabilities, which run inside the same call.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    pin::Pin,
    sync::Arc,
    time::Instant,
};

use parking_lot::Mutex;
use pml_worker::{Call, CallError, CallHandler, CallKind, Json, Outcome};
use rmcp::model::{CallToolResponse, CallToolResult};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    outcome::{RunOutcome, Task, TaskKind, millis},
    progress::{Step, Steps},
};
use crate::{
    app::App,
    downstream::{self, CallBody, CallContext, CallingClient, Input, Progress, ToolAnswer},
    plan::{Callable, Nested, RunPlan, checked},
    scope::Caller,
};

/// What all levels of a run share.
pub(super) struct RunContext {
    pub app: Arc<App>,
    pub caller: Caller,
    pub client: Option<CallingClient>,
    pub plan: Arc<RunPlan>,
    pub steps: Steps,
    pub cancel: CancellationToken,
    pub found: DynamicCapabilities,
}

/// The capabilities that the code named only at run time; each name is looked up once.
#[derive(Default)]
pub(super) struct DynamicCapabilities {
    keys: Mutex<HashMap<String, Option<String>>>,
    capabilities: Mutex<HashMap<String, Arc<Nested>>>,
    names: Mutex<HashMap<String, String>>,
}

/// A capability to run: of the plan, or found at run time.
enum Callee<'p> {
    Planned(&'p Nested),
    Found(Arc<Nested>),
}

impl std::ops::Deref for Callee<'_> {
    type Target = Nested;

    fn deref(&self) -> &Nested {
        match self {
            Callee::Planned(nested) => nested,
            Callee::Found(nested) => nested,
        }
    }
}

/// Handles and records the calls of one level.
pub(super) struct Calls<'s> {
    shared: &'s RunContext,
    tasks: Mutex<Vec<Task>>,
}

impl<'s> Calls<'s> {
    pub(super) fn new(shared: &'s RunContext) -> Calls<'s> {
        Calls { shared, tasks: Mutex::default() }
    }

    /// The calls so far, in order.
    pub(super) fn take(&self) -> Vec<Task> {
        std::mem::take(&mut *self.tasks.lock())
    }

    /// All calls of a run that has ended, in order: those that came too late to be made too.
    pub(super) fn of(&self, outcome: &Outcome) -> Vec<Task> {
        let mut tasks = self.take();
        let made: HashSet<u32> = tasks.iter().map(|task| task.number).collect();
        for (number, call) in (0..).zip(outcome.trace.calls()) {
            if made.contains(&number) {
                continue;
            }
            let is_capability =
                self.shared.plan.capabilities.contains_key(&call.target) || self.is_missing(&call.target);
            tasks.push(Task {
                node: call.node.clone(),
                kind: if is_capability { TaskKind::Capability } else { call.kind.into() },
                target: call.target.clone(),
                args: call.args.clone(),
                result: None,
                success: false,
                duration_ms: 0,
                error: Some("it was not made: the code had already ended. Await every call".into()),
                number,
                awaited: None,
                line: None,
                run: None,
            });
        }
        tasks.sort_by_key(|task| task.number);
        tasks
    }

    /// The capability that is called; none if it is a tool.
    async fn callee(&self, call: &Call) -> Result<Option<Callee<'s>>, CallError> {
        let RunContext { app, caller, plan, found, .. } = self.shared;
        if let Some(nested) = plan.capabilities.get(&call.target) {
            return Ok(Some(Callee::Planned(nested)));
        }
        if let Some(nested) = found.capabilities.lock().get(&call.target) {
            return Ok(Some(Callee::Found(nested.clone())));
        }
        if (call.kind == CallKind::Tool && self.has_server(&call.target)) || self.is_missing(&call.target) {
            return Ok(None);
        }
        let known = found.keys.lock().get(&call.target).cloned();
        let key = match known {
            Some(key) => key,
            None => {
                let answer = app.database.callable(caller, &call.target).await;
                let answer = answer.map_err(|error| CallError::new(error.to_string()))?;
                let Callable { key, capabilities, missing } =
                    serde_json::from_str(answer.get()).unwrap_or_default();
                let called = capabilities.iter().map(|(key, nested)| (key.clone(), nested.name.clone()));
                found.names.lock().extend(called.chain(missing));
                let capabilities = capabilities.into_iter().map(|(key, nested)| (key, Arc::new(nested)));
                found.capabilities.lock().extend(capabilities);
                found.keys.lock().insert(call.target.clone(), key.clone());
                key
            }
        };
        Ok(key.and_then(|key| found.capabilities.lock().get(&key).cloned()).map(Callee::Found))
    }

    /// Whether the target is of a server, or of none at all: `mcp[a][b]` may also be a capability, known only at run time.
    fn has_server(&self, target: &str) -> bool {
        target.split_once(':').is_none_or(|(server, _)| self.shared.app.servers.has(server))
    }

    /// Whether the target is a capability that was deleted or can't be seen.
    fn is_missing(&self, target: &str) -> bool {
        self.shared.plan.missing.contains_key(target) || self.shared.found.names.lock().contains_key(target)
    }

    async fn answer(&self, call: Call) -> Result<Json, CallError> {
        let nested = self.callee(&call).await?;
        let nested = nested.as_deref();
        let is_missing = nested.is_none() && self.is_missing(&call.target);
        let shown = match nested {
            Some(nested) => nested.name.clone(),
            None => self.shared.plan.missing.get(&call.target).unwrap_or(&call.target).clone(),
        };
        self.shared.steps.report(|| Step::Call(shown));
        let started = Instant::now();
        let at = {
            let mut tasks = self.tasks.lock();
            tasks.push(Task {
                node: call.node.clone(),
                kind: if nested.is_some() || is_missing { TaskKind::Capability } else { call.kind.into() },
                target: match nested {
                    // Linked code calls it by its FQDN already, maybe with a version.
                    Some(nested)
                        if call.kind == CallKind::Capability || !call.target.starts_with(&nested.fqdn) =>
                    {
                        nested.fqdn.clone()
                    }
                    _ => call.target.clone(),
                },
                args: call.args.clone(),
                result: None,
                success: false,
                duration_ms: 0,
                error: Some("the run ended before its answer came; it may have been carried out".into()),
                number: call.number,
                awaited: None,
                line: None,
                run: None,
            });
            tasks.len() - 1
        };
        let (answer, run) = match nested {
            Some(nested) => self.run_nested(&call, nested).await,
            None => (self.call_tool(&call).await, None),
        };
        if let Some(task) = self.tasks.lock().get_mut(at) {
            task.duration_ms = millis(started.elapsed());
            task.success = answer.is_ok();
            task.result = answer.as_ref().ok().cloned();
            task.error = answer.as_ref().err().map(ToString::to_string);
            task.run = run.map(Box::new);
        }
        answer
    }

    async fn call_tool(&self, call: &Call) -> Result<Json, CallError> {
        let shared = self.shared;
        if call.kind == CallKind::Capability || self.is_missing(&call.target) {
            return Err(CallError::new("there is no such capability, or it can't be seen from here"));
        }
        let Some((server, tool)) = call.target.split_once(':') else {
            return Err(CallError::new("call tools as mcp.server.tool(…); this name has no server"));
        };
        let args = match call.args.parse::<Value>() {
            Ok(Value::Object(args)) => Some(args),
            Ok(Value::Null) => None,
            _ => return Err(CallError::new("expected one object as the tool's argument")),
        };
        let (sender, receiver) = mpsc::unbounded_channel();
        let context = CallContext {
            cancel: shared.cancel.child_token(),
            progress: shared.steps.wanted().then_some(sender),
            timeout: Some(call.limits.wall_time),
            around: Some(call.clock.clone()),
            client: shared.client.clone(),
            // Code can't be suspended until the client calls again.
            may_ask_back: false,
            input: Input::default(),
            request_id: shared.caller.request_id.clone(),
        };
        let telling = tell_inside(&shared.steps, &call.target, receiver);
        let (server, tool) = (server.to_owned(), tool.to_owned());
        let called = downstream::Call { server, tool, body: CallBody::Parsed(args) };
        let calling = shared.app.servers.call(&called, context);
        let answered = tokio::select! {
            biased;
            answered = calling => answered,
            () = telling => unreachable!("it never ends"),
        };
        match answered.map(ToolAnswer::into_parsed) {
            Ok(CallToolResponse::Complete(result)) => value_of(result),
            Ok(_) => Err(CallError::new("the server asks a question, and code can't answer it")),
            Err(error) => Err(CallError {
                message: error.to_string(),
                data: Some(json!({"kind": error.kind()}).into()),
            }),
        }
    }

    async fn run_nested(
        &self,
        call: &Call,
        nested: &Nested,
    ) -> (Result<Json, CallError>, Option<RunOutcome>) {
        let args = match checked_args(call, nested) {
            Ok(args) => args,
            Err(error) => return (Err(error), None),
        };
        let calls = Calls::new(self.shared);
        let mut run = call.nested_run(&nested.executable, args);
        let found = self.shared.found.names.lock().clone();
        if !found.is_empty() {
            run =
                run.with_names(self.shared.plan.names().into_iter().chain(found).collect::<HashMap<_, _>>());
        }
        let outcome = self.shared.app.workers.run(run, &calls).await;
        let tasks = calls.of(&outcome);
        let mut outcome = RunOutcome::of(outcome, tasks);
        outcome.fqdn = Some(nested.fqdn.clone());
        outcome.version = nested.version;
        let answer = match (&outcome.result, &outcome.error) {
            (Some(result), _) => Ok(result.clone()),
            (None, Some(error)) => Err(CallError::new(error.for_caller())),
            (None, None) => Err(CallError::new("it failed")),
        };
        (answer, Some(outcome))
    }
}

/// The arguments of a nested call.
fn checked_args(call: &Call, nested: &Nested) -> Result<Json, CallError> {
    checked(call.args.clone(), nested.parameters_schema.as_ref(), nested.parameters_explicit).map_err(
        |error| {
            let detail = error.detail.map_or_else(String::new, |detail| format!("\n{detail}"));
            CallError::new(format!("{}{detail}\n{}", error.message, error.hint))
        },
    )
}

impl CallHandler for Calls<'_> {
    // Boxed, because a nested run has the same type as the run around it.
    fn call(&self, call: Call) -> impl Future<Output = Result<Json, CallError>> + Send {
        let answer: Pin<Box<dyn Future<Output = Result<Json, CallError>> + Send + '_>> =
            Box::pin(self.answer(call));
        answer
    }
}

/// Forwards a tool's progress; never ends.
async fn tell_inside(steps: &Steps, target: &str, mut progress: mpsc::UnboundedReceiver<Progress>) {
    while let Some(inner) = progress.recv().await {
        steps.report(|| Step::Inside(target.to_owned(), inner));
    }
    std::future::pending::<()>().await;
}

/// What the code gets of a tool's result: its structured content, else its text, else its whole content.
fn value_of(result: CallToolResult) -> Result<Json, CallError> {
    let texts: Vec<&str> =
        result.content.iter().filter_map(|block| block.as_text().map(|text| text.text.as_str())).collect();
    if result.is_error == Some(true) {
        let message =
            if texts.is_empty() { "it failed without a message".to_owned() } else { texts.join("\n") };
        return Err(CallError { message, data: result.structured_content.map(Json::from) });
    }
    if let Some(structured) = result.structured_content {
        return Ok(structured.into());
    }
    let value = if result.content.is_empty() {
        Value::Null
    } else if texts.len() == result.content.len() {
        Value::String(texts.join("\n"))
    } else {
        serde_json::to_value(&result.content).unwrap_or(Value::Null)
    };
    Ok(value.into())
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, ContentBlock};
    use serde_json::json;

    use super::value_of;

    #[test]
    fn code_gets_structured_content_before_text() {
        let mut result = CallToolResult::success(vec![ContentBlock::text("[1]")]);
        assert_eq!(value_of(result.clone()).unwrap(), json!("[1]"));
        result.structured_content = Some(json!({"list": [1]}));
        assert_eq!(value_of(result).unwrap(), json!({"list": [1]}));
        assert_eq!(value_of(CallToolResult::success(vec![])).unwrap(), json!(null));
    }

    #[test]
    fn a_failed_tool_throws_its_text() {
        let result = CallToolResult::error(vec![ContentBlock::text("no such file")]);
        assert_eq!(value_of(result).unwrap_err().message, "no such file");
    }
}
