//! The MCP server: both eras of the protocol, on any transport. What a call does is in `run`.

#![expect(deprecated, reason = "logging is, but servers use it")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use http::request::Parts;
use parking_lot::Mutex;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams,
        CompleteResult, CustomRequest, CustomResult, ErrorCode, Extensions, Implementation,
        ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
        ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
        LoggingLevel, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
        SetLevelRequestMethod, SetLevelRequestParams, SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use crate::{
    app::App,
    downstream::{Asking, CallingClient, Input},
    presence::Presence,
    run::{self, CallFailure, Job, Reporter},
    scope::{Caller, new_request_id},
    tools::{answer, builtin::Builtin},
    weight::Weight,
};

const INSTRUCTIONS: &str = "\
PML remembers code that worked. Before writing code, search with pml_discover, or with pml_execute and only an intent: \
there may be a capability that does it, which you call by name. Run new code with pml_execute and a name \
(namespace:action); if it succeeds, it is kept and becomes a tool. Code calls the connected MCP servers with \
`await mcp.server.tool({…})` and other capabilities with `await mcp.namespace.action({…})`.";

const SLOW_SERVERS: &str = "\
A server that is slow to start may be missing in the first list of tools, whose _meta.pml.starting names it; \
notifications/tools/list_changed tells when its tools are there. Code that calls it waits for it.";

/// How long a refusal for a reached limit is held back.
const SLOW_REFUSAL: Duration = Duration::from_millis(200);

/// The handler of a session (2025) or of a request (2026).
pub struct Handler {
    app: Arc<App>,
    session: u64,
    /// The level that the session has set.
    log_level: Mutex<Option<LoggingLevel>>,
    ended: CancellationToken,
    _end: DropGuard,
}

impl Handler {
    pub fn new(app: Arc<App>) -> Handler {
        static SESSIONS: AtomicU64 = AtomicU64::new(0);
        let session = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let ended = app.lifecycle.stop.child_token();
        Handler { app, session, log_level: Mutex::default(), _end: ended.clone().drop_guard(), ended }
    }

    fn instructions(&self) -> String {
        let servers = self.app.servers.names();
        if servers.is_empty() {
            return INSTRUCTIONS.to_owned();
        }
        let servers: Vec<String> = servers.iter().map(|server| self.app.servers.shown(server)).collect();
        format!("{INSTRUCTIONS}\n\nConnected MCP servers: {}. {SLOW_SERVERS}", servers.join(", "))
    }

    /// The caller that the HTTP guard has put into the request; on stdio, the configured one.
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
    ) -> Result<CallToolResponse, ErrorData> {
        if self.app.lifecycle.is_draining() {
            let message = "The server is shutting down. Nothing was done; retry in a moment.";
            return Ok(answer::failure(message).into());
        }
        let reporter = Reporter::start(&context.peer, context.meta.get_progress_token());
        let log_level = *self.log_level.lock();
        let cancel = context.ct.child_token();
        let asking = Asking {
            questions: self.app.questions.clone(),
            tenant: caller.scope().tenant(),
            presence: presence(&context.extensions),
            absent: self.app.absent,
            end: cancel.clone(),
        };
        let client = CallingClient::of(self.session, &context, log_level, asking);
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
            Some(Builtin::Execute) => ("code", run::execute(job, arguments).await),
            Some(Builtin::Ask(tool)) => {
                let asked = self.app.tools.ask(&job.caller, &tool, arguments).await;
                // It holds the steps, for whose end the reporter waits.
                drop(job);
                ("builtin", Ok(asked.into()))
            }
            None => {
                let input = Input { responses: request.input_responses, state: request.request_state };
                ("tool", run::call_listed(job, &request.name, arguments, input).await)
            }
        };
        if matches!(answered, Err(CallFailure::Limit(_))) {
            // Slows down clients that retry without a pause.
            tokio::time::sleep(SLOW_REFUSAL).await;
        }
        let answered = answered.or_else(CallFailure::into_response);
        if let Some(weight) = weight(&context.extensions) {
            weight.set(answered.as_ref().map_or(0, answer::size));
        }
        reporter.end().await;
        client.flush_logs().await;
        self.app.metrics.called(kind, is_success(&answered), started.elapsed());
        answered
    }
}

/// Whether the client is connected, if it has an HTTP session.
fn presence(extensions: &Extensions) -> Option<Arc<Presence>> {
    extensions.get::<Parts>()?.extensions.get::<Arc<Presence>>().cloned()
}

/// Where the size of the answer is stored, over HTTP.
fn weight(extensions: &Extensions) -> Option<&Weight> {
    extensions.get::<Parts>()?.extensions.get::<Weight>()
}

fn is_success(answered: &Result<CallToolResponse, ErrorData>) -> bool {
    answered.as_ref().is_ok_and(|answer| match answer {
        CallToolResponse::Complete(result) => result.is_error != Some(true),
        _ => true,
    })
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        // Logging is for messages of downstream servers during a call.
        let capabilities =
            ServerCapabilities::builder().enable_logging().enable_tools().enable_tool_list_changed().build();
        let implementation = Implementation::new("pml", env!("CARGO_PKG_VERSION")).with_title("PML");
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(self.instructions())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context.extensions);
        let span =
            tracing::info_span!("list", request_id = caller.request_id, scope = caller.scope().project_key());
        let tools = self.app.tools.list(&caller).instrument(span.clone()).await.map_err(|error| {
            span.in_scope(|| tracing::warn!(%error, "can't list the tools"));
            ErrorData::internal_error(error.to_string(), None)
        })?;
        let mut result = ListToolsResult::with_all_items(tools.as_ref().clone());
        // It depends on the caller, and changes when anything is named.
        result.meta = answer::list_meta(&self.app.tools.unlisted(caller.scope()));
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
            tracing::info_span!("call", request_id = caller.request_id, scope = caller.scope().project_key());
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
        *self.log_level.lock() = Some(request.level);
        Ok(())
    }

    // Methods of undeclared capabilities, which rmcp would answer with empty lists.

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

    /// Requests that rmcp can't parse, even if only their parameters are invalid.
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
            ErrorData::invalid_params(format!("Invalid parameters of {method}."), None)
        } else {
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)
        })
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let caller = self.caller(&context.extensions);
        let mut changes = self.app.tools.subscribe(caller.scope());
        let ended = self.ended.clone();
        // The task holds the peer, not the handler, and ends when that is dropped.
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
        let mut changes = self.app.tools.subscribe(caller.scope());
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.app.lifecycle.stop.cancelled() => return Ok(()),
                changed = changes.changed() => if changed.is_err() { return Ok(()) },
            }
            let wanted = context.accepted().tools_list_changed == Some(true);
            if wanted && context.sink().notify_tool_list_changed().await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Whether the client uses the newer era of the protocol.
fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Idle sessions are closed after this time.
pub const SESSION_IDLE: Duration = Duration::from_secs(8 * 3600);
