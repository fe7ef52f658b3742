//! Raw calls of a server on standard input and output, and who waits for their answers.

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

use super::{Answer, CANCELLED, FIRST_ID, Message, RawAnswer, request_line, stdin::Output};
use crate::lines::TakesLines;

pub(super) async fn call(
    answers: &Arc<Answers>,
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

/// Who waits for answers that come by standard output.
#[derive(Default)]
pub(in crate::downstream) struct Answers {
    waiting: Mutex<Waiting>,
    count: AtomicUsize,
    next: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    /// The output has ended: no answer will come.
    ended: bool,
    senders: HashMap<u64, oneshot::Sender<Answer>>,
}

impl Answers {
    fn expect(self: &Arc<Self>, output: &Output) -> Result<Awaited, ServiceError> {
        let id = FIRST_ID + self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.lock();
        if waiting.ended {
            return Err(ServiceError::TransportClosed);
        }
        waiting.senders.insert(id, sender);
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(Awaited { id, receiver: Some(receiver), answers: self.clone(), output: output.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }
}

impl TakesLines for Arc<Answers> {
    /// Whether the line is an answer to one of these calls, which then has it.
    fn takes(&self, line: &Bytes) -> bool {
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let Ok(message) = serde_json::from_slice::<Message<'_>>(line) else { return false };
        let Some(id) = message.answers() else { return false };
        // One that nobody waits for any more is also not rmcp's.
        if let Some(sender) = self.lock().senders.remove(&id) {
            let _ = sender.send(message.answer_in(line));
        }
        true
    }

    fn ended(&self) {
        let mut waiting = self.lock();
        waiting.ended = true;
        waiting.senders.clear();
    }
}

/// A call under way. Dropped before its answer came, it is cancelled.
struct Awaited {
    id: u64,
    receiver: Option<oneshot::Receiver<Answer>>,
    answers: Arc<Answers>,
    output: Output,
}

impl Awaited {
    async fn answer(&mut self) -> Result<Answer, ServiceError> {
        let Some(receiver) = &mut self.receiver else { return Err(ServiceError::TransportClosed) };
        let answer = receiver.await;
        self.receiver = None;
        answer.map_err(|_| ServiceError::TransportClosed)
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.answers.count.fetch_sub(1, Ordering::Relaxed);
        if self.receiver.is_some() && self.answers.lock().senders.remove(&self.id).is_some() {
            let cancelled = json!({
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": self.id, "reason": CANCELLED},
            });
            // A server that is gone needs no word of it.
            let _ = self.output.send(format!("{cancelled}\n").as_bytes());
        }
    }
}
