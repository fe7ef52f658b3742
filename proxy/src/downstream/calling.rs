//! Sends one call or other request: once, with a timeout, cancellable, its answer passed on unchanged.

use std::{sync::Arc, time::Duration};

use pml_worker::Clock;
use rmcp::{
    ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientRequest, ErrorData,
        GetExtensions as _, InputRequiredResult, InputResponses, RequestMetaObject, ServerResult,
    },
    service::PeerRequestOptions,
};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{
    call::{Call, CallBody, CallContext, Input, ToolAnswer},
    client::{CallingClient, ClientEra},
    connection::{Broken, Connection, service_reason},
    error::DownstreamError,
    passthrough::{Passthrough, RawAnswer},
    pending_request::PendingRequest,
    question::Question,
    request::{Answer, Request},
    server::Server,
    tap::OpenCall,
};

/// How many times a server may ask before it answers.
const MOST_ROUNDS: usize = 10;

/// Calls a tool.
pub(super) async fn call(
    server: &Arc<Server>,
    call: &Call,
    context: &CallContext,
) -> Result<ToolAnswer, DownstreamError> {
    let calling = Calling::new(server, Outgoing::Call(call), context);
    let result = match calling.answered().await? {
        Reply::Raw(answer) => return Ok(ToolAnswer::Raw(answer)),
        Reply::Parsed(result) => *result,
    };
    let answer = match result {
        ServerResult::CallToolResult(mut result) => {
            // Older servers omit it, newer clients require it, and rmcp removes it for older clients.
            result.result_type = Some(rmcp::model::ResultType::COMPLETE);
            result.into()
        }
        ServerResult::InputRequiredResult(asked) => asked.into(),
        other => calling.other(other)?.into(),
    };
    Ok(ToolAnswer::Parsed(answer))
}

/// Sends any other request.
pub(super) async fn ask(
    server: &Arc<Server>,
    request: &Request,
    context: &CallContext,
) -> Result<Answer, DownstreamError> {
    let calling = Calling::new(server, Outgoing::Request(request), context);
    match calling.answered().await? {
        Reply::Parsed(result) => request.kind.answer(*result).map_err(|what| calling.bad_answer(what)),
        Reply::Raw(_) => Err(calling.bad_answer("it is another kind of result".to_owned())),
    }
}

/// What is sent.
#[derive(Clone, Copy)]
enum Outgoing<'a> {
    Call(&'a Call),
    Request(&'a Request),
}

/// The server's result. It is a question only if the client repeats the request.
enum Reply {
    Parsed(Box<ServerResult>),
    Raw(RawAnswer),
}

/// What came of a call on one connection.
enum SendOutcome<T> {
    Answered(T),
    SessionLost,
}

/// How the wait for an answer ended.
enum WaitOutcome<T> {
    Answered(Result<T, ServiceError>),
    Cancelled,
    TimedOut,
}

struct Calling<'a> {
    server: &'a Arc<Server>,
    outgoing: Outgoing<'a>,
    context: &'a CallContext,
    limit: Duration,
    clock: Clock,
}

impl<'a> Calling<'a> {
    fn new(server: &'a Arc<Server>, outgoing: Outgoing<'a>, context: &'a CallContext) -> Calling<'a> {
        let limit = context.timeout.unwrap_or(server.config.timeout);
        let clock = context.around.as_ref().map_or_else(|| Clock::new(limit), |around| around.part(limit));
        Calling { server, outgoing, context, limit, clock }
    }

    /// Sends it on the server's connection; once more if the server has lost our session.
    async fn answered(&self) -> Result<Reply, DownstreamError> {
        let mut connection = self.connection().await?;
        if let Some(level) = self.context.client.as_ref().and_then(CallingClient::log_level) {
            connection.log_for(level, self.limit).await;
        }
        self.clock.restart(self.limit);
        let mut input = self.context.input.clone();
        let mut is_renewed = false;
        loop {
            let sent = match (self.outgoing, &connection.passthrough) {
                (Outgoing::Call(Call { tool, body: CallBody::Raw(args), .. }), Some(passthrough))
                    if self.context.client.is_none() =>
                {
                    self.pass_through(&connection, passthrough, tool, args.as_deref()).await?
                }
                _ => self.converse(&connection, &mut input).await?,
            };
            match sent {
                SendOutcome::Answered(answer) => return Ok(answer),
                // The server rejected it because it has lost our session, so nothing was done yet.
                SendOutcome::SessionLost if !is_renewed => {
                    is_renewed = true;
                    connection.report(Broken::SessionLost);
                    self.server.outage_after(&connection).await;
                    connection = self.connection().await?;
                }
                SendOutcome::SessionLost => {
                    let (server, reason) =
                        (self.server.shown.clone(), "it loses the session again and again".to_owned());
                    return Err(DownstreamError::Down { server, reason, next_try: None });
                }
            }
        }
    }

    fn names(&self) -> (String, String) {
        let called = match self.outgoing {
            Outgoing::Call(call) => call.tool.clone(),
            Outgoing::Request(request) => request.kind.method().to_owned(),
        };
        (self.server.shown.clone(), called)
    }

    fn cancelled(&self) -> DownstreamError {
        let (server, tool) = self.names();
        DownstreamError::Cancelled { server, tool }
    }

    async fn connection(&self) -> Result<Arc<Connection>, DownstreamError> {
        tokio::select! {
            biased;
            () = self.context.cancel.cancelled() => Err(self.cancelled()),
            connection = self.server.connection() => connection,
        }
    }

    /// Repeats the call until the server answers. Its questions are answered, or returned to a client that answers them with
    /// another call.
    async fn converse(
        &self,
        connection: &Arc<Connection>,
        input: &mut Input,
    ) -> Result<SendOutcome<Reply>, DownstreamError> {
        let mut rounds = 0;
        loop {
            let asked = match self.ask(connection, self.request(input)?).await? {
                SendOutcome::Answered(ServerResult::InputRequiredResult(asked)) if !self.may_ask_back() => {
                    asked
                }
                SendOutcome::Answered(answer) => {
                    return Ok(SendOutcome::Answered(Reply::Parsed(Box::new(answer))));
                }
                SendOutcome::SessionLost => return Ok(SendOutcome::SessionLost),
            };
            rounds += 1;
            if rounds > MOST_ROUNDS {
                return Err(self.bad_answer(format!("it asked more than {MOST_ROUNDS} times")));
            }
            input.state.clone_from(&asked.request_state);
            input.responses = Some(self.answers(asked).await?);
        }
    }

    fn request(&self, input: &Input) -> Result<ClientRequest, DownstreamError> {
        let call = match self.outgoing {
            Outgoing::Request(request) => return Ok(request.kind.request(input)),
            Outgoing::Call(call) => call,
        };
        let mut params = CallToolRequestParams::new(call.tool.clone());
        params.arguments = match &call.body {
            CallBody::Parsed(args) => args.clone(),
            CallBody::Raw(args) => {
                let args = args.as_ref().map(|args| serde_json::from_str(args.get())).transpose();
                args.map_err(|error| {
                    let (server, tool) = self.names();
                    DownstreamError::BadArguments { server, tool, what: error.to_string() }
                })?
            }
        };
        params.input_responses.clone_from(&input.responses);
        params.request_state.clone_from(&input.state);
        Ok(ClientRequest::CallToolRequest(CallToolRequest::new(params)))
    }

    async fn ask(
        &self,
        connection: &Arc<Connection>,
        mut request: ClientRequest,
    ) -> Result<SendOutcome<ServerResult>, DownstreamError> {
        let _in_flight = connection.call_started();
        let over = CancellationToken::new();
        let _over = over.clone().drop_guard();
        request.extensions_mut().insert(OpenCall {
            client: self.context.client.clone(),
            clock: self.clock.clone(),
            span: tracing::Span::current(),
            over,
            progress: self.context.progress.clone(),
        });
        let options = self.options(connection);
        let mut pending = match connection.peer.send_cancellable_request(request, options).await {
            Ok(handle) => PendingRequest::new(handle),
            Err(error) => return self.failed(connection, error).await,
        };
        match self.wait(connection, pending.answer()).await {
            WaitOutcome::Answered(Ok(result)) => Ok(SendOutcome::Answered(result)),
            WaitOutcome::Answered(Err(error)) => self.failed(connection, error).await,
            WaitOutcome::Cancelled => {
                pending.cancel("cancelled by the caller");
                Err(self.cancelled())
            }
            WaitOutcome::TimedOut => {
                pending.cancel("timeout");
                Err(self.timed_out())
            }
        }
    }

    /// Sends the raw arguments, bypassing rmcp.
    async fn pass_through(
        &self,
        connection: &Arc<Connection>,
        passthrough: &Passthrough,
        tool: &str,
        args: Option<&RawValue>,
    ) -> Result<SendOutcome<Reply>, DownstreamError> {
        let _in_flight = connection.call_started();
        let _raw = connection.calls.raw_call_started();
        match self.wait(connection, passthrough.call(tool, args)).await {
            WaitOutcome::Answered(Ok(answer)) => Ok(SendOutcome::Answered(Reply::Raw(answer))),
            WaitOutcome::Answered(Err(error)) => self.failed(connection, error).await,
            WaitOutcome::Cancelled => Err(self.cancelled()),
            WaitOutcome::TimedOut => Err(self.timed_out()),
        }
    }

    async fn wait<T>(
        &self,
        connection: &Connection,
        answer: impl Future<Output = Result<T, ServiceError>>,
    ) -> WaitOutcome<T> {
        tokio::select! {
            biased;
            answer = answer => WaitOutcome::Answered(answer),
            () = connection.ended.cancelled() => WaitOutcome::Answered(Err(ServiceError::TransportClosed)),
            () = self.context.cancel.cancelled() => WaitOutcome::Cancelled,
            () = self.clock.ran_out() => WaitOutcome::TimedOut,
        }
    }

    fn timed_out(&self) -> DownstreamError {
        let (server, tool) = self.names();
        DownstreamError::Timeout { server, tool, limit: self.limit }
    }

    async fn failed<T>(
        &self,
        connection: &Arc<Connection>,
        error: ServiceError,
    ) -> Result<SendOutcome<T>, DownstreamError> {
        let (server, tool) = self.names();
        match Broken::of(&error) {
            Some(Broken::SessionLost) => return Ok(SendOutcome::SessionLost),
            Some(broken @ Broken::Unreachable(_)) => {
                connection.report(broken);
                let outage = self.server.outage_after(connection).await;
                let reason = connection.redactor.clean(&service_reason(&error));
                return Err(match outage {
                    Some(outage) => outage.error(&server),
                    None => DownstreamError::Down { server, reason, next_try: None },
                });
            }
            None => {}
        }
        match error {
            ServiceError::McpError(ErrorData { code, message, data, .. }) => Err(DownstreamError::Refused {
                server,
                tool,
                code: code.0,
                message: message.into_owned(),
                data: data.map(Box::new),
            }),
            ServiceError::TransportClosed => {
                let reason = if self.server.is_closing() {
                    "the proxy is shutting down".to_owned()
                } else {
                    let outage = self.server.outage_after(connection).await;
                    outage.map_or_else(
                        || "the connection was closed".to_owned(),
                        |outage| outage.reason.clone(),
                    )
                };
                Err(DownstreamError::Lost { server, tool, reason })
            }
            ServiceError::UnexpectedResponse => {
                let what = "it is another kind of result".to_owned();
                Err(DownstreamError::BadAnswer { server, tool, what })
            }
            error => {
                let reason = connection.redactor.clean(&service_reason(&error));
                Err(DownstreamError::Lost { server, tool, reason })
            }
        }
    }

    /// Since 2026-07-28 each call carries its client's capabilities and log level.
    fn options(&self, connection: &Connection) -> PeerRequestOptions {
        let options = PeerRequestOptions::no_options();
        if connection.info.protocol_version.has_initialize() {
            return options;
        }
        let client = self.context.client.as_ref().filter(|_| self.can_answer());
        let mut meta = RequestMetaObject::new();
        meta.set_client_capabilities(
            client.map_or_else(ClientCapabilities::default, CallingClient::capabilities),
        );
        if let Some(level) = self.context.client.as_ref().and_then(CallingClient::log_level) {
            meta.set_log_level(level);
        }
        options.with_meta(meta)
    }

    /// Whether the client can be asked, by a request or in an answer.
    fn can_answer(&self) -> bool {
        let client = self.context.client.as_ref();
        client.is_some_and(|client| self.context.may_ask_back || client.era() == ClientEra::Asked)
    }

    fn may_ask_back(&self) -> bool {
        let client = self.context.client.as_ref();
        self.context.may_ask_back && client.is_some_and(|client| client.era() == ClientEra::AsksAgain)
    }

    /// The client's answer to each question; without a client, a refusal.
    async fn answers(&self, asked: InputRequiredResult) -> Result<InputResponses, DownstreamError> {
        let _pause = self.clock.pause();
        let mut responses = InputResponses::new();
        for (key, input) in asked.input_requests.unwrap_or_default() {
            let Some(question) = Question::of_input(input) else {
                return Err(self.bad_answer("it asks an unknown kind of question".to_owned()));
            };
            let answer = match &self.context.client {
                Some(client) => tokio::select! {
                    answer = client.ask(question, RequestMetaObject::new()) => answer,
                    () = self.context.cancel.cancelled() => return Err(self.cancelled()),
                },
                None => question.refused("the call has no client to ask"),
            };
            let answer = answer.map_err(|error| {
                self.bad_answer(format!("its question can't be answered: {}", error.message))
            })?;
            responses.insert(key, serde_json::to_value(answer).unwrap_or_default());
        }
        Ok(responses)
    }

    fn bad_answer(&self, what: String) -> DownstreamError {
        let (server, tool) = self.names();
        DownstreamError::BadAnswer { server, tool, what }
    }

    fn other(&self, answer: ServerResult) -> Result<CallToolResult, DownstreamError> {
        let what = match answer {
            // `{}` is success without content.
            ServerResult::EmptyResult(_) => return Ok(CallToolResult::default()),
            ServerResult::CustomResult(custom) => match serde_json::from_value::<CallToolResult>(custom.0) {
                Ok(result) => return Ok(result),
                Err(error) => error.to_string(),
            },
            ServerResult::CreateTaskResult(_) => "it created a task, which wasn't requested".to_owned(),
            _ => "it is another kind of result".to_owned(),
        };
        Err(self.bad_answer(what))
    }
}
