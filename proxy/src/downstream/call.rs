//! One call of a tool: sent once, bounded in time, cancellable, its answer passed on as it is.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ElicitResult,
        ElicitationAction, ErrorData, InputRequest, InputRequiredResult, InputResponses, JsonObject,
        ServerResult,
    },
    service::{PeerRequestOptions, RequestHandle},
    transport::streamable_http_client::StreamableHttpError,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    connection::{Broken, Connection, service_reason, transport_reason},
    error::DownstreamError,
    http::HttpError,
    server::Server,
    tap::{Progress, ProgressSink},
};

/// How often a server may ask back before it answers.
const MOST_ROUNDS: usize = 10;

/// What belongs to one call.
#[derive(Default)]
pub struct CallContext {
    /// Stops the call; the server is told.
    pub cancel: CancellationToken,
    /// Where its progress goes.
    pub progress: Option<mpsc::UnboundedSender<Progress>>,
    /// How long it may take after it was sent, progress or not; otherwise as the server's entry says.
    pub timeout: Option<Duration>,
    /// For the log.
    pub request_id: String,
}

/// Calls a tool. A call that was sent is never sent again.
pub(super) async fn call(
    server: &Arc<Server>,
    tool: &str,
    args: Option<JsonObject>,
    context: &CallContext,
) -> Result<CallToolResult, DownstreamError> {
    let call = Call { server, tool, context, limit: context.timeout.unwrap_or(server.config.timeout) };
    let mut params = CallToolRequestParams::new(tool.to_owned());
    params.arguments = args;
    let mut connection = call.connection().await?;
    let deadline = tokio::time::Instant::now() + call.limit;
    let mut renewed = false;
    let mut rounds = 0;
    loop {
        let answer = match call.ask(&connection, params.clone(), deadline).await? {
            // The server has refused it unread, because it doesn't know our session: nothing was done yet.
            Answer::SessionLost if !renewed => {
                renewed = true;
                connection.report(Broken::SessionLost);
                server.outage_after(&connection).await;
                connection = call.connection().await?;
                continue;
            }
            Answer::SessionLost => {
                let reason = "it forgets the session again and again".to_owned();
                return Err(DownstreamError::Down { server: server.name.clone(), reason, next_try: None });
            }
            Answer::Result(answer) => answer,
        };
        match *answer {
            ServerResult::CallToolResult(mut result) => {
                // Older servers leave it out, newer clients must have it, and for older clients rmcp takes it away.
                result.result_type = Some(rmcp::model::ResultType::COMPLETE);
                return Ok(result);
            }
            ServerResult::InputRequiredResult(asked) if rounds < MOST_ROUNDS => {
                rounds += 1;
                let (responses, state) = call.decline(asked)?;
                params.input_responses = Some(responses);
                params.request_state = state;
            }
            other => return call.other(other),
        }
    }
}

/// What the error says about the connection, if anything.
pub(super) fn breakage(error: &ServiceError) -> Option<Broken> {
    match error {
        ServiceError::TransportSend(error) => match error.error.downcast_ref::<HttpError>()? {
            StreamableHttpError::SessionExpired => Some(Broken::SessionLost),
            StreamableHttpError::Client(client) if client.is_connect() => {
                Some(Broken::Unreachable(transport_reason(error.error.as_ref())))
            }
            _ => None,
        },
        _ => None,
    }
}

enum Answer {
    Result(Box<ServerResult>),
    SessionLost,
}

struct Call<'a> {
    server: &'a Arc<Server>,
    tool: &'a str,
    context: &'a CallContext,
    limit: Duration,
}

impl Call<'_> {
    fn names(&self) -> (String, String) {
        (self.server.name.clone(), self.tool.to_owned())
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

    async fn ask(
        &self,
        connection: &Arc<Connection>,
        params: CallToolRequestParams,
        deadline: tokio::time::Instant,
    ) -> Result<Answer, DownstreamError> {
        let _in_flight = connection.call_started();
        let mut request = CallToolRequest::new(params);
        if let Some(progress) = &self.context.progress {
            request.extensions.insert(ProgressSink(progress.clone()));
        }
        let request = ClientRequest::CallToolRequest(request);
        let sent = connection.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut waiting = match sent {
            Ok(handle) => Waiting(Some(handle)),
            Err(error) => return self.failed(connection, error).await,
        };
        tokio::select! {
            biased;
            answer = waiting.answer() => match answer {
                Ok(result) => Ok(Answer::Result(Box::new(result))),
                Err(error) => self.failed(connection, error).await,
            },
            () = connection.ended.cancelled() => self.failed(connection, ServiceError::TransportClosed).await,
            () = self.context.cancel.cancelled() => {
                waiting.cancel("the caller cancelled it");
                Err(self.cancelled())
            }
            () = tokio::time::sleep_until(deadline) => {
                waiting.cancel("it took too long");
                let (server, tool) = self.names();
                Err(DownstreamError::Timeout { server, tool, limit: self.limit })
            }
        }
    }

    async fn failed(
        &self,
        connection: &Arc<Connection>,
        error: ServiceError,
    ) -> Result<Answer, DownstreamError> {
        let (server, tool) = self.names();
        match breakage(&error) {
            Some(Broken::SessionLost) => return Ok(Answer::SessionLost),
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
                let what = "it has another form".to_owned();
                Err(DownstreamError::BadAnswer { server, tool, what })
            }
            error => {
                let reason = connection.redactor.clean(&service_reason(&error));
                Err(DownstreamError::Lost { server, tool, reason })
            }
        }
    }

    /// Nobody is there to be asked: the answer is the one of a person who says no.
    fn decline(
        &self,
        asked: InputRequiredResult,
    ) -> Result<(InputResponses, Option<String>), DownstreamError> {
        let mut responses = InputResponses::new();
        for (key, request) in asked.input_requests.unwrap_or_default() {
            let response = match request {
                InputRequest::Elicitation(_) => {
                    serde_json::to_value(ElicitResult::new(ElicitationAction::Decline)).ok()
                }
                InputRequest::ListRoots(_) => Some(serde_json::json!({"roots": []})),
                _ => None,
            };
            let Some(response) = response else {
                let (server, tool) = self.names();
                let what = "it asks for a language model (sampling), which isn't available here".to_owned();
                return Err(DownstreamError::BadAnswer { server, tool, what });
            };
            responses.insert(key, response);
        }
        Ok((responses, asked.request_state))
    }

    fn other(&self, answer: ServerResult) -> Result<CallToolResult, DownstreamError> {
        let what = match answer {
            // `{}` says that it worked and that there is nothing to say.
            ServerResult::EmptyResult(_) => return Ok(CallToolResult::default()),
            ServerResult::CustomResult(custom) => match serde_json::from_value::<CallToolResult>(custom.0) {
                Ok(result) => return Ok(result),
                Err(error) => error.to_string(),
            },
            ServerResult::InputRequiredResult(_) => format!("it asked back more than {MOST_ROUNDS} times"),
            ServerResult::CreateTaskResult(_) => "it made a task, which wasn't asked for".to_owned(),
            _ => "it has another form".to_owned(),
        };
        let (server, tool) = self.names();
        Err(DownstreamError::BadAnswer { server, tool, what })
    }
}

/// A request whose answer is awaited. Dropped before the answer came, it cancels the request.
struct Waiting(Option<RequestHandle<RoleClient>>);

impl Waiting {
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.0 else { return Err(ServiceError::TransportClosed) };
        let answer = (&mut handle.rx).await;
        self.0 = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }

    fn cancel(&mut self, reason: &str) {
        if let Some(handle) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let reason = Some(reason.to_owned());
            // Not awaited: a server that hangs may not even read it.
            runtime.spawn(async move { drop(handle.cancel(reason).await) });
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.cancel("the caller is gone");
    }
}
