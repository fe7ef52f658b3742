//! An MCP client of either era, for synchronous tests.

#![expect(deprecated, reason = "sampling, roots and logging are, but servers use them")]

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, ClientConfig,
        ClientRequest, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
        ElicitationCapability, ListRootsResult, LoggingLevel, LoggingMessageNotificationParam,
        ProgressNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam, Root,
        RootsCapabilities, SamplingCapability, SamplingMessage, ServerNotification, ServerResult,
        SetLevelRequestParams, SubscriptionFilter, Tool,
    },
    service::{NotificationContext, PeerRequestOptions, RequestContext, RequestHandle, RunningService},
    transport::{
        IntoTransport, StreamableHttpClientTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::{Person, eventually, runtime};

/// The two eras of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25: initialize, a session, notifications on it.
    Sessions,
    /// 2026-07-28: stateless requests, subscriptions/listen.
    Stateless,
}

impl Era {
    pub const BOTH: [Era; 2] = [Era::Sessions, Era::Stateless];

    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Era::Sessions => ClientLifecycleMode::Initialize,
            Era::Stateless => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
        }
    }
}

/// The notifications and requests that a client receives.
#[derive(Clone, Default)]
pub(super) struct Ears {
    list_changes: Arc<AtomicUsize>,
    pub(super) resource_changes: Arc<AtomicUsize>,
    pub(super) prompt_changes: Arc<AtomicUsize>,
    pub(super) updates: Arc<Mutex<Vec<String>>>,
    progress: Arc<Mutex<Vec<ProgressNotificationParam>>>,
    logs: Arc<Mutex<Vec<Value>>>,
    person: Option<Person>,
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        if self.person.is_some() {
            info.capabilities.elicitation = Some(ElicitationCapability::default());
            info.capabilities.sampling = Some(SamplingCapability::default());
            info.capabilities.roots = Some(RootsCapabilities::default());
        }
        info
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let person = self.person.as_ref().expect("only a client with somebody is asked");
        person.elicited(&params, &context.ct).await
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let person = self.person.as_ref().expect("only a client with somebody is asked");
        person.hears(&format!("{} tokens", params.max_tokens), &context.ct).await;
        let message = SamplingMessage::assistant_text(format!("says {}", person.name()));
        Ok(CreateMessageResult::new(message, "a-model".to_owned()))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let person = self.person.as_ref().expect("only a client with somebody is asked");
        Ok(ListRootsResult::new(vec![Root::new(format!("file:///home/{}", person.name()))]))
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.logs.lock().expect("no panic while locked").push(params.data);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.list_changes.fetch_add(1, Ordering::SeqCst);
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.resource_changes.fetch_add(1, Ordering::SeqCst);
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.prompt_changes.fetch_add(1, Ordering::SeqCst);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.updates.lock().expect("no panic while locked").push(params.uri);
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress.lock().expect("no panic while locked").push(params);
    }
}

impl Ears {
    /// What comes on a stream.
    pub(super) fn hear(&self, notification: &ServerNotification) {
        match notification {
            ServerNotification::ToolListChangedNotification(_) => &self.list_changes,
            ServerNotification::ResourceListChangedNotification(_) => &self.resource_changes,
            ServerNotification::PromptListChangedNotification(_) => &self.prompt_changes,
            ServerNotification::ResourceUpdatedNotification(update) => {
                self.updates.lock().expect("no panic while locked").push(update.params.uri.clone());
                return;
            }
            other => panic!("{other:?}"),
        }
        .fetch_add(1, Ordering::SeqCst);
    }
}

/// A connected client.
pub struct Agent {
    pub(super) service: RunningService<RoleClient, Ears>,
    pub(super) ears: Ears,
    pub(super) era: Era,
    /// Its streams for updates of resources.
    pub(super) streams: Mutex<HashMap<String, JoinHandle<()>>>,
}

impl Agent {
    /// Over HTTP, without a token.
    pub fn connect(url: &str, era: Era) -> Agent {
        Agent::try_connect(url, era, None).expect("a connection")
    }

    pub fn with_token(url: &str, era: Era, token: &str) -> Agent {
        Agent::try_connect(url, era, Some(token)).expect("a connection")
    }

    /// With a person whom servers may ask.
    pub fn of_person(url: &str, era: Era, token: Option<&str>, person: &Person) -> Agent {
        let ears = Ears { person: Some(person.clone()), ..Ears::default() };
        Agent::http(url, era, token, ears).expect("a connection")
    }

    pub fn try_connect(url: &str, era: Era, token: Option<&str>) -> Result<Agent, String> {
        Agent::http(url, era, token, Ears::default())
    }

    fn http(url: &str, era: Era, token: Option<&str>, ears: Ears) -> Result<Agent, String> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.to_owned());
        config.auth_header = token.map(str::to_owned);
        config.custom_headers = HashMap::new();
        config.reinit_on_expired_session = false;
        // The transport spawns a task.
        let _inside = runtime().enter();
        Agent::with_ears(StreamableHttpClientTransport::from_config(config), era, ears)
    }

    /// Over any transport.
    pub fn over<T, E, A>(transport: T, era: Era) -> Result<Agent, String>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        Agent::with_ears(transport, era, Ears::default())
    }

    fn with_ears<T, E, A>(transport: T, era: Era, ears: Ears) -> Result<Agent, String>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let heard = ears.clone();
        runtime().block_on(async move {
            let service = ears.clone().serve_with_lifecycle(transport, era.lifecycle()).await;
            let service = service.map_err(|error| error.to_string())?;
            if era == Era::Stateless {
                let filter = SubscriptionFilter::builder()
                    .tools_list_changed()
                    .resources_list_changed()
                    .prompts_list_changed()
                    .build();
                let mut subscription = service.listen(filter).await.map_err(|error| error.to_string())?;
                tokio::spawn(async move {
                    while let Ok(Some(notification)) = subscription.next().await {
                        heard.hear(&notification);
                    }
                });
            }
            Ok(Agent { service, ears, era, streams: Mutex::default() })
        })
    }

    pub fn try_tools(&self) -> Result<Vec<Tool>, ServiceError> {
        runtime().block_on(self.service.list_tools(None)).map(|list| list.tools)
    }

    /// What the `_meta` of the list of tools says of ours.
    pub fn list_meta(&self) -> Value {
        let list = runtime().block_on(self.service.list_tools(None)).expect("a list of tools");
        list.meta.map_or(Value::Null, |meta| meta.0["pml"].clone())
    }

    /// What the proxy tells the client's model.
    pub fn instructions(&self) -> String {
        let info = self.service.peer_info().expect("the proxy's description");
        info.instructions.clone().unwrap_or_default()
    }

    pub fn tools(&self) -> Vec<Tool> {
        self.try_tools().expect("a list of tools")
    }

    pub fn tool_names(&self) -> Vec<String> {
        self.tools().into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    /// Waits until the tool is listed: a server that starts slowly is missing in the first list.
    pub fn has_tool(&self, tool: &str) {
        eventually(tool, || self.tool_names().iter().any(|name| name == tool).then_some(()));
    }

    pub fn try_call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        runtime().block_on(async {
            let handle = self.begin(tool, arguments).await?;
            match handle.await_response().await? {
                ServerResult::CallToolResult(result) => Ok(result),
                _ => Err(ServiceError::UnexpectedResponse),
            }
        })
    }

    /// A call whose questions are answered, in either era.
    pub fn converse(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = arguments.as_object().cloned();
        runtime().block_on(self.service.call_tool(params))
    }

    /// One step of such a call, with the answers and state of the last one.
    pub fn converse_once(
        &self,
        tool: &str,
        arguments: Value,
        answers: Option<Value>,
        state: Option<&str>,
    ) -> Result<Value, ServiceError> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = arguments.as_object().cloned();
        params.input_responses = answers.map(|answers| serde_json::from_value(answers).expect("an object"));
        params.request_state = state.map(str::to_owned);
        let answer = runtime().block_on(self.service.call_tool_once(params))?;
        Ok(match answer {
            CallToolResponse::Complete(result) => serde_json::to_value(result),
            CallToolResponse::InputRequired(asked) => serde_json::to_value(asked),
            other => panic!("{other:?}"),
        }
        .expect("JSON"))
    }

    /// Sends a call without waiting for its answer.
    pub fn start_call(&self, tool: &str, arguments: Value) -> RequestHandle<RoleClient> {
        runtime().block_on(self.begin(tool, arguments)).expect("a request")
    }

    async fn begin(&self, tool: &str, arguments: Value) -> Result<RequestHandle<RoleClient>, ServiceError> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = arguments.as_object().cloned();
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        self.service.send_request_with_option(request, PeerRequestOptions::no_options()).await
    }

    /// The result of a call without a protocol error.
    pub fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        self.try_call(tool, arguments).unwrap_or_else(|error| panic!("{tool}: {error}"))
    }

    /// The structured result of a call that succeeds.
    pub fn ask(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result.is_error, Some(true), "{tool}: {}", text(&result));
        result.structured_content.unwrap_or_default()
    }

    /// The message of a call that fails.
    pub fn failure(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result.is_error, Some(true), "{tool}: {}", text(&result));
        text(&result)
    }

    pub fn list_changes(&self) -> usize {
        self.ears.list_changes.load(Ordering::SeqCst)
    }

    /// Waits for more than `before` notifications of a changed list.
    pub fn hears_of_change(&self, before: usize) {
        eventually("notifications/tools/list_changed", || (self.list_changes() > before).then_some(()));
    }

    pub fn progress(&self) -> Vec<ProgressNotificationParam> {
        self.ears.progress.lock().expect("no panic while locked").clone()
    }

    /// What servers logged for this client.
    pub fn logs(&self) -> Vec<Value> {
        self.ears.logs.lock().expect("no panic while locked").clone()
    }

    pub fn set_log_level(&self, level: LoggingLevel) {
        runtime()
            .block_on(self.service.set_level(SetLevelRequestParams::new(level)))
            .expect("the level can be set");
    }

    pub fn close(self) {
        let _ = runtime().block_on(self.service.cancel());
    }
}

/// The text of a result.
pub fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| block.as_text().map(|text| text.text.clone()));
    texts.collect::<Vec<_>>().join("\n")
}
