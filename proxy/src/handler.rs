//! The MCP server: both eras of the protocol, over any transport.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
        CompleteRequestParams, CompleteResult, Extensions, Implementation, JsonObject,
        ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
        ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use crate::{
    app::App,
    database::{DatabaseError, DiscoverArgs},
    run::{Job, Plan, Reporter, ToolPlan},
    scope::{Caller, new_request_id},
    tools::{self, answer, builtin::Builtin, known::ServerTool},
};

const INSTRUCTIONS: &str = "\
PML remembers code that worked. Before writing code, look with pml_discover, or with pml_execute and an intent alone: \
what you need may be there as a capability, to be called by name. New code goes to pml_execute with a name \
(namespace:action); if it succeeds it is kept, and is a tool from then on. Code reaches the connected MCP servers as \
`await mcp.server.tool({…})` and other capabilities as `await mcp.namespace.action({…})`.";

/// One for every session (2025) or request (2026).
pub struct Handler {
    app: Arc<App>,
    ended: CancellationToken,
    _end: DropGuard,
}

impl Handler {
    pub fn new(app: Arc<App>) -> Handler {
        let ended = app.stop.child_token();
        Handler { app, _end: ended.clone().drop_guard(), ended }
    }

    /// Whoever the transport says it is: HTTP puts it into the request, stdio has the configured scope.
    fn caller(&self, extensions: &Extensions) -> Caller {
        let stamped = extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
        stamped.cloned().unwrap_or_else(|| Caller {
            principal: self.app.configured.clone(),
            request_id: new_request_id(),
        })
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
        caller: Caller,
    ) -> Result<CallToolResult, ErrorData> {
        if self.app.is_draining() {
            return Ok(answer::failure(
                "The server is shutting down. Nothing was done; try again in a moment.",
            ));
        }
        let reporter = Reporter::start(&context.peer, context.meta.get_progress_token());
        let job = Job {
            app: self.app.clone(),
            caller,
            steps: reporter.steps.clone(),
            cancel: context.ct.child_token(),
        };
        let arguments = request.arguments.unwrap_or_default();
        let started = Instant::now();
        let (kind, answered) = match Builtin::find(&request.name) {
            Some(Builtin::Execute) => ("code", execute(job, arguments).await),
            Some(builtin) => ("builtin", ask(&job, builtin, arguments).await),
            None => ("tool", call_listed(job, &request.name, arguments).await),
        };
        reporter.end().await;
        let success = answered.as_ref().is_ok_and(|result| result.is_error != Some(true));
        self.app.metrics.called(kind, success, started.elapsed());
        answered
    }
}

/// `pml_execute`: code, a capability by name, or an intent.
async fn execute(job: Job, mut request: JsonObject) -> Result<CallToolResult, ErrorData> {
    // These are the proxy's to say.
    if let Some(key) = ["tool", "servers"].into_iter().find(|key| request.contains_key(*key)) {
        return Ok(answer::failure(format!("pml_execute has no argument \"{key}\".")));
    }
    request.insert("servers".into(), json!(job.app.server_names));
    let learns = request.contains_key("code");
    let work = |job: Job| async move {
        let answer = begin_and_run(job.clone(), Value::Object(request)).await;
        if learns {
            job.tools_may_have_changed();
        }
        answer
    };
    let answer = job.detached(work).await;
    Ok(match answer {
        Some(Ok(Outcome::Answer(answer))) => {
            let is_error = answer["status"] == "error";
            answer::from_json(answer, is_error)
        }
        Some(Ok(Outcome::Tool(result))) => result,
        Some(Err(error)) => answer::from_error(&error),
        None => interrupted(),
    })
}

/// A tool of the list: a capability, or a downstream server's.
async fn call_listed(job: Job, name: &str, arguments: JsonObject) -> Result<CallToolResult, ErrorData> {
    let answered = match job.app.known.server_tool(job.caller.scope(), name) {
        // Postgres has nothing to add.
        Some(ServerTool { server, tool }) => {
            let plan = ToolPlan { server, tool, args: Some(arguments) };
            job.detached(|job| async { Ok(Outcome::Tool(call_server_tool(job, plan).await)) }).await
        }
        None => job.detached(|job| begin_and_call(job, name.to_owned(), arguments)).await,
    };
    match answered {
        Some(Ok(Outcome::Answer(answer))) => Ok(answer::from_run(answer)),
        Some(Ok(Outcome::Tool(result))) => Ok(result),
        Some(Err(DatabaseError::Refused(refusal))) if refusal.is_unknown_tool() => {
            // No more than a client may have sent: it may be anything.
            Err(ErrorData::invalid_params(
                format!("Unknown tool: {}", name.chars().take(128).collect::<String>()),
                None,
            ))
        }
        Some(Err(error)) => Ok(answer::from_error(&error)),
        None => Ok(interrupted()),
    }
}

enum Outcome {
    Answer(Value),
    Tool(CallToolResult),
}

/// Asks Postgres what the name stands for, and remembers it if it is a server's tool.
async fn begin_and_call(job: Job, name: String, arguments: JsonObject) -> Result<Outcome, DatabaseError> {
    let request = json!({"tool": name, "args": arguments, "servers": job.app.server_names});
    let asked = job.app.known.moment();
    match plan(&job, &request).await? {
        Plan::Tool(plan) => {
            let tool = ServerTool { server: plan.server.clone(), tool: plan.tool.clone() };
            job.app.known.keep_server_tool(job.caller.scope(), name, tool, asked);
            Ok(Outcome::Tool(call_server_tool(job, plan).await))
        }
        plan => carry_out(job, plan).await,
    }
}

async fn begin_and_run(job: Job, request: Value) -> Result<Outcome, DatabaseError> {
    let plan = plan(&job, &request).await?;
    carry_out(job, plan).await
}

async fn plan(job: &Job, request: &Value) -> Result<Plan, DatabaseError> {
    let begun = job.app.database.begin(&job.caller, request).await?;
    Plan::parse(&begun)
        .map_err(|error| DatabaseError::NotReady(format!("its plan can't be understood ({error}).")))
}

async fn carry_out(job: Job, plan: Plan) -> Result<Outcome, DatabaseError> {
    match plan {
        Plan::Run(plan) => job.run(plan).await.map(Outcome::Answer),
        Plan::Answer(answer) => Ok(Outcome::Answer(answer)),
        Plan::Tool(plan) => Ok(Outcome::Tool(call_server_tool(job, plan).await)),
    }
}

/// A server's tool; that it can't be called is an answer too.
pub(crate) async fn call_server_tool(job: Job, plan: ToolPlan) -> CallToolResult {
    job.call_tool(plan).await.unwrap_or_else(|error| answer::failure(error.to_string()))
}

/// The built-in tools that are one question to Postgres.
async fn ask(job: &Job, builtin: Builtin, arguments: JsonObject) -> Result<CallToolResult, ErrorData> {
    let (database, caller) = (&job.app.database, &job.caller);
    let answered = match builtin {
        Builtin::Cap(tool) => database.cap(caller, tool, &Value::Object(arguments)).await,
        Builtin::Discover => match arguments_of::<DiscoverArgs>(arguments) {
            Ok(args) => database.discover(caller, &args, &job.app.server_names).await,
            Err(result) => return Ok(*result),
        },
        Builtin::TaskResult => match arguments_of::<TaskResultArgs>(arguments) {
            Ok(args) => {
                let format = args.format.as_deref().unwrap_or("raw");
                let offset = args.offset.unwrap_or(0);
                database
                    .task_result(caller, args.workflow_id, &args.task_id, offset, args.limit, format)
                    .await
            }
            Err(result) => return Ok(*result),
        },
        Builtin::Execute => unreachable!("it runs as a task of its own"),
    };
    if builtin.may_change_tools() {
        job.tools_may_have_changed();
    }
    Ok(match answered {
        Ok(answer) => answer::from_json(serde_json::from_str(answer.get()).unwrap_or_default(), false),
        Err(error) => answer::from_error(&error),
    })
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
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
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
        let tools = tools::list(&self.app, &caller).instrument(span).await.map_err(|error| {
            tracing::warn!(%error, "the tools can't be listed");
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
        self.call(request, context, caller).instrument(span).await.map(CallToolResponse::from)
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

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let caller = self.caller(&context.extensions);
        let mut changes = self.app.changes.subscribe(&caller.scope().place());
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
        let mut changes = self.app.changes.subscribe(&caller.scope().place());
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

/// How long a session may be silent before it is forgotten.
pub const SESSION_IDLE: Duration = Duration::from_secs(8 * 3600);
