//! Observes all messages of a connection in wire order, which rmcp's handlers don't keep.
//!
//! Progress and log messages go from here directly to their call, so that its result can't overtake them. The tap also
//! tracks which client's calls are running.

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
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::{announcements::Announcements, client::CallingClient};

/// The progress of a call, in the server's own units.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// The call that a request is, in its extensions.
#[derive(Clone)]
pub(super) struct OpenCall {
    pub(super) client: Option<CallingClient>,
    pub(super) clock: Clock,
    /// The client's request, for the log.
    pub(super) span: Span,
    /// Cancelled when it is answered or given up.
    pub(super) over: CancellationToken,
    pub(super) progress: Option<mpsc::UnboundedSender<Progress>>,
}

/// A transport that observes its messages.
pub(super) struct Tap<T> {
    pub(super) inner: T,
    pub(super) announced: Arc<Announcements>,
    pub(super) calls: Arc<OpenCalls>,
    pub(super) probe: Probe,
}

/// `server/discover` finds the era of a server. One that starts slowly answers it after rmcp has fallen back to
/// `initialize`, and rmcp takes that answer for an invalid one to `initialize`.
#[derive(Default)]
pub(super) struct Probe {
    asked: Option<RequestId>,
    given_up: bool,
    /// It supports the newer era.
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

    /// Whether this answers the request that was given up.
    fn is_late(&self, id: Option<&RequestId>) -> bool {
        self.given_up && id.is_some() && id == self.asked.as_ref()
    }
}

/// The running calls, in the order in which they were sent.
#[derive(Default)]
pub(super) struct OpenCalls {
    sent: Mutex<Vec<SentCall>>,
    /// The number of raw calls, which have no client to ask.
    passed_through: AtomicUsize,
}

struct SentCall {
    id: RequestId,
    token: Option<ProgressToken>,
    call: OpenCall,
    last: f64,
}

impl SentCall {
    /// Whether a question from this origin may be the call's.
    fn may_ask(&self, origin: Option<&InboundStreamOrigin>) -> bool {
        match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => self.id == *id,
            _ => !self.call.over.is_cancelled(),
        }
    }
}

/// Why a question can't be routed to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAddressee {
    #[error("the server asked outside of a call")]
    NoCall,
    #[error("calls of several clients are running at the server, and it doesn't say which one it asks")]
    SeveralClients,
    #[error("the call has no client to ask")]
    NoClient,
}

impl OpenCalls {
    fn open(&self, id: RequestId, token: Option<ProgressToken>, call: OpenCall) {
        let mut calls = self.sent.lock();
        // Drops those that couldn't be sent.
        calls.retain(|sent| !sent.call.over.is_cancelled());
        calls.push(SentCall { id, token, call, last: f64::NEG_INFINITY });
    }

    fn close(&self, id: &RequestId) {
        let mut calls = self.sent.lock();
        if let Some(at) = calls.iter().position(|sent| sent.id == *id) {
            calls.remove(at).call.over.cancel();
        }
    }

    /// The call to which a message of the server belongs.
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

    /// Waits until all calls that may have asked a question have ended: over stdio the server doesn't say which one asks, and
    /// the end of another call must not withdraw the question.
    pub(super) async fn askers_ended(&self, origin: Option<&InboundStreamOrigin>) {
        let ends: Vec<CancellationToken> = {
            let calls = self.sent.lock();
            calls.iter().filter(|sent| sent.may_ask(origin)).map(|sent| sent.call.over.clone()).collect()
        };
        for end in ends {
            end.cancelled().await;
        }
    }

    /// Pauses the timeouts of the calls that may have asked: over stdio, of all.
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
            // The receiver may be gone.
            let _ = sink.send(Progress { progress, total, message });
        }
    }

    fn log(&self, message: LoggingMessageNotificationParam) {
        if let Ok(OpenCall { client: Some(client), .. }) = self.asking(None) {
            client.log(message);
        }
    }

    /// Counts a raw call until the guard is dropped.
    pub(super) fn raw_call_started(self: &Arc<Self>) -> RawCall {
        self.passed_through.fetch_add(1, Ordering::Relaxed);
        RawCall(self.clone())
    }
}

/// A running raw call.
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
                        self.announced.heard(&other);
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

    use super::{Announcements, Probe, Tap};
    use crate::downstream::subscriptions::Subscriptions;

    /// The first message that rmcp receives if the server answers `server/discover` after the fallback to `initialize`, and
    /// whether the server is known to support the newer era.
    async fn received_after_fallback(
        to_discover: Value,
        to_initialize: Value,
    ) -> (RxJsonRpcMessage<RoleClient>, bool) {
        let (ours, mut server) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(ours);
        let probe = Probe::default();
        let answered_late = Arc::clone(&probe.answered_late);
        let inner = AsyncRwTransport::<RoleClient, _, _>::new(input, output);
        let announced = Announcements::new(Subscriptions::new("slow"));
        let mut tap = Tap { inner, announced, calls: Arc::default(), probe };
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
    async fn a_late_answer_to_discover_does_not_break_the_handshake() {
        let info = json!({"name": "slow", "version": "1"});
        let unknown = json!({"error": {"code": -32601, "message": "Method not found"}});
        let greeting =
            json!({"result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}});
        let (heard, is_newer) = received_after_fallback(unknown, greeting.clone()).await;
        assert_eq!((id(&heard), is_newer), (json!(1), false));
        let discovered = json!({"result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
            "serverInfo": info, "ttlMs": 0, "cacheScope": "private",
        }});
        let (heard, is_newer) = received_after_fallback(discovered, greeting).await;
        assert_eq!((id(&heard), is_newer), (json!(1), true));
    }
}
