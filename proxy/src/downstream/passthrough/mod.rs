//! Calls that are passed on as they are: nobody is told or asked anything during them, so neither their arguments nor
//! their answers are taken apart, and no task hands them on to another.

mod http;
mod stdin;
mod stdout;

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use rmcp::{
    ServiceError,
    model::{CallToolResult, ErrorData, JsonObject},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::oneshot;

pub(super) use self::{http::HttpPassthrough, stdin::Output, stdout::Sifted};

/// Ids of such calls. rmcp counts its own from 0 and never gets there; every language's numbers do.
const FIRST_ID: u64 = 1 << 32;

/// What a server's tool answered, as the server wrote it.
#[derive(Debug)]
pub struct RawAnswer {
    /// A JSON object.
    pub result: Bytes,
    pub is_error: bool,
}

/// How calls reach a server unparsed.
pub(super) enum Passthrough {
    Stdio(Arc<Answers>, Output),
    Http(HttpPassthrough),
}

impl Passthrough {
    /// Dropping the future cancels the call at the server.
    pub(super) async fn call(&self, tool: &str, args: Option<&RawValue>) -> Result<RawAnswer, ServiceError> {
        match self {
            Passthrough::Stdio(answers, output) => call_stdio(answers, output, tool, args).await,
            Passthrough::Http(http) => http.call(tool, args).await,
        }
    }
}

async fn call_stdio(
    answers: &Arc<Answers>,
    output: &Output,
    tool: &str,
    args: Option<&RawValue>,
) -> Result<RawAnswer, ServiceError> {
    output.has_room().await;
    let mut awaited = answers.expect(output)?;
    let line = request_line(awaited.id, tool, args).map_err(|_| ServiceError::UnexpectedResponse)?;
    output.send(line.as_bytes())?;
    awaited.answer().await?.into_raw()
}

/// One line: a message that is laid out over several is made one.
fn request_line(id: u64, tool: &str, args: Option<&RawValue>) -> serde_json::Result<String> {
    let mut line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"#);
    line.push_str(&serde_json::to_string(tool)?);
    if let Some(args) = args.map(RawValue::get) {
        line.push_str(r#","arguments":"#);
        if args.contains(['\n', '\r']) {
            line.push_str(&serde_json::from_str::<Value>(args)?.to_string());
        } else {
            line.push_str(args);
        }
    }
    line.push_str("}}\n");
    Ok(line)
}

/// A message, read no further than needed to know whom it is for.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Message<'_> {
    /// The id of the call that it answers, if it answers one of ours.
    fn answers(&self) -> Option<u64> {
        let id = self.id.filter(|_| self.method.is_none())?.get().parse().ok()?;
        (id >= FIRST_ID).then_some(id)
    }

    /// The part of `text`, of which this was read, that is the answer.
    fn answer_in(&self, text: &Bytes) -> Answer {
        match (self.result, self.error) {
            (Some(result), _) => Answer::Result(text.slice_ref(result.get().as_bytes())),
            (None, Some(error)) => Answer::Error(text.slice_ref(error.get().as_bytes())),
            (None, None) => Answer::Error(Bytes::new()),
        }
    }
}

/// The JSON of an answer's result or error.
#[derive(Debug)]
enum Answer {
    Result(Bytes),
    Error(Bytes),
}

/// What decides whether clients understand a result as it is.
#[derive(Deserialize)]
struct Shape {
    content: Option<IgnoredAny>,
    #[serde(rename = "isError")]
    is_error: Option<bool>,
    #[serde(rename = "resultType")]
    result_type: Option<IgnoredAny>,
}

impl Answer {
    fn into_raw(self) -> Result<RawAnswer, ServiceError> {
        let result = match self {
            Answer::Result(result) => result,
            Answer::Error(error) => {
                let error = serde_json::from_slice::<ErrorData>(&error);
                return Err(error.map_or(ServiceError::UnexpectedResponse, ServiceError::McpError));
            }
        };
        let shape: Shape = serde_json::from_slice(&result).map_err(|_| ServiceError::UnexpectedResponse)?;
        if shape.content.is_some() && shape.result_type.is_none() {
            return Ok(RawAnswer { result, is_error: shape.is_error == Some(true) });
        }
        let mut read: JsonObject =
            serde_json::from_slice(&result).map_err(|_| ServiceError::UnexpectedResponse)?;
        // `{}` says that it worked and that there is nothing to say.
        if read.keys().all(|key| key == "_meta" || key == "resultType") {
            read.insert("content".to_owned(), json!([]));
        }
        let read: CallToolResult =
            serde_json::from_value(Value::Object(read)).map_err(|_| ServiceError::UnexpectedResponse)?;
        Ok(RawAnswer::of(read))
    }
}

impl RawAnswer {
    pub(crate) fn of(mut result: CallToolResult) -> RawAnswer {
        // Clients that have sessions don't know it.
        result.result_type = None;
        let is_error = result.is_error == Some(true);
        RawAnswer { result: json!(result).to_string().into(), is_error }
    }
}

/// Who waits for answers that come by standard output.
#[derive(Default)]
pub(super) struct Answers {
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
    /// How many calls are under way.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

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

    /// Whether the line is an answer to one of these calls, which then has it.
    fn take(&self, line: &Bytes) -> bool {
        let Ok(message) = serde_json::from_slice::<Message<'_>>(line) else { return false };
        let Some(id) = message.answers() else { return false };
        // One that nobody waits for any more is also not rmcp's.
        if let Some(sender) = self.lock().senders.remove(&id) {
            let _ = sender.send(message.answer_in(line));
        }
        true
    }

    fn end(&self) {
        let mut waiting = self.lock();
        waiting.ended = true;
        waiting.senders.clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
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

const CANCELLED: &str = "nobody waits for the answer any more";

#[cfg(test)]
mod tests;
