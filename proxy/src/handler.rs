//! The MCP server: both eras of the protocol, over any transport.

#![expect(deprecated, reason = "logging is, but servers use it")]

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
        CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, ErrorCode, Extensions,
        Implementation, JsonObject, ListPromptsRequestMethod, ListPromptsResult,
        ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
        ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams, ProtocolVersion,
        ServerCapabilities, ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use crate::{
    app::App,
    database::{DatabaseError, DiscoverArgs},
    downstream::{Answer, Asking, Call, CallBody, Client, DownstreamError, Input},
    http::{Presence, Weight},
    limits::{LimitReached, RunPermit},
    request_state::{Holder, NotOurs},
    run::{Job, Plan, Reporter},
    scope::{Caller, new_request_id},
    tools::{self, answer, builtin::Builtin, known::ServerTool, registration::scope_in_use},
};

const INSTRUCTIONS: &str = "\
PML remembers code that worked. Before writing code, look with pml_discover, or with pml_execute and an intent alone: \
what you need may be there as a capability, to be called by name. New code goes to pml_execute with a name \
(namespace:action); if it succeeds it is kept, and is a tool from then on. Code reaches the connected MCP servers as \
`await mcp.server.tool({…})` and other capabilities as `await mcp.namespace.action({…})`.";

/// How the names of servers' tools and of capabilities begin.
const WIRE_PREFIX: &str = "mcp__";

/// How long a refusal takes that the client should have waited for.
const SLOW_REFUSAL: Duration = Duration::from_millis(200);

/// One for every session (2025) or request (2026).
pub struct Handler {
    app: Arc<App>,
    session: u64,
    /// What the session wants logged, if it has said so.
    log_level: Mutex<Option<LoggingLevel>>,
    ended: CancellationToken,
    _end: DropGuard,
}

impl Handler {
    pub fn new(app: Arc<App>) -> Handler {
        static SESSIONS: AtomicU64 = AtomicU64::new(0);
        let session = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let ended = app.stop.child_token();
        Handler { app, session, log_level: Mutex::default(), _end: ended.clone().drop_guard(), ended }
    }

    /// Whoever the transport says it is: HTTP puts it into the request, stdio has the configured scope.
    fn caller(&self, extensions: &Extensions) -> Caller {
        let stamped = extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
        stamped.cloned().unwrap_or_else(|| Caller {
            principal: self.app.configured.clone(),
            request_id: new_request_id(),
        })
    }

    fn subscribe(&self, caller: &Caller) -> watch::Receiver<u64> {
        let has = self.app.known.last_list(caller.scope());
        self.app.changes.subscribe(caller.scope(), has)
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
        caller: Caller,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.app.is_draining() {
            let message = "The server is shutting down. Nothing was done; try again in a moment.";
            return Ok(answer::failure(message).into());
        }
        let reporter = Reporter::start(&context.peer, context.meta.get_progress_token());
        let log_level = *self.log_level.lock().unwrap_or_else(PoisonError::into_inner);
        let cancel = context.ct.child_token();
        let asking = Asking {
            questions: self.app.questions.clone(),
            tenant: caller.scope().tenant(),
            presence: presence(&context.extensions),
            absent: self.app.absent,
            end: cancel.clone(),
        };
        let client = Client::of(self.session, &context, log_level, asking);
        let job = Job {
            app: self.app.clone(),
            caller,
            client: Some(client.clone()),
            steps: reporter.steps.clone(),
            cancel,
        };
        let arguments = request.arguments.unwrap_or_default();
        let started = Instant::now();
        let (kind, answered) = match Builtin::find(&request.name) {
            Some(Builtin::Execute) => ("code", Ok(execute(job, arguments).await)),
            Some(builtin) => ("builtin", Ok(ask(&job, builtin, arguments).await.into())),
            None => {
                let input = Input { responses: request.input_responses, state: request.request_state };
                ("tool", call_listed(job, &request.name, arguments, input).await)
            }
        };
        if is_limited(&answered) {
            // Whoever tries again at once would keep the proxy busy with refusals.
            tokio::time::sleep(SLOW_REFUSAL).await;
        }
        if let Some(weight) = weight(&context.extensions) {
            weight.set(answered.as_ref().map_or(0, answer::size));
        }
        reporter.end().await;
        client.told().await;
        self.app.metrics.called(kind, is_success(&answered), started.elapsed());
        answered
    }
}

/// Whether the client is there, if it has a session over HTTP.
fn presence(extensions: &Extensions) -> Option<Arc<Presence>> {
    extensions.get::<Parts>()?.extensions.get::<Arc<Presence>>().cloned()
}

/// Whether a limit was in the way.
fn is_limited(answered: &Result<CallToolResponse, ErrorData>) -> bool {
    let Ok(CallToolResponse::Complete(result)) = answered else { return false };
    // A run that met a limit of its own isn't anybody's.
    result.structured_content.as_ref().is_some_and(|content| content["error"]["of"].is_string())
}

/// Where the size of the answer is said, over HTTP.
fn weight(extensions: &Extensions) -> Option<&Weight> {
    extensions.get::<Parts>()?.extensions.get::<Weight>()
}

/// `pml_execute`: code, a capability by name, or an intent.
async fn execute(job: Job, mut request: JsonObject) -> CallToolResponse {
    // These are the proxy's to say.
    if let Some(key) = ["tool", "servers"].into_iter().find(|key| request.contains_key(*key)) {
        return answer::failure(format!("pml_execute has no argument \"{key}\".")).into();
    }
    request.insert("servers".into(), json!(job.app.server_names));
    let learns = brings_code(&request);
    let work = |job: Job| async move {
        let answer = begin_and_run(job.clone(), Value::Object(request), Input::default()).await;
        if learns {
            job.tools_may_have_changed();
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

/// Whether the request brings something to keep, rather than calling what is kept.
fn brings_code(request: &JsonObject) -> bool {
    request.contains_key("code") || request.contains_key("source")
}

/// A tool of the list: a capability, or a downstream server's.
async fn call_listed(
    job: Job,
    name: &str,
    arguments: JsonObject,
    input: Input,
) -> Result<CallToolResponse, ErrorData> {
    let answered = match job.app.known.server_tool(job.caller.scope(), name) {
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

fn is_success(answered: &Result<CallToolResponse, ErrorData>) -> bool {
    answered.as_ref().is_ok_and(|answer| match answer {
        CallToolResponse::Complete(result) => result.is_error != Some(true),
        _ => true,
    })
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
    let request = json!({"tool": name, "args": arguments, "servers": job.app.server_names});
    let mut asked = job.app.known.moment();
    let permit = job.begin_run(false)?;
    let mut planned = plan(&job, &request).await;
    // Nobody may have listed the tools of this scope yet.
    let is_unknown = matches!(&planned, Err(DatabaseError::Refused(refusal)) if refusal.is_unknown_tool());
    if is_unknown && name.starts_with(WIRE_PREFIX) && scope_in_use(&job.app, &job.caller).await {
        asked = job.app.known.moment();
        planned = plan(&job, &request).await;
    }
    let plan = planned?;
    if let Plan::Tool(call) = &plan {
        let tool = ServerTool { server: call.server.clone(), tool: call.tool.clone() };
        job.app.known.keep_server_tool(job.caller.scope(), name, tool, asked);
    }
    carry_out(job, plan, input, &permit).await
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

/// The state of a call that isn't over goes out sealed and comes back so.
pub(crate) async fn call_tool(job: &Job, call: &Call, mut input: Input) -> Result<Answer, NoAnswer> {
    let Job { app, caller, .. } = job;
    let holder = || Holder::of(caller, call);
    let answers = input.responses.is_some();
    if let Some(sealed) = &mut input.state {
        *sealed = app.request_states.open(&app.database, caller, &holder(), sealed).await?;
    }
    Ok(match job.call_tool(call, input).await {
        Ok(Answer::Parsed(CallToolResponse::InputRequired(mut asked))) => {
            if let Some(state) = &mut asked.request_state {
                *state = app.request_states.seal(&app.database, caller, &holder(), state).await?;
            }
            Answer::Parsed(asked.into())
        }
        Ok(answer) => answer,
        Err(error) => Answer::Parsed(failed(error, answers).map_err(NoAnswer::Client)?.into()),
    })
}

/// A failed call as a result for the agent; or an error, if it `answers` a question or lacks what the client should have.
fn failed(error: DownstreamError, answers: bool) -> Result<CallToolResult, ErrorData> {
    match error {
        // That is for the client to know, as the protocol has it.
        DownstreamError::Refused { code, message, data, .. }
            if code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0
                || (answers && code == ErrorCode::INVALID_PARAMS.0) =>
        {
            Err(ErrorData::new(ErrorCode(code), message, data.map(|data| *data)))
        }
        error => Ok(answer::failure(error.to_string())),
    }
}

/// The built-in tools that are one question to Postgres.
async fn ask(job: &Job, builtin: Builtin, arguments: JsonObject) -> CallToolResult {
    let (database, caller) = (&job.app.database, &job.caller);
    let answered = match builtin {
        Builtin::Cap(tool) => database.cap(caller, tool, &Value::Object(arguments)).await,
        Builtin::Discover => match arguments_of::<DiscoverArgs>(arguments) {
            Ok(args) => database.discover(caller, &args, &job.app.server_names).await,
            Err(result) => return *result,
        },
        Builtin::TaskResult => match arguments_of::<TaskResultArgs>(arguments) {
            Ok(args) => {
                let format = args.format.as_deref().unwrap_or("raw");
                let offset = args.offset.unwrap_or(0);
                database
                    .task_result(caller, args.workflow_id, &args.task_id, offset, args.limit, format)
                    .await
            }
            Err(result) => return *result,
        },
        Builtin::Execute => unreachable!("it runs as a task of its own"),
    };
    if builtin.may_change_tools() {
        job.tools_may_have_changed();
    }
    match answered {
        Ok(answer) => answer::from_json(serde_json::from_str(answer.get()).unwrap_or_default(), false),
        Err(error) => answer::from_error(&error),
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskResultArgs {
    workflow_id: uuid::Uuid,
    task_id: String,
    offset: Option<i32>,
    limit: Option<i32>,
    format: Option<String>,
}

fn arguments_of<T: serde::de::DeserializeOwned>(arguments: JsonObject) -> Result<T, Box<CallToolResult>> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Box::new(answer::failure(format!("The arguments don't fit the tool: {error}."))))
}

fn interrupted() -> CallToolResult {
    answer::failure("The call ended without an answer, because of an error in the proxy; its log says more.")
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        // The log messages are those of the servers behind us, during a call.
        let capabilities =
            ServerCapabilities::builder().enable_logging().enable_tools().enable_tool_list_changed().build();
        let implementation = Implementation::new("pml", env!("CARGO_PKG_VERSION")).with_title("PML");
        ServerConfig::new(capabilities).with_server_info(implementation).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context.extensions);
        let span =
            tracing::info_span!("list", request_id = caller.request_id, scope = caller.scope().place());
        let tools = tools::list(&self.app, &caller).instrument(span.clone()).await.map_err(|error| {
            span.in_scope(|| tracing::warn!(%error, "the tools can't be listed"));
            ErrorData::internal_error(error.to_string(), None)
        })?;
        let mut result = ListToolsResult::with_all_items(tools.as_ref().clone());
        // It depends on who asks, and changes whenever somebody names something.
        result.cache_scope = Some(CacheScope::Private);
        result.ttl_ms = Some(0);
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context.extensions);
        let span =
            tracing::info_span!("call", request_id = caller.request_id, scope = caller.scope().place());
        self.call(request, context, caller).instrument(span).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // Since 2026-07-28 the level comes with each request.
        if is_stateless(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        Ok(())
    }

    // What isn't declared isn't there; rmcp would answer these with empty lists.

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    /// What rmcp can't read comes here, also where only the parameters are wrong.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        let ours = match method.as_str() {
            "tools/call" | "tools/list" => true,
            "logging/setLevel" => !is_stateless(&context),
            _ => false,
        };
        Err(if ours {
            ErrorData::invalid_params(format!("The parameters of {method} aren't what they should be."), None)
        } else {
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)
        })
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let caller = self.caller(&context.extensions);
        let mut changes = self.subscribe(&caller);
        let ended = self.ended.clone();
        // The task holds the peer, not the handler, whose end is its end.
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = ended.cancelled() => return,
                    changed = changes.changed() => if changed.is_err() { return },
                }
                if context.peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = self.caller(&context.request_context().extensions);
        let mut changes = self.subscribe(&caller);
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.app.stop.cancelled() => return Ok(()),
                changed = changes.changed() => if changed.is_err() { return Ok(()) },
            }
            let wanted = context.accepted().tools_list_changed == Some(true);
            if wanted && context.sink().notify_tool_list_changed().await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Whether the client is of the newer era.
fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// How long a session may be silent before it is forgotten.
pub const SESSION_IDLE: Duration = Duration::from_secs(8 * 3600);
