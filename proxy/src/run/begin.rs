//! Begins what a client calls: asks Postgres for the plan, and carries it out.

use rmcp::model::{CallToolResponse, CallToolResult, ErrorData, JsonObject};
use serde_json::{Value, json};

use super::{Job, Plan, tool::call_tool};
use crate::{
    database::DatabaseError,
    downstream::{Answer, Call, CallBody, Input},
    limits::{LimitReached, RunPermit},
    request_state::NotOurs,
    tools::{answer, known::ServerTool},
};

/// How the names of servers' tools and of capabilities begin.
const WIRE_PREFIX: &str = "mcp__";

/// `pml_execute`: code, a capability by name, or an intent.
pub(crate) async fn execute(job: Job, mut request: JsonObject) -> CallToolResponse {
    // These are the proxy's to say.
    if let Some(key) = ["tool", "servers"].into_iter().find(|key| request.contains_key(*key)) {
        return answer::failure(format!("pml_execute has no argument \"{key}\".")).into();
    }
    request.insert("servers".into(), json!(job.app.tools.server_names));
    let learns = brings_code(&request);
    let work = |job: Job| async move {
        let answer = begin_and_run(job.clone(), Value::Object(request), Input::default()).await;
        if learns {
            job.app.tools.may_have_changed(job.caller.scope());
        }
        answer
    };
    match job.detached(work).await {
        Some(Ok(Outcome::Answer(answer))) => {
            let is_error = answer["status"] == "error";
            answer::from_json(answer, is_error).into()
        }
        Some(Ok(Outcome::Tool(answer))) => answer.into_parsed(),
        Some(Err(NoAnswer::Database(error))) => answer::from_error(&error).into(),
        Some(Err(NoAnswer::Limit(reached))) => answer::from_limit(&reached).into(),
        Some(Err(NoAnswer::Client(error))) => answer::failure(error.message).into(),
        None => interrupted().into(),
    }
}

/// A tool of the list: a capability, or a downstream server's.
pub(crate) async fn call_listed(
    job: Job,
    name: &str,
    arguments: JsonObject,
    input: Input,
) -> Result<CallToolResponse, ErrorData> {
    let answered = match job.app.tools.known.server_tool(job.caller.scope(), name) {
        // Postgres has nothing to add.
        Some(ServerTool { server, tool }) => {
            let call = Call { server, tool, body: CallBody::Parsed(Some(arguments)) };
            job.detached(|job| async move { call_tool(&job, &call, input).await.map(Outcome::Tool) }).await
        }
        None => job.detached(|job| begin_and_call(job, name.to_owned(), arguments, input)).await,
    };
    match answered {
        Some(Ok(Outcome::Answer(answer))) => Ok(answer::from_run(answer).into()),
        Some(Ok(Outcome::Tool(answer))) => Ok(answer.into_parsed()),
        Some(Err(NoAnswer::Database(DatabaseError::Refused(refusal)))) if refusal.is_unknown_tool() => {
            // No more than a client may have sent: it may be anything.
            Err(ErrorData::invalid_params(
                format!("Unknown tool: {}", name.chars().take(128).collect::<String>()),
                None,
            ))
        }
        Some(Err(error)) => error.told(),
        None => Ok(interrupted().into()),
    }
}

enum Outcome {
    Answer(Value),
    Tool(Answer),
}

/// Why there is no result.
pub(crate) enum NoAnswer {
    /// For the agent to read.
    Database(DatabaseError),
    /// For the agent too.
    Limit(LimitReached),
    /// The client did what it shouldn't; agents don't see those.
    Client(ErrorData),
}

impl NoAnswer {
    pub(crate) fn told(self) -> Result<CallToolResponse, ErrorData> {
        match self {
            NoAnswer::Database(error) => Ok(answer::from_error(&error).into()),
            NoAnswer::Limit(reached) => Ok(answer::from_limit(&reached).into()),
            NoAnswer::Client(error) => Err(error),
        }
    }
}

impl From<DatabaseError> for NoAnswer {
    fn from(error: DatabaseError) -> NoAnswer {
        NoAnswer::Database(error)
    }
}

impl From<LimitReached> for NoAnswer {
    fn from(reached: LimitReached) -> NoAnswer {
        NoAnswer::Limit(reached)
    }
}

impl From<NotOurs> for NoAnswer {
    fn from(error: NotOurs) -> NoAnswer {
        match error {
            NotOurs::Database(error) => NoAnswer::Database(error),
            NotOurs::Forged => NoAnswer::Client(ErrorData::invalid_params(error.to_string(), None)),
        }
    }
}

/// Asks Postgres what the name stands for, and remembers it if it is a server's tool.
async fn begin_and_call(
    job: Job,
    name: String,
    arguments: JsonObject,
    input: Input,
) -> Result<Outcome, NoAnswer> {
    let request = json!({"tool": name, "args": arguments, "servers": job.app.tools.server_names});
    let mut asked = job.app.tools.known.moment();
    let permit = job.begin_run(false)?;
    let mut planned = plan(&job, &request).await;
    // Nobody may have listed the tools of this scope yet.
    let is_unknown = matches!(&planned, Err(DatabaseError::Refused(refusal)) if refusal.is_not_found() || refusal.is_unknown_tool());
    if is_unknown && name.starts_with(WIRE_PREFIX) && job.app.tools.scope_in_use(&job.caller).await {
        asked = job.app.tools.known.moment();
        planned = plan(&job, &request).await;
    }
    let plan = planned?;
    if let Plan::Tool(call) = &plan {
        let tool = ServerTool { server: call.server.clone(), tool: call.tool.clone() };
        job.app.tools.known.keep_server_tool(job.caller.scope(), name, tool, asked);
    }
    carry_out(job, plan, input, &permit).await
}

/// Whether the request brings something to keep, rather than calling what is kept.
fn brings_code(request: &JsonObject) -> bool {
    request.contains_key("code") || request.contains_key("source")
}

async fn begin_and_run(job: Job, request: Value, input: Input) -> Result<Outcome, NoAnswer> {
    let permit = job.begin_run(request.as_object().is_some_and(brings_code))?;
    let plan = plan(&job, &request).await?;
    carry_out(job, plan, input, &permit).await
}

async fn plan(job: &Job, request: &Value) -> Result<Plan, DatabaseError> {
    let begun = job.app.database.begin(&job.caller, request).await?;
    Plan::parse(&begun)
        .map_err(|error| DatabaseError::NotReady(format!("its plan can't be understood ({error}).")))
}

async fn carry_out(job: Job, plan: Plan, input: Input, permit: &RunPermit) -> Result<Outcome, NoAnswer> {
    match plan {
        Plan::Run(plan) => Ok(Outcome::Answer(job.run(plan, permit).await?)),
        Plan::Answer(answer) => Ok(Outcome::Answer(answer)),
        Plan::Tool(call) => call_tool(&job, &call, input).await.map(Outcome::Tool),
    }
}

fn interrupted() -> CallToolResult {
    answer::failure("The call ended without an answer, because of an error in the proxy; its log says more.")
}
