//! The back of the fast path, whose front is `http/passthrough`: calls forwarded to a server unparsed. Nobody is told or
//! asked anything during them, so no task hands them on to another, and rmcp never sees them.

mod http;
mod stdin;
mod stdio;

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use rmcp::{
    ServiceError,
    model::{CallToolResult, ErrorData, JsonObject},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json, value::RawValue};

pub(super) use self::{http::HttpPassthrough, stdin::Output, stdio::ReplyRouter};

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
    Stdio(Arc<ReplyRouter>, Output),
    Http(HttpPassthrough),
}

impl Passthrough {
    /// Dropping the future cancels the call at the server.
    pub(super) async fn call(&self, tool: &str, args: Option<&RawValue>) -> Result<RawAnswer, ServiceError> {
        match self {
            Passthrough::Stdio(answers, output) => stdio::call(answers, output, tool, args).await,
            Passthrough::Http(http) => http.call(tool, args).await,
        }
    }
}

/// One line: a message that is laid out over several is made one.
fn request_line(id: u64, tool: &str, args: Option<&RawValue>) -> String {
    let tool = Value::from(tool);
    let mut line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":{tool}"#);
    if let Some(args) = args.map(RawValue::get) {
        line.push_str(r#","arguments":"#);
        // Outside of strings they are white space, and inside they are escaped.
        if args.contains(['\n', '\r']) {
            line.push_str(&args.replace(['\n', '\r'], " "));
        } else {
            line.push_str(args);
        }
    }
    line.push_str("}}\n");
    line
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
    fn reply_in(&self, text: &Bytes) -> RawReply {
        match (self.result, self.error) {
            (Some(result), _) => RawReply::Result(text.slice_ref(result.get().as_bytes())),
            (None, Some(error)) => RawReply::Error(text.slice_ref(error.get().as_bytes())),
            (None, None) => RawReply::Error(Bytes::new()),
        }
    }
}

/// The JSON of an answer's result or error.
#[derive(Debug)]
enum RawReply {
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

impl RawReply {
    fn into_raw(self) -> Result<RawAnswer, ServiceError> {
        let result = match self {
            RawReply::Result(result) => result,
            RawReply::Error(error) => {
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

const CANCELLED: &str = "nobody waits for the answer any more";

#[cfg(test)]
mod tests;
