//! Routes a server's questions to the client whose call it is working on.
//!
//! Over HTTP a server asks on the stream of a call, which identifies the client. Over stdio nothing does: a question can be
//! routed only while all running calls at that server are one client's.

use std::sync::Arc;

use rmcp::{
    RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ClientResult, ElicitationCapability, ErrorCode, ErrorData,
        FormElicitationCapability, Implementation, JsonObject, ProtocolVersion, RootsCapabilities,
        SamplingCapability, ServerNotification, ServerRequest, UrlElicitationCapability,
    },
    service::{InboundStreamOrigin, NotificationContext, RequestContext, Service},
};

use super::{
    question::Question,
    tap::{NoAddressee, OpenCalls},
};

/// Handles the requests of one server.
pub(super) struct QuestionRouter {
    pub(super) server: String,
    pub(super) calls: Arc<OpenCalls>,
}

impl QuestionRouter {
    async fn ask(
        &self,
        question: Question,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        let origin = context.extensions.get::<InboundStreamOrigin>();
        let call = match self.calls.asking(origin) {
            Ok(call) => call,
            Err(why) => return refuse(&self.server, &question, why),
        };
        let Some(client) = &call.client else {
            return refuse(&self.server, &question, NoAddressee::NoClient);
        };
        call.span.in_scope(|| {
            tracing::info!(server = self.server, what = question.shown(), "asking the client for the server");
        });
        // Timeouts don't run while a person is asked.
        let _pauses = self.calls.pause(origin);
        let mut meta = context.meta;
        meta.remove("progressToken");
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Err(withdrawn("the server withdrew the question")),
            () = self.calls.askers_ended(origin) => Err(withdrawn("the call has ended")),
            answer = client.ask(question, meta) => answer,
        }
    }
}

/// The answer to a server's request when nobody can be asked.
pub(super) fn refused(
    server: &str,
    request: ServerRequest,
    why: NoAddressee,
) -> Result<ClientResult, ErrorData> {
    match Question::of(request) {
        Ok(question) => refuse(server, &question, why),
        Err(other) => answer_other(*other),
    }
}

fn refuse(server: &str, question: &Question, why: NoAddressee) -> Result<ClientResult, ErrorData> {
    let why = why.to_string();
    tracing::info!(server, what = question.shown(), why, "declined a question of the server");
    question.refused(&why)
}

fn answer_other(request: ServerRequest) -> Result<ClientResult, ErrorData> {
    match request {
        ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
        ServerRequest::CustomRequest(custom) => {
            Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, custom.method, None))
        }
        _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "not a request for clients", None)),
    }
}

fn withdrawn(why: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None)
}

impl Service<RoleClient> for QuestionRouter {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        match Question::of(request) {
            Ok(question) => self.ask(question, context).await,
            Err(other) => answer_other(*other),
        }
    }

    /// The tap has handled them, in order.
    async fn handle_notification(
        &self,
        _: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    /// All capabilities that a client may have: an older server gets them once, before any call. A newer server gets those
    /// of the client with each call.
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::new())
                .with_url(UrlElicitationCapability::new()),
        );
        let mut sampling = SamplingCapability::default();
        sampling.tools = Some(JsonObject::new());
        capabilities.sampling = Some(sampling);
        capabilities.roots = Some(RootsCapabilities::default());
        ClientConfig::new(capabilities, Implementation::new("pml", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
