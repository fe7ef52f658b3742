//! The server side of the fast path: calls forwarded unparsed, bypassing rmcp. Their clients can't be notified or asked, so no
//! other task is involved. The client side, `http/passthrough`, says what both together save.

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

/// The first request id of such calls. rmcp counts its own from 0 and never gets there; JavaScript's numbers can hold it.
const FIRST_ID: u64 = 1 << 32;

/// A tool's result as the server sent it.
#[derive(Debug)]
pub struct RawAnswer {
    /// A JSON object.
    pub result: Bytes,
    pub is_error: bool,
}

/// How raw calls reach a server.
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

/// A request on one line, even if the client formatted its arguments over several.
fn request_line(id: u64, tool: &str, args: Option<&RawValue>) -> String {
    let tool = Value::from(tool);
    let mut line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":{tool}"#);
    if let Some(args) = args.map(RawValue::get) {
        line.push_str(r#","arguments":"#);
        // Outside of strings they are white space; inside they are escaped.
        if args.contains(['\n', '\r']) {
            line.push_str(&args.replace(['\n', '\r'], " "));
        } else {
            line.push_str(args);
        }
    }
    line.push_str("}}\n");
    line
}

/// A message, parsed only as far as needed to route it.
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
    /// The id of the raw call that it answers.
    fn answers(&self) -> Option<u64> {
        let id = self.id.filter(|_| self.method.is_none())?.get().parse().ok()?;
        (id >= FIRST_ID).then_some(id)
    }

    /// The reply in `text`, from which this was parsed.
    fn reply_in(&self, text: &Bytes) -> RawReply {
        match (self.result, self.error) {
            (Some(result), _) => RawReply::Result(text.slice_ref(result.get().as_bytes())),
            (None, Some(error)) => RawReply::Error(text.slice_ref(error.get().as_bytes())),
            (None, None) => RawReply::Error(Bytes::new()),
        }
    }
}

/// The JSON of a result or an error.
#[derive(Debug)]
enum RawReply {
    Result(Bytes),
    Error(Bytes),
}

/// The fields that decide whether clients accept a result unchanged.
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
        // `{}` is success without content.
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
        // Clients with sessions don't know this field.
        result.result_type = None;
        let is_error = result.is_error == Some(true);
        RawAnswer { result: json!(result).to_string().into(), is_error }
    }
}

const CANCELLED: &str = "the caller is gone";

#[cfg(test)]
mod tests;
