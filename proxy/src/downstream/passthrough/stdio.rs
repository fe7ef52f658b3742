//! Raw calls of a server on stdio, and the routing of its replies.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use rmcp::ServiceError;
use serde_json::{json, value::RawValue};
use tokio::sync::oneshot;

use super::{CANCELLED, FIRST_ID, Message, RawAnswer, RawReply, request_line, stdin::Output};
use crate::lines::LineFilter;

pub(super) async fn call(
    answers: &Arc<ReplyRouter>,
    output: &Output,
    tool: &str,
    args: Option<&RawValue>,
) -> Result<RawAnswer, ServiceError> {
    output.has_room().await;
    let mut awaited = answers.expect(output)?;
    let line = request_line(awaited.id, tool, args);
    output.send(line.as_bytes())?;
    awaited.answer().await?.into_raw()
}

/// Routes the replies on a server's output to the calls that wait for them.
#[derive(Default)]
pub(in crate::downstream) struct ReplyRouter {
    pending: Mutex<PendingCalls>,
    count: AtomicUsize,
    next: AtomicU64,
}

#[derive(Default)]
struct PendingCalls {
    /// The output has ended: no more replies.
    ended: bool,
    senders: HashMap<u64, oneshot::Sender<RawReply>>,
}

impl ReplyRouter {
    fn expect(self: &Arc<Self>, output: &Output) -> Result<PendingCall, ServiceError> {
        let id = FIRST_ID + self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        let mut pending = self.lock();
        if pending.ended {
            return Err(ServiceError::TransportClosed);
        }
        pending.senders.insert(id, sender);
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(PendingCall { id, receiver: Some(receiver), answers: self.clone(), output: output.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, PendingCalls> {
        self.pending.lock()
    }
}

impl LineFilter for Arc<ReplyRouter> {
    /// Whether the line is the reply to a raw call.
    fn takes(&self, line: &Bytes) -> bool {
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let Ok(message) = serde_json::from_slice::<Message<'_>>(line) else { return false };
        let Some(id) = message.answers() else { return false };
        // A late reply to a cancelled call isn't rmcp's either.
        if let Some(sender) = self.lock().senders.remove(&id) {
            let _ = sender.send(message.reply_in(line));
        }
        true
    }

    fn ended(&self) {
        let mut pending = self.lock();
        pending.ended = true;
        pending.senders.clear();
    }
}

/// A running call. Dropping it before its reply came cancels it.
struct PendingCall {
    id: u64,
    receiver: Option<oneshot::Receiver<RawReply>>,
    answers: Arc<ReplyRouter>,
    output: Output,
}

impl PendingCall {
    async fn answer(&mut self) -> Result<RawReply, ServiceError> {
        let Some(receiver) = &mut self.receiver else { return Err(ServiceError::TransportClosed) };
        let answer = receiver.await;
        self.receiver = None;
        answer.map_err(|_| ServiceError::TransportClosed)
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.answers.count.fetch_sub(1, Ordering::Relaxed);
        if self.receiver.is_some() && self.answers.lock().senders.remove(&self.id).is_some() {
            let cancelled = json!({
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": self.id, "reason": CANCELLED},
            });
            // The server may be gone.
            let _ = self.output.send(format!("{cancelled}\n").as_bytes());
        }
    }
}
