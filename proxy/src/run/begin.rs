//! Begins a client's call: gets its plan from Postgres and carries it out.

use rmcp::model::{CallToolResponse, CallToolResult, ErrorData, JsonObject};
use serde_json::{Value, json};

use super::{Job, Plan, tool::call_tool};
use crate::{
    database::DatabaseError,
    downstream::{Call, CallBody, Input, ToolAnswer},
    limits::{LimitReached, RunPermit},
    request_state::StateError,
    tools::{answer, cache::ServerTool},
};

/// The prefix of all tools that are listed for servers and capabilities.
const WIRE_PREFIX: &str = "mcp__";

/// `pml_execute`: code, a capability by name, or an intent.
pub(crate) async fn execute(job: Job, mut request: JsonObject) -> Result<CallToolResponse, CallFailure> {
    // `pml_begin` takes these from proxies only.
    if let Some(key) = ["tool", "servers"].into_iter().find(|key| request.contains_key(*key)) {
        return Ok(answer::failure(format!("pml_execute has no argument \"{key}\".")).into());
    }
    request.insert("servers".into(), json!(job.app.tools.server_names));
    let learns = brings_code(&request);
    let work = |job: Job| async move {
        let answer = begin_and_run(job.clone(), Value::Object(request), Input::default()).await;
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

/// Looks the name up in Postgres, and caches it if it is a server's tool.
async fn begin_and_call(
    job: Job,
    name: String,
    arguments: JsonObject,
    input: Input,
) -> Result<Outcome, CallFailure> {
    let request = json!({"tool": name, "args": arguments, "servers": job.app.tools.server_names});
    let mut asked = job.app.tools.cache.moment();
    let permit = job.begin_run(false)?;
    let mut planned = plan(&job, &request).await;
    // The tools of this project may not be registered yet.
    let is_unknown = matches!(&planned, Err(DatabaseError::Refused(refusal)) if refusal.is_not_found() || refusal.is_unknown_tool());
    if is_unknown && name.starts_with(WIRE_PREFIX) && job.app.tools.names_server(&name) {
        job.app.tools.register_servers_in(&job.caller, || name.clone()).await;
        asked = job.app.tools.cache.moment();
        planned = plan(&job, &request).await;
    }
    let plan = planned?;
    if let Plan::Tool(call) = &plan {
        let tool = ServerTool { server: call.server.clone(), tool: call.tool.clone() };
        job.app.tools.cache.keep_server_tool(job.caller.scope(), name, tool, asked);
    }
    carry_out(job, plan, input, &permit).await
}

/// Whether the request brings new code, rather than calling a capability.
fn brings_code(request: &JsonObject) -> bool {
    request.contains_key("code") || request.contains_key("source")
}

async fn begin_and_run(job: Job, request: Value, input: Input) -> Result<Outcome, CallFailure> {
    let keeps_code = request.as_object().is_some_and(brings_code);
    let permit = job.begin_run(keeps_code)?;
    if keeps_code {
        let code = || [&request["code"], &request["source"], &request["name"]].map(Value::to_string).concat();
        tokio::select! {
            () = job.app.tools.register_servers_in(&job.caller, code) => {}
            () = job.cancel.cancelled() => {}
        }
    }
    let plan = plan(&job, &request).await?;
    carry_out(job, plan, input, &permit).await
}

async fn plan(job: &Job, request: &Value) -> Result<Plan, DatabaseError> {
    let begun = job.app.database.begin(&job.caller, request).await?;
    let mut plan = Plan::parse(&begun)
        .map_err(|error| DatabaseError::NotReady(format!("pml_begin gave an unreadable plan ({error}).")))?;
    plan.keep_args(&request["args"]);
    Ok(plan)
}

async fn carry_out(job: Job, plan: Plan, input: Input, permit: &RunPermit) -> Result<Outcome, CallFailure> {
    match plan {
        Plan::Run(plan) => Ok(Outcome::Answer(job.run(plan, permit).await?)),
        Plan::Answer(answer) => Ok(Outcome::Answer(answer)),
        Plan::Tool(call) => call_tool(&job, &call, input).await.map(Outcome::Tool),
    }
}

fn interrupted() -> CallToolResult {
    answer::failure("The call failed because of an internal error of the proxy; see its log.")
}
