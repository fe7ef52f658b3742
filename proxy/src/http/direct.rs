//! A session's calls of servers' tools, taken out before the session's own tasks pass them from one to the next.
//!
//! Only calls that need nothing of the session: they report no progress, and their client can't be asked anything and wants
//! no log messages.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Instant,
};

use futures_util::{FutureExt, future::BoxFuture};
use http::request::Parts;
use rmcp::{
    model::{
        CallToolRequest, CallToolResponse, ClientJsonRpcMessage, ClientNotification, ClientRequest,
        GetMeta as _, JsonRpcMessage, JsonRpcRequest, RequestId, ServerJsonRpcMessage,
    },
    transport::streamable_http_server::session::SessionId,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    app::App,
    handler::{call_plainly, is_success},
    run::{Job, Steps, ToolPlan},
    scope::Caller,
    tools::known::ServerTool,
};

/// The calls under way, by which they can be cancelled.
#[derive(Default)]
pub(super) struct DirectCalls(Mutex<HashMap<(SessionId, RequestId), CancellationToken>>);

/// A call under way; its answer, or nothing if it is cancelled. It runs in the task of whoever waits for the answer, so
/// that nothing is handed over, and in one of its own when nobody waits any more: it goes on and is counted.
pub(super) struct Answer {
    app: Arc<App>,
    /// Locked by nobody: it makes the future one that may be looked at from other threads.
    call: Option<Mutex<BoxFuture<'static, Option<ServerJsonRpcMessage>>>>,
}

impl Future for Answer {
    type Output = Option<ServerJsonRpcMessage>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(call) = &mut self.call else { return Poll::Ready(None) };
        let call = call.get_mut().unwrap_or_else(PoisonError::into_inner);
        let answer = ready!(call.as_mut().poll(context));
        self.call = None;
        Poll::Ready(answer)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.app.calls.spawn(call.into_inner().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl DirectCalls {
    /// Starts the call that the message is; or gives the message back.
    pub(super) fn start(
        self: &Arc<Self>,
        app: &Arc<App>,
        session: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<Answer, Box<ClientJsonRpcMessage>> {
        if !needs_nothing(&message) {
            return Err(Box::new(message));
        }
        let JsonRpcMessage::Request(JsonRpcRequest {
            id,
            request: ClientRequest::CallToolRequest(mut call),
            ..
        }) = message
        else {
            return Err(Box::new(message));
        };
        let Some((caller, tool)) = direct(app, &call) else {
            return Err(Box::new(ClientJsonRpcMessage::request(ClientRequest::CallToolRequest(call), id)));
        };
        let plan = ToolPlan { server: tool.server, tool: tool.tool, args: call.params.arguments.take() };
        let cancel = CancellationToken::new();
        let running = Running { calls: self.clone(), key: (session.clone(), id.clone()) };
        self.lock().insert(running.key.clone(), cancel.clone());
        let span =
            tracing::info_span!("call", request_id = caller.request_id, scope = caller.scope().place());
        let job =
            Job { app: app.clone(), caller, client: None, steps: Steps::default(), cancel: cancel.clone() };
        let work = async move {
            let _running = running;
            let (app, started) = (job.app.clone(), Instant::now());
            let mut answered = call_plainly(job, plan).await;
            app.metrics.called("tool", is_success(&answered), started.elapsed());
            if let Ok(CallToolResponse::Complete(result)) = &mut answered {
                // Clients that have sessions don't know it.
                result.result_type = None;
            }
            (!cancel.is_cancelled()).then(|| match answered {
                Ok(answer) => ServerJsonRpcMessage::response(answer.into(), id),
                Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
            })
        };
        let call = app.calls.track_future(work.instrument(span)).boxed();
        Ok(Answer { app: app.clone(), call: Some(Mutex::new(call)) })
    }

    /// Whether the message cancels one of these calls, which it then does.
    pub(super) fn cancels(&self, session: &SessionId, message: &ClientJsonRpcMessage) -> bool {
        let JsonRpcMessage::Notification(notification) = message else { return false };
        let ClientNotification::CancelledNotification(cancelled) = &notification.notification else {
            return false;
        };
        let Some(id) = cancelled.params.request_id.clone() else { return false };
        let running = self.lock().get(&(session.clone(), id)).cloned();
        running.inspect(CancellationToken::cancel).is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(SessionId, RequestId), CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it is a call that tells nothing on its way, and answers no question of an earlier one.
fn needs_nothing(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    let ClientRequest::CallToolRequest(call) = &request.request else { return false };
    request.request.get_meta().get_progress_token().is_none()
        && call.params.input_responses.is_none()
        && call.params.request_state.is_none()
}

/// Who calls which tool, if that is known.
fn direct(app: &App, call: &CallToolRequest) -> Option<(Caller, ServerTool)> {
    if app.is_draining() {
        return None;
    }
    let caller = call.extensions.get::<Parts>()?.extensions.get::<Caller>()?.clone();
    let tool = app.known.server_tool(caller.scope(), &call.params.name)?;
    Some((caller, tool))
}

/// Forgets the call when it has ended.
struct Running {
    calls: Arc<DirectCalls>,
    key: (SessionId, RequestId),
}

impl Drop for Running {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.key);
    }
}
