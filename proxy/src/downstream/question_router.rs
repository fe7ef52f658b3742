//! Our side of a connection: what the server asks goes to the client whose call it serves.
//!
//! Over HTTP a server asks on the stream of the call's answer, which says whose call it is. On standard input and output
//! nothing does, so there a question has an addressee only while all calls under way at that server are one client's.

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

/// Answers one server.
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
            Err(nobody) => return refuse(&self.server, &question, nobody),
        };
        let Some(client) = &call.client else {
            return refuse(&self.server, &question, NoAddressee::NoClient);
        };
        call.span.in_scope(|| {
            tracing::info!(server = self.server, what = question.shown(), "the server asks its client");
        });
        // A person's time isn't the server's.
        let _pauses = self.calls.pause(origin);
        let mut meta = context.meta;
        meta.remove("progressToken");
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Err(taken_back("the server took the question back")),
            () = self.calls.none_waits(origin) => Err(taken_back("the call has ended")),
            answer = client.ask(question, meta) => answer,
        }
    }
}

/// The answer to what a server asks when nobody can be asked for it.
pub(super) fn refused(
    server: &str,
    request: ServerRequest,
    nobody: NoAddressee,
) -> Result<ClientResult, ErrorData> {
    match Question::of(request) {
        Ok(question) => refuse(server, &question, nobody),
        Err(other) => no_question(*other),
    }
}

fn refuse(server: &str, question: &Question, nobody: NoAddressee) -> Result<ClientResult, ErrorData> {
    let why = nobody.to_string();
    tracing::info!(server, what = question.shown(), why, "the server can't ask anybody");
    question.refused(&why)
}

fn no_question(request: ServerRequest) -> Result<ClientResult, ErrorData> {
    match request {
        ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
        ServerRequest::CustomRequest(custom) => {
            Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, custom.method, None))
        }
        _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "not a request to clients", None)),
    }
}

fn taken_back(why: &'static str) -> ErrorData {
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
            Err(other) => no_question(*other),
        }
    }

    /// The tap hears them first, in their order.
    async fn handle_notification(
        &self,
        _: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    /// All that a client of ours may have. A server of the older era is told once, before anybody calls it; one of the
    /// newer era hears with each call what that call's client has.
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
