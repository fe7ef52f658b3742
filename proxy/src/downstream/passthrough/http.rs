//! Raw calls of an HTTP server: one request each, answered in its response or on its stream.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use rmcp::{
    ServiceError,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{
        DynamicTransportError,
        common::client_side_sse::SseRetryPolicy as _,
        streamable_http_client::{StreamableHttpClient as _, StreamableHttpPostResponse},
    },
};
use serde_json::{json, value::RawValue};

use super::{CANCELLED, FIRST_ID, Message, RawAnswer, RawReply, request_line};
use crate::downstream::{
    announcements::Announcements,
    http::{Events, Greeted, HttpClient, HttpError, Posted, StreamRetries},
    question_router::refused,
    tap::NoAddressee,
};

/// How long a stream may take to end after its answer; then its connection is reused.
const ENDING: Duration = Duration::from_secs(1);

pub(in crate::downstream) struct HttpPassthrough {
    name: String,
    client: HttpClient,
    server: Arc<Greeted>,
    announced: Arc<Announcements>,
    next: AtomicU64,
}

impl HttpPassthrough {
    /// `None` if the server's protocol has no sessions.
    pub(in crate::downstream) fn new(
        name: String,
        client: HttpClient,
        announced: Arc<Announcements>,
    ) -> Option<HttpPassthrough> {
        let server = Arc::new(client.greeted()?.clone());
        Some(HttpPassthrough { name, client, server, announced, next: AtomicU64::new(FIRST_ID) })
    }

    pub(super) async fn call(&self, tool: &str, args: Option<&RawValue>) -> Result<RawAnswer, ServiceError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let body = request_line(id, tool, args);
        let cancel_on_drop =
            CancelOnDrop { client: &self.client, server: &self.server, id, is_answered: false };
        let answered = self.answered(id, body).await;
        cancel_on_drop.answered();
        answered?.into_raw()
    }

    async fn answered(&self, id: u64, body: String) -> Result<RawReply, ServiceError> {
        match self.client.post_raw(&self.server, body).await.map_err(failed)? {
            Posted::Stream(events) => self.on_streams(id, events).await,
            Posted::Message(text) => {
                let message = serde_json::from_slice::<Message<'_>>(&text);
                Ok(message.map_err(|_| ServiceError::UnexpectedResponse)?.reply_in(&text))
            }
        }
    }

    /// Waits for the reply on a stream, and resumes it if it breaks.
    async fn on_streams(&self, id: u64, mut events: Events) -> Result<RawReply, ServiceError> {
        let (mut last, mut wait, mut times) = (None, None, 0);
        loop {
            while let Some(Ok(event)) = events.next().await {
                times = 0;
                last = event.id.or(last);
                wait = event.retry.map(Duration::from_millis).or(wait);
                if let Some(answer) = event.data.and_then(|data| self.heard(id, data.into())) {
                    end(events);
                    return Ok(answer);
                }
            }
            let Some(id) = last.clone() else { return Err(ServiceError::TransportClosed) };
            let Some(pause) = StreamRetries.retry(times) else { return Err(ServiceError::TransportClosed) };
            times += 1;
            tokio::time::sleep(wait.unwrap_or(pause)).await;
            let Greeted { uri, session, headers, .. } = (*self.server).clone();
            match self.client.get_stream(uri, session, Some(id), None, headers).await {
                Ok(again) => events = again,
                Err(_) => events = futures_util::stream::empty().boxed(),
            }
        }
    }

    /// The reply, if the message is the one. Of all others only announcements and questions matter.
    fn heard(&self, id: u64, data: Bytes) -> Option<RawReply> {
        let message: Message<'_> = serde_json::from_slice(&data).ok()?;
        if message.answers() == Some(id) {
            return Some(message.reply_in(&data));
        }
        match (&message.method, message.id) {
            (Some(_), Some(_)) => self.decline(&data),
            (Some(_), None) => self.announced.heard_raw(&data),
            _ => {}
        }
        None
    }

    /// Declines a question: a raw call has no client to ask.
    fn decline(&self, data: &Bytes) {
        let Ok(ServerJsonRpcMessage::Request(asked)) = serde_json::from_slice(data) else { return };
        let message = match refused(&self.name, asked.request, NoAddressee::NoClient) {
            Ok(answer) => ClientJsonRpcMessage::response(answer, asked.id),
            Err(error) => ClientJsonRpcMessage::error(error, Some(asked.id)),
        };
        tell(&self.client, &self.server, message);
    }
}

async fn post(
    client: &HttpClient,
    server: &Greeted,
    message: ClientJsonRpcMessage,
) -> Result<StreamableHttpPostResponse, HttpError> {
    let Greeted { uri, session, headers, .. } = server.clone();
    client.post_message(uri, message, session, None, headers).await
}

/// Not awaited: the server may be slow, or gone.
fn tell(client: &HttpClient, server: &Arc<Greeted>, message: ClientJsonRpcMessage) {
    let (client, server) = (client.clone(), server.clone());
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move { drop(post(&client, &server, message).await) });
    }
}

fn failed(error: HttpError) -> ServiceError {
    let kind = std::any::TypeId::of::<HttpPassthrough>();
    ServiceError::TransportSend(DynamicTransportError::from_parts("http", kind, Box::new(error)))
}

/// Reads the rest, so that the connection can be reused.
fn end(mut events: Events) {
    let ending = async move { while events.next().await.is_some() {} };
    let mut ending = Box::pin(ending);
    if ending.as_mut().now_or_never().is_none() {
        tokio::spawn(tokio::time::timeout(ENDING, ending));
    }
}

/// A running call. Dropping it before its reply came cancels it.
struct CancelOnDrop<'a> {
    client: &'a HttpClient,
    server: &'a Arc<Greeted>,
    id: u64,
    is_answered: bool,
}

impl CancelOnDrop<'_> {
    fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let params = json!({"requestId": self.id, "reason": CANCELLED});
            let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            if let Ok(notification) = serde_json::from_value::<ClientJsonRpcMessage>(message) {
                tell(self.client, self.server, notification);
            }
        }
    }
}
