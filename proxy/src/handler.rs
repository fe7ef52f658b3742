//! The MCP server: both eras of the protocol, on any transport. What a call does is in `run`.

#![expect(deprecated, reason = "logging and subscriptions by request are, but servers and clients use them")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use http::request::Parts;
use parking_lot::Mutex;
use pml_worker::aside_if_large;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams,
        CompleteResult, ConstString, CustomRequest, CustomResult, ErrorCode, Extensions,
        GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse, Implementation,
        ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
        ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
        LoggingLevel, PaginatedRequestParams, PromptsCapability, ProtocolVersion, ReadResourceRequestMethod,
        ReadResourceRequestParams, ReadResourceResponse, ResourcesCapability, ServerCapabilities,
        ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestMethod,
        SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestMethod, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use crate::{
    app::App,
    downstream::{Asking, CallingClient, Input},
    list_changes::{List, ListChanges},
    passed_on::{self, Offered, SessionSubscriptions, StreamSubscriptions},
    presence::Presence,
    run::{self, CallFailure, Job, Reporter},
    scope::{Caller, new_request_id},
    tools::{self, answer, builtin::Builtin},
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
/// Added if there are resources.
const ABOUT_RESOURCES: &str = " \
Resources of the servers are listed as pml://<server>/<URI>; their own tools take only that URI.";

/// How long a refusal for a reached limit is held back.
const SLOW_REFUSAL: Duration = Duration::from_millis(200);

/// The handler of a session (2025) or of a request (2026).
pub struct Handler {
    app: Arc<App>,
    session: u64,
    /// The level that the session has set.
    log_level: Mutex<Option<LoggingLevel>>,
    subscriptions: SessionSubscriptions,
    ended: CancellationToken,
    _end: DropGuard,
}

impl Handler {
    pub fn new(app: Arc<App>) -> Handler {
        static SESSIONS: AtomicU64 = AtomicU64::new(0);
        let session = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let ended = app.lifecycle.stop.child_token();
        Handler {
            app,
            session,
            log_level: Mutex::default(),
            subscriptions: SessionSubscriptions::default(),
            _end: ended.clone().drop_guard(),
            ended,
        }
    }

    fn instructions(&self, offered: &Offered) -> String {
        let servers = self.app.servers.names();
        let instructions = format!(
            "{INSTRUCTIONS} The list of tools has the {} most used capabilities; pml_discover finds all.",
            self.app.tools.list_limit
        );
        if servers.is_empty() {
            return instructions;
        }
        let servers: Vec<String> = servers.iter().map(|server| self.app.servers.shown(server)).collect();
        let resources = if offered.resources { ABOUT_RESOURCES } else { "" };
        format!("{instructions}\n\nConnected MCP servers: {}. {SLOW_SERVERS}{resources}", servers.join(", "))
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
        let (job, reporter) = self.begin(&context, caller);
        let client = job.client.clone();
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
        end(reporter, client).await;
        self.app.metrics.called(kind, is_success(&answered), started.elapsed());
        answered
    }

    /// The job of a request, and the reporter of its progress.
    fn begin(&self, context: &RequestContext<RoleServer>, caller: Caller) -> (Job, Reporter) {
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
        let client = CallingClient::of(self.session, context, log_level, asking);
        let steps = reporter.steps.clone();
        (Job { app: self.app.clone(), caller, client: Some(client), steps, cancel }, reporter)
    }

    /// Handles a request for resources or prompts, if some server has or may have them.
    async fn pass_on<M: ConstString, T>(
        &self,
        is_offered: fn(&Offered) -> bool,
        context: &RequestContext<RoleServer>,
        work: impl AsyncFnOnce(&Job) -> Result<T, CallFailure>,
        size: fn(&T) -> usize,
    ) -> Result<T, ErrorData> {
        if !is_offered(&Offered::by(&self.app.servers)) {
            return Err(ErrorData::method_not_found::<M>());
        }
        let caller = self.caller(&context.extensions);
        let (method, scope) = (M::VALUE, caller.scope().project_key());
        let span = tracing::info_span!("request", request_id = caller.request_id, scope, method);
        let working = async {
            if self.app.lifecycle.is_draining() {
                let message = "The server is shutting down. Nothing was done; retry in a moment.";
                return Err(ErrorData::internal_error(message, None));
            }
            let (job, reporter) = self.begin(context, caller);
            let client = job.client.clone();
            let started = Instant::now();
            let answered = async {
                self.app.tools.check_access(&job.caller).await?;
                work(&job).await
            };
            let answered = answered.await.map_err(CallFailure::into_error);
            // It holds the steps, for whose end the reporter waits.
            drop(job);
            if let Some(weight) = weight(&context.extensions) {
                weight.set(answered.as_ref().map_or(0, size));
            }
            end(reporter, client).await;
            let (kind, took) = (kind_of(method), started.elapsed());
            tracing::info!(kind, success = answered.is_ok(), ms = took.as_millis(), "answered");
            self.app.metrics.called(kind, answered.is_ok(), took);
            answered
        };
        self.app.lifecycle.calls.track_future(working.instrument(span)).await
    }
}

/// The approximate bytes of an item of a list.
const LISTED: usize = 256;

/// What a request counts as: `resources`, `prompts` or `completion`.
fn kind_of(method: &'static str) -> &'static str {
    method.split_once('/').map_or(method, |(kind, _)| kind)
}

/// Sends all progress and log messages: the answer comes last.
async fn end(reporter: Reporter, client: Option<CallingClient>) {
    reporter.end().await;
    if let Some(client) = client {
        client.flush_logs().await;
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
        let mut capabilities =
            ServerCapabilities::builder().enable_logging().enable_tools().enable_tool_list_changed().build();
        let offered = Offered::by(&self.app.servers);
        if offered.resources {
            let mut resources = ResourcesCapability::default();
            resources.list_changed = Some(true);
            resources.subscribe = offered.subscribe.then_some(true);
            capabilities.resources = Some(resources);
        }
        if offered.prompts {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            capabilities.prompts = Some(prompts);
        }
        capabilities.completions = offered.completions.then(Default::default);
        let implementation = Implementation::new("pml", env!("CARGO_PKG_VERSION")).with_title("PML");
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(self.instructions(&offered))
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
        let bytes = tools::size(&tools);
        if let Some(weight) = weight(&context.extensions) {
            weight.set(bytes);
        }
        let mut result = ListToolsResult::with_all_items(aside_if_large(bytes, || tools.as_ref().clone()));
        result.meta = answer::list_meta(&self.app.tools.unlisted(caller.scope()));
        (result.cache_scope, result.ttl_ms) = UNCACHED;
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

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let work = async |job: &Job| Ok(passed_on::list_resources(&job.app).await);
        let listing = self.pass_on::<ListResourcesRequestMethod, _>(
            |it| it.resources,
            &context,
            work,
            |list| LISTED * list.len(),
        );
        let mut result = ListResourcesResult::with_all_items(listing.await?);
        (result.cache_scope, result.ttl_ms) = UNCACHED;
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let work = async |job: &Job| Ok(passed_on::list_templates(&job.app).await);
        let listing = self.pass_on::<ListResourceTemplatesRequestMethod, _>(
            |it| it.resources,
            &context,
            work,
            |list| LISTED * list.len(),
        );
        let mut result = ListResourceTemplatesResult::with_all_items(listing.await?);
        (result.cache_scope, result.ttl_ms) = UNCACHED;
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let input = Input { responses: request.input_responses, state: request.request_state };
        let work = async |job: &Job| passed_on::read_resource(job, &request.uri, input).await;
        let size = passed_on::resource_size;
        self.pass_on::<ReadResourceRequestMethod, _>(|it| it.resources, &context, work, size).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let work = async |job: &Job| {
            self.subscriptions.add(&job.app, &job.caller, request.uri, job.cancel.clone()).await
        };
        self.pass_on::<SubscribeRequestMethod, _>(|it| it.subscribe, &context, work, |()| 0).await?;
        self.subscriptions.notify(&context.peer, &self.ended);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let work = async |_: &Job| {
            self.subscriptions.remove(&request.uri);
            Ok(())
        };
        self.pass_on::<UnsubscribeRequestMethod, _>(|it| it.subscribe, &context, work, |()| 0).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let work = async |job: &Job| Ok(passed_on::list_prompts(&job.app).await);
        let listing = self.pass_on::<ListPromptsRequestMethod, _>(
            |it| it.prompts,
            &context,
            work,
            |list| LISTED * list.len(),
        );
        let mut result = ListPromptsResult::with_all_items(listing.await?);
        (result.cache_scope, result.ttl_ms) = UNCACHED;
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let input = Input { responses: request.input_responses, state: request.request_state };
        let work =
            async |job: &Job| passed_on::get_prompt(job, &request.name, request.arguments, input).await;
        let size = passed_on::prompt_size;
        self.pass_on::<GetPromptRequestMethod, _>(|it| it.prompts, &context, work, size).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let work = async |job: &Job| passed_on::complete(job, request).await;
        self.pass_on::<CompleteRequestMethod, _>(|it| it.completions, &context, work, |_| 0).await
    }

    /// Requests that rmcp can't parse, even if only their parameters are invalid.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        let offered = Offered::by(&self.app.servers);
        let ours = match method.as_str() {
            "tools/call" | "tools/list" => true,
            "logging/setLevel" => !is_stateless(&context),
            "resources/list" | "resources/templates/list" | "resources/read" => offered.resources,
            "resources/subscribe" | "resources/unsubscribe" => offered.subscribe && !is_stateless(&context),
            "prompts/list" | "prompts/get" => offered.prompts,
            "completion/complete" => offered.completions,
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
        let mut changes = ListChanges::of(&self.app, &caller);
        let ended = self.ended.clone();
        // The task holds the peer, not the handler, and ends when that is dropped.
        tokio::spawn(async move {
            loop {
                let changed = tokio::select! {
                    () = ended.cancelled() => return,
                    changed = changes.next() => changed,
                };
                let peer = &context.peer;
                let notified = match changed {
                    None => return,
                    Some(List::Tools) => peer.notify_tool_list_changed().await,
                    Some(List::Resources) => peer.notify_resource_list_changed().await,
                    Some(List::Prompts) => peer.notify_prompt_list_changed().await,
                };
                if notified.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let supported = requested.supported_by(&self.get_info().capabilities);
        Some(passed_on::accepted(&self.app, supported))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = self.caller(&context.request_context().extensions);
        let mut changes = ListChanges::of(&self.app, &caller);
        let accepted = context.accepted();
        let uris = accepted.resource_subscriptions.as_deref().unwrap_or_default();
        let cancel = &context.request_context().ct;
        let subscriptions = tokio::select! {
            opened = StreamSubscriptions::open(&self.app, &caller, uris, cancel) => {
                opened.map_err(CallFailure::into_error)?
            }
            () = context.cancelled() => return Ok(()),
        };
        let sink = context.sink();
        // rmcp acknowledges the stream before it is subscribed to anything, so an update may have been missed.
        for uri in uris {
            if sink.notify_resource_updated(uri).await.is_err() {
                return Ok(());
            }
        }
        loop {
            let notified = tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.app.lifecycle.stop.cancelled() => return Ok(()),
                uri = subscriptions.updates.next() => sink.notify_resource_updated(uri).await,
                changed = changes.next() => match changed {
                    None => return Ok(()),
                    Some(List::Tools) if accepted.tools_list_changed == Some(true) => {
                        sink.notify_tool_list_changed().await
                    }
                    Some(List::Resources) if accepted.resources_list_changed == Some(true) => {
                        sink.notify_resource_list_changed().await
                    }
                    Some(List::Prompts) if accepted.prompts_list_changed == Some(true) => {
                        sink.notify_prompt_list_changed().await
                    }
                    Some(_) => Ok(()),
                },
            };
            if notified.is_err() {
                return Ok(());
            }
        }
    }
}

/// Lists depend on the caller and on servers, and change at any time.
const UNCACHED: (Option<CacheScope>, Option<u64>) = (Some(CacheScope::Private), Some(0));

/// Whether the client uses the newer era of the protocol.
fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Idle sessions are closed after this time.
pub const SESSION_IDLE: Duration = Duration::from_secs(8 * 3600);
