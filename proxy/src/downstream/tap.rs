//! Sees every message of a connection in the order of the wire, which rmcp's handlers don't keep.
//!
//! Progress goes from here straight to the call that it belongs to, before the call's result can overtake it; it never
//! goes backwards and never arrives after the result.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    RoleClient,
    model::{
        ClientNotification, GetExtensions as _, GetMeta as _, JsonRpcMessage, ProgressNotificationParam,
        ProgressToken, RequestId, ServerNotification,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::{Notify, mpsc};

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

/// Put into a request's extensions: where its progress goes.
#[derive(Clone)]
pub(super) struct ProgressSink(pub(super) mpsc::UnboundedSender<Progress>);

/// A transport with an ear.
pub(super) struct Tap<T> {
    pub(super) inner: T,
    pub(super) tools_changed: Arc<Notify>,
    pub(super) calls: Arc<Calls>,
}

/// The calls that want their progress.
#[derive(Default)]
pub(super) struct Calls(Mutex<HashMap<RequestId, Listener>>);

struct Listener {
    token: ProgressToken,
    sink: ProgressSink,
    last: f64,
}

impl Calls {
    fn open(&self, id: RequestId, token: ProgressToken, sink: ProgressSink) {
        self.lock().insert(id, Listener { token, sink, last: f64::NEG_INFINITY });
    }

    fn close(&self, id: &RequestId) {
        self.lock().remove(id);
    }

    fn progress(&self, progress: ProgressNotificationParam) {
        let mut calls = self.lock();
        let Some(call) = calls.values_mut().find(|call| call.token == progress.progress_token) else {
            return;
        };
        if progress.progress > call.last {
            call.last = progress.progress;
            let ProgressNotificationParam { progress, total, message, .. } = progress;
            // Nobody may be listening any more.
            let _ = call.sink.0.send(Progress { progress, total, message });
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
                let sink = request.request.extensions_mut().remove::<ProgressSink>();
                if let (Some(sink), Some(token)) = (sink, request.request.get_meta().get_progress_token()) {
                    self.calls.open(request.id.clone(), token, sink);
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
                    other => {
                        if matches!(other, ServerNotification::ToolListChangedNotification(_)) {
                            self.tools_changed.notify_one();
                        }
                        return Some(JsonRpcMessage::notification(other));
                    }
                },
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
