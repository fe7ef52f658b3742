//! Begins a client's call: gets its plan from Postgres and carries it out.

use std::sync::Arc;

use pml_worker::Json;
use rmcp::model::{CallToolResponse, CallToolResult, ErrorData, JsonObject};
use serde_json::{Value, json};

use super::{Job, code::Invocation, tool::call_tool};
use crate::{
    database::{DatabaseError, Refusal},
    downstream::{Call, CallBody, Input, ToolAnswer},
    limits::{LimitReached, RunPermit},
    plan::{Plan, RunPlan, ServerTool},
    request_state::StateError,
    tools::{
        answer,
        cache::{Callee, Moment},
    },
};

/// The prefix of all tools that are listed for servers and capabilities.
const WIRE_PREFIX: &str = "mcp__";

/// `pml_execute`: code, a capability by name, or an intent.
pub(crate) async fn execute(job: Job, mut request: JsonObject) -> Result<CallToolResponse, CallFailure> {
    // `pml_plan` takes these from proxies only.
    if let Some(key) = ["tool", "servers"].into_iter().find(|key| request.contains_key(*key)) {
        return Ok(answer::failure(format!("pml_execute has no argument \"{key}\".")).into());
    }
    request.insert("servers".into(), json!(job.app.tools.server_names));
    let learns = brings_code(&request);
    let work = |job: Job| async move {
        let answer = begin_and_run(job.clone(), request).await;
        if learns {
            job.app.tools.invalidate(job.caller.scope());
        }
        answer
    };
    match job.detached(work).await {
        Some(Ok(Outcome::Answer(answer))) => Ok(answer::from_execute(answer).into()),
        Some(Ok(Outcome::Tool(answer))) => Ok(answer.into_parsed()),
        Some(Err(failure)) => Err(failure),
        None => Ok(interrupted().into()),
    }
}

/// A listed tool: a capability, or a downstream server's.
pub(crate) async fn call_listed(
    job: Job,
    name: &str,
    arguments: JsonObject,
    input: Input,
) -> Result<CallToolResponse, CallFailure> {
    let answered = match job.app.tools.cache.server_tool(job.caller.scope(), name) {
        // Cached, so Postgres needn't be asked.
        Some(ServerTool { server, tool }) => {
            let call = Call { server, tool, body: CallBody::Parsed(Some(arguments)) };
            job.detached(|job| async move { call_tool(&job, &call, input).await.map(Outcome::Tool) }).await
        }
        None => job.detached(|job| begin_and_call(job, name.to_owned(), arguments, input)).await,
    };
    match answered {
        Some(Ok(Outcome::Answer(answer))) => Ok(answer::from_run(answer).into()),
        Some(Ok(Outcome::Tool(answer))) => Ok(answer.into_parsed()),
        Some(Err(CallFailure::Database(DatabaseError::Refused(refusal)))) if refusal.is_unknown_tool() => {
            // Cut, because a client may send any text as a name.
            let name: String = name.chars().take(128).collect();
            Err(CallFailure::Protocol(ErrorData::invalid_params(format!("Unknown tool: {name}"), None)))
        }
        Some(Err(failure)) => Err(failure),
        None => Ok(interrupted().into()),
    }
}

enum Outcome {
    Answer(Value),
    Tool(ToolAnswer),
}

/// Why a call has no result.
pub(crate) enum CallFailure {
    Database(DatabaseError),
    Limit(LimitReached),
    /// The client broke the protocol.
    Protocol(ErrorData),
}

impl CallFailure {
    /// A result that the agent reads, or an error that only its client sees.
    pub(crate) fn into_response(self) -> Result<CallToolResponse, ErrorData> {
        match self {
            CallFailure::Database(error) => Ok(answer::from_error(&error).into()),
            CallFailure::Limit(reached) => Ok(answer::from_limit(&reached).into()),
            CallFailure::Protocol(error) => Err(error),
        }
    }

    /// The error of a request that has no results for failures.
    pub(crate) fn into_error(self) -> ErrorData {
        match self {
            CallFailure::Database(DatabaseError::Refused(refusal)) => {
                ErrorData::internal_error(refusal.text(), Some(refusal.to_json()))
            }
            CallFailure::Database(error) => ErrorData::internal_error(error.to_string(), None),
            CallFailure::Limit(reached) => {
                ErrorData::internal_error(reached.to_string(), Some(reached.to_json()))
            }
            CallFailure::Protocol(error) => error,
        }
    }
}

impl From<DatabaseError> for CallFailure {
    fn from(error: DatabaseError) -> CallFailure {
        CallFailure::Database(error)
    }
}

impl From<LimitReached> for CallFailure {
    fn from(reached: LimitReached) -> CallFailure {
        CallFailure::Limit(reached)
    }
}

impl From<StateError> for CallFailure {
    fn from(error: StateError) -> CallFailure {
        match error {
            StateError::Database(error) => CallFailure::Database(error),
            StateError::Forged => CallFailure::Protocol(ErrorData::invalid_params(error.to_string(), None)),
        }
    }
}

/// Calls what the name stands for. Postgres is asked if that isn't cached.
async fn begin_and_call(
    job: Job,
    name: String,
    arguments: JsonObject,
    input: Input,
) -> Result<Outcome, CallFailure> {
    let permit = job.begin_run(false)?;
    let callee = Callee::WireName(name.clone());
    let given = Given { args: Json::from(Value::Object(arguments)), ..Given::default() };
    if let Some(plan) = given.is_storable().then(|| job.known(&callee)).flatten() {
        return invoke(job, plan, given, &permit).await;
    }
    let request = json!({"tool": name, "args": given.args, "servers": job.app.tools.server_names});
    let mut asked = job.app.tools.cache.moment();
    let mut planned = plan(&job, &request).await;
    // The tools of this project may not be registered yet.
    if is_unknown(&planned) && name.starts_with(WIRE_PREFIX) && job.app.tools.names_server(&name) {
        job.app.tools.register_servers_in(&job.caller, || name.clone()).await;
        asked = job.app.tools.cache.moment();
        planned = plan(&job, &request).await;
        let why = job.app.tools.why_unknown(job.caller.scope(), &name).filter(|_| is_unknown(&planned));
        if let Some(why) = why {
            return Ok(Outcome::Tool(ToolAnswer::Parsed(answer::failure(why).into())));
        }
    }
    match planned? {
        Plan::Run(plan) => invoke(job.clone(), job.keep(callee, plan, asked), given, &permit).await,
        Plan::Tool(ServerTool { server, tool }) => {
            let known = ServerTool { server: server.clone(), tool: tool.clone() };
            job.app.tools.cache.keep_server_tool(job.caller.scope(), name, known, asked);
            let body = CallBody::Parsed(given.args.parse().ok());
            call_tool(&job, &Call { server, tool, body }, input).await.map(Outcome::Tool)
        }
        Plan::Answer(answer) => Ok(Outcome::Answer(answer)),
    }
}

/// What a request gives besides saying what to run.
struct Given {
    args: Json,
    intent: Option<String>,
    timeout_ms: Option<u64>,
}

impl Default for Given {
    fn default() -> Given {
        Given { args: Json::from(json!({})), intent: None, timeout_ms: None }
    }
}

impl Given {
    /// Of a request that Postgres has validated.
    fn of(request: &mut JsonObject) -> Given {
        let args = request.remove("args").filter(|args| !args.is_null());
        let intent = request.get("intent").and_then(Value::as_str).map(str::to_owned);
        let timeout_ms = request.get("options").and_then(|options| options["timeout"].as_u64());
        Given { args: Json::from(args.unwrap_or_else(|| json!({}))), intent, timeout_ms }
    }

    /// Whether it surely has no U+0000, which Postgres refuses when it is asked for a plan.
    fn is_storable(&self) -> bool {
        !self.args.get().contains("\\u0000") && !self.intent.as_ref().is_some_and(|text| text.contains('\0'))
    }
}

/// The capability that a request calls, if it gives nothing else that Postgres has to validate.
fn simple_callee(request: &JsonObject) -> Option<Callee> {
    let is_simple = |(key, value): (&String, &Value)| match key.as_str() {
        "capability" | "intent" => value.is_string(),
        "args" => value.is_object(),
        "servers" => true,
        _ => false,
    };
    let spec = request.get("capability")?.as_str()?;
    (!spec.is_empty() && request.iter().all(is_simple)).then(|| Callee::Spec(spec.to_owned()))
}

/// Whether the request brings new code, rather than calling a capability.
fn brings_code(request: &JsonObject) -> bool {
    request.contains_key("code") || request.contains_key("source")
}

async fn begin_and_run(job: Job, mut request: JsonObject) -> Result<Outcome, CallFailure> {
    let keeps_code = brings_code(&request);
    let permit = job.begin_run(keeps_code)?;
    if keeps_code {
        let texts =
            ["code", "source", "name"].map(|key| request.get(key).map_or_else(String::new, Value::to_string));
        tokio::select! {
            () = job.app.tools.register_servers_in(&job.caller, || texts.concat()) => {}
            () = job.cancel.cancelled() => {}
        }
    }
    let callee = simple_callee(&request);
    if let Some(plan) = callee.as_ref().and_then(|callee| job.known(callee)) {
        let given = Given::of(&mut request);
        if given.is_storable() {
            return invoke(job, plan, given, &permit).await;
        }
        request.insert("args".into(), given.args.parse().unwrap_or_default());
    }
    let asked = job.app.tools.cache.moment();
    let request = Value::Object(request);
    let planned = plan(&job, &request).await?;
    let Value::Object(mut request) = request else { unreachable!("it was an object") };
    match planned {
        Plan::Run(plan) => {
            let plan = match callee {
                Some(callee) => job.keep(callee, plan, asked),
                None => Arc::from(plan),
            };
            invoke(job, plan, Given::of(&mut request), &permit).await
        }
        Plan::Tool(ServerTool { server, tool }) => {
            let body = CallBody::Parsed(request.get("args").and_then(Value::as_object).cloned());
            call_tool(&job, &Call { server, tool, body }, Input::default()).await.map(Outcome::Tool)
        }
        Plan::Answer(answer) => Ok(Outcome::Answer(answer)),
    }
}

fn is_unknown(planned: &Result<Plan, DatabaseError>) -> bool {
    matches!(planned, Err(DatabaseError::Refused(refusal)) if refusal.is_not_found() || refusal.is_unknown_tool())
}

async fn plan(job: &Job, request: &Value) -> Result<Plan, DatabaseError> {
    let planned = job.app.database.plan(&job.caller, request).await?;
    Plan::parse(&planned)
        .map_err(|error| DatabaseError::NotReady(format!("pml_plan gave an unreadable plan ({error}).")))
}

async fn invoke(
    job: Job,
    plan: Arc<RunPlan>,
    given: Given,
    permit: &RunPermit,
) -> Result<Outcome, CallFailure> {
    let Given { args, intent, timeout_ms } = given;
    let args = plan.checked(args).map_err(|error| DatabaseError::Refused(Refusal::from(error)))?;
    Ok(Outcome::Answer(job.run(Invocation { plan, args, intent, timeout_ms }, permit).await?))
}

impl Job {
    /// The cached plan for calls of a capability.
    fn known(&self, callee: &Callee) -> Option<Arc<RunPlan>> {
        self.app.tools.cache.plan(self.caller.scope(), callee)
    }

    fn keep(&self, callee: Callee, plan: Box<RunPlan>, asked: Moment) -> Arc<RunPlan> {
        let plan: Arc<RunPlan> = Arc::from(plan);
        self.app.tools.cache.keep_plan(self.caller.scope(), callee, plan.clone(), asked);
        plan
    }
}

fn interrupted() -> CallToolResult {
    answer::failure("The call failed because of an internal error of the proxy; see its log.")
}
