//! A session's calls of servers' tools, taken out before the session's own tasks pass them from one to the next.
//!
//! Only calls that need nothing of the session: they report no progress, and their client can't be asked anything.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use http::request::Parts;
use rmcp::{
    model::{
        CallToolRequest, ClientJsonRpcMessage, ClientNotification, ClientRequest, GetMeta as _,
        JsonRpcMessage, JsonRpcRequest, RequestId, ServerJsonRpcMessage, ServerResult,
    },
    transport::streamable_http_server::session::SessionId,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    app::App,
    handler::call_server_tool,
    run::{Job, Steps, ToolPlan},
    scope::Caller,
    tools::known::ServerTool,
};

/// The calls under way, by which they can be cancelled.
#[derive(Default)]
pub(super) struct DirectCalls(Mutex<HashMap<(SessionId, RequestId), CancellationToken>>);

/// The answer, or nothing if the call is cancelled.
pub(super) type Answer = oneshot::Receiver<ServerJsonRpcMessage>;

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
        let (sender, answer) = oneshot::channel();
        let job = Job { app: app.clone(), caller, steps: Steps::default(), cancel: cancel.clone() };
        let work = async move {
            let _running = running;
            let (app, started) = (job.app.clone(), Instant::now());
            let mut result = call_server_tool(job, plan).await;
            app.metrics.called("tool", result.is_error != Some(true), started.elapsed());
            // Clients that have sessions don't know it.
            result.result_type = None;
            if !cancel.is_cancelled() {
                let result = ServerResult::CallToolResult(result);
                let _ = sender.send(ServerJsonRpcMessage::response(result, id));
            }
        };
        // A task of its own: it goes on and is counted when its client has gone.
        app.calls.spawn(work.instrument(span));
        Ok(answer)
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
