//! Sees every message of a connection in the order of the wire, which rmcp's handlers don't keep.
//!
//! Progress goes from here straight to the call that it belongs to, before the call's result can overtake it; it never
//! goes backwards and never arrives after the result. So do log messages. And it knows whose calls are under way.

#![expect(deprecated, reason = "logging is, but servers use it")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use pml_worker::{Clock, Pause};
use rmcp::{
    RoleClient,
    model::{
        ClientNotification, ClientRequest, GetExtensions as _, GetMeta as _, JsonRpcMessage,
        LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, RequestId,
        ServerNotification, ServerResult,
    },
    service::{InboundStreamOrigin, RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::client::CallingClient;

/// How far a call is, in the server's own measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Only grows.
    pub progress: f64,
    /// What it grows to, if known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// Put into a request's extensions: the call that it is.
#[derive(Clone)]
pub(super) struct OpenCall {
    pub(super) client: Option<CallingClient>,
    pub(super) clock: Clock,
    /// For the log: the request that it belongs to.
    pub(super) span: Span,
    /// Cancelled when it was answered or given up.
    pub(super) over: CancellationToken,
    pub(super) progress: Option<mpsc::UnboundedSender<Progress>>,
}

/// A transport with an ear.
pub(super) struct Tap<T> {
    pub(super) inner: T,
    pub(super) tools_changed: Arc<Notify>,
    pub(super) calls: Arc<OpenCalls>,
    pub(super) probe: Probe,
}

/// Which era a server is of is asked with `server/discover`. One that is slow to start answers when the wait for that is
/// over and it has been greeted in the older way. rmcp takes that answer for a wrong one to the greeting.
#[derive(Default)]
pub(super) struct Probe {
    asked: Option<RequestId>,
    given_up: bool,
    /// It does know the newer era.
    pub(super) answered_late: Arc<AtomicBool>,
}

impl Probe {
    fn sends(&mut self, request: &ClientRequest, id: &RequestId) {
        match request {
            ClientRequest::DiscoverRequest(_) => self.asked = Some(id.clone()),
            ClientRequest::InitializeRequest(_) => self.given_up = self.asked.is_some(),
            _ => {}
        }
    }

    /// Whether this is an answer that nobody waits for any more.
    fn is_late(&self, id: Option<&RequestId>) -> bool {
        self.given_up && id.is_some() && id == self.asked.as_ref()
    }
}

/// The calls under way, as they were sent.
#[derive(Default)]
pub(super) struct OpenCalls {
    sent: Mutex<Vec<SentCall>>,
    /// Those that go past rmcp. NoAddressee can be asked for them.
    passed_through: AtomicUsize,
}

struct SentCall {
    id: RequestId,
    token: Option<ProgressToken>,
    call: OpenCall,
    last: f64,
}

impl SentCall {
    /// Whether a question that came so may be this call's.
    fn may_ask(&self, origin: Option<&InboundStreamOrigin>) -> bool {
        match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => self.id == *id,
            _ => !self.call.over.is_cancelled(),
        }
    }
}

/// Why a question has no addressee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAddressee {
    #[error("the server asked outside of a call")]
    NoCall,
    #[error("calls of several clients are under way at the server, and it doesn't say which one it asks")]
    SeveralClients,
    #[error("the call has no client to be asked")]
    NoClient,
}

impl OpenCalls {
    fn open(&self, id: RequestId, token: Option<ProgressToken>, call: OpenCall) {
        let mut calls = self.sent.lock();
        // Those that never got an answer, because they couldn't be sent.
        calls.retain(|sent| !sent.call.over.is_cancelled());
        calls.push(SentCall { id, token, call, last: f64::NEG_INFINITY });
    }

    fn close(&self, id: &RequestId) {
        let mut calls = self.sent.lock();
        if let Some(at) = calls.iter().position(|sent| sent.id == *id) {
            calls.remove(at).call.over.cancel();
        }
    }

    /// The call during which the server says something.
    pub(super) fn asking(&self, origin: Option<&InboundStreamOrigin>) -> Result<OpenCall, NoAddressee> {
        let calls = self.sent.lock();
        if let Some(InboundStreamOrigin::OutboundRequest(id)) = origin {
            let sent = calls.iter().find(|sent| sent.id == *id);
            return sent.map(|sent| sent.call.clone()).ok_or(NoAddressee::NoCall);
        }
        let mut open = calls.iter().rev().map(|sent| &sent.call).filter(|call| !call.over.is_cancelled());
        let has_raw_calls = self.passed_through.load(Ordering::Relaxed) > 0;
        let newest =
            open.next().ok_or(if has_raw_calls { NoAddressee::NoClient } else { NoAddressee::NoCall })?;
        let session = |call: &OpenCall| call.client.as_ref().map(CallingClient::session);
        if !has_raw_calls && open.all(|call| session(call) == session(newest)) {
            Ok(newest.clone())
        } else {
            Err(NoAddressee::SeveralClients)
        }
    }

    /// Until none of the calls that may be waiting for what the server asks is under way: behind stdio it doesn't say which
    /// one it is, and the end of another must not take its question back.
    pub(super) async fn none_waits(&self, origin: Option<&InboundStreamOrigin>) {
        let ends: Vec<CancellationToken> = {
            let calls = self.sent.lock();
            calls.iter().filter(|sent| sent.may_ask(origin)).map(|sent| sent.call.over.clone()).collect()
        };
        for end in ends {
            end.cancelled().await;
        }
    }

    /// Stops the time of the calls that may be waiting for what the server asks: if it doesn't say which, of all.
    pub(super) fn pause(&self, origin: Option<&InboundStreamOrigin>) -> Vec<Pause> {
        let calls = self.sent.lock();
        calls.iter().filter(|sent| sent.may_ask(origin)).map(|sent| sent.call.clock.pause()).collect()
    }

    fn progress(&self, progress: ProgressNotificationParam) {
        let mut calls = self.sent.lock();
        let of_token = |sent: &&mut SentCall| sent.token.as_ref() == Some(&progress.progress_token);
        let Some(sent) = calls.iter_mut().find(of_token) else { return };
        if let Some(sink) = &sent.call.progress
            && progress.progress > sent.last
        {
            sent.last = progress.progress;
            let ProgressNotificationParam { progress, total, message, .. } = progress;
            // NoAddressee may be listening any more.
            let _ = sink.send(Progress { progress, total, message });
        }
    }

    fn log(&self, message: LoggingMessageNotificationParam) {
        if let Ok(OpenCall { client: Some(client), .. }) = self.asking(None) {
            client.log(message);
        }
    }

    /// Counts a raw call while the guard lives.
    pub(super) fn raw_call_started(self: &Arc<Self>) -> RawCall {
        self.passed_through.fetch_add(1, Ordering::Relaxed);
        RawCall(self.clone())
    }
}

/// A raw call that is running.
pub(super) struct RawCall(Arc<OpenCalls>);

impl Drop for RawCall {
    fn drop(&mut self) {
        self.0.passed_through.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tap<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        match &mut message {
            JsonRpcMessage::Request(request) => {
                self.probe.sends(&request.request, &request.id);
                if let Some(call) = request.request.extensions_mut().remove::<OpenCall>() {
                    let token = request.request.get_meta().get_progress_token();
                    self.calls.open(request.id.clone(), token, call);
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.calls.close(id);
                }
            }
            _ => {}
        }
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            match message {
                JsonRpcMessage::Notification(notification) => match notification.notification {
                    ServerNotification::ProgressNotification(progress) => {
                        self.calls.progress(progress.params);
                    }
                    ServerNotification::LoggingMessageNotification(message) => {
                        self.calls.log(message.params);
                    }
                    other => {
                        if matches!(other, ServerNotification::ToolListChangedNotification(_)) {
                            self.tools_changed.notify_one();
                        }
                        return Some(JsonRpcMessage::notification(other));
                    }
                },
                JsonRpcMessage::Response(response) if self.probe.is_late(Some(&response.id)) => {
                    let knows = matches!(response.result, ServerResult::DiscoverResult(_));
                    self.probe.answered_late.store(knows, Ordering::Relaxed);
                }
                JsonRpcMessage::Error(error) if self.probe.is_late(error.id.as_ref()) => {}
                JsonRpcMessage::Response(response) => {
                    self.calls.close(&response.id);
                    return Some(JsonRpcMessage::Response(response));
                }
                JsonRpcMessage::Error(error) => {
                    if let Some(id) = &error.id {
                        self.calls.close(id);
                    }
                    return Some(JsonRpcMessage::Error(error));
                }
                request @ JsonRpcMessage::Request(_) => return Some(request),
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::Ordering};

    use rmcp::{
        RoleClient,
        service::RxJsonRpcMessage,
        transport::{Transport as _, async_rw::AsyncRwTransport},
    };
    use serde_json::{Value, json};
    use tokio::io::AsyncWriteExt as _;

    use super::{Probe, Tap};

    /// What is heard when the wait for `server/discover` is over, the server was greeted with `initialize`, and then
    /// answers both; and whether it is known to be of the newer era.
    async fn heard_late(to_discover: Value, to_initialize: Value) -> (RxJsonRpcMessage<RoleClient>, bool) {
        let (ours, mut server) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(ours);
        let probe = Probe::default();
        let answered_late = Arc::clone(&probe.answered_late);
        let inner = AsyncRwTransport::<RoleClient, _, _>::new(input, output);
        let mut tap = Tap { inner, tools_changed: Arc::default(), calls: Arc::default(), probe };
        let info = json!({"name": "test", "version": "1"});
        let initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        for (id, (method, params)) in
            [("server/discover", json!({})), ("initialize", initialize)].into_iter().enumerate()
        {
            let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            tap.send(serde_json::from_value(message).unwrap()).await.unwrap();
        }
        for (id, mut answer) in [to_discover, to_initialize].into_iter().enumerate() {
            (answer["jsonrpc"], answer["id"]) = (json!("2.0"), json!(id));
            server.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
        (tap.receive().await.unwrap(), answered_late.load(Ordering::Relaxed))
    }

    fn id(message: &RxJsonRpcMessage<RoleClient>) -> Value {
        serde_json::to_value(message).unwrap()["id"].clone()
    }

    #[tokio::test]
    async fn a_server_that_is_slow_to_start_is_greeted_all_the_same() {
        let info = json!({"name": "slow", "version": "1"});
        let unknown = json!({"error": {"code": -32601, "message": "Method not found"}});
        let greeting =
            json!({"result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}});
        let (heard, is_newer) = heard_late(unknown, greeting.clone()).await;
        assert_eq!((id(&heard), is_newer), (json!(1), false));
        let discovered = json!({"result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
            "serverInfo": info, "ttlMs": 0, "cacheScope": "private",
        }});
        let (heard, is_newer) = heard_late(discovered, greeting).await;
        assert_eq!((id(&heard), is_newer), (json!(1), true));
    }
}
