//! A call of a server's tool and its answer, each parsed or raw JSON.

use std::time::Duration;

use pml_worker::Clock;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, InputResponses, JsonObject};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{client::CallingClient, passthrough::RawAnswer, tap::Progress};

/// A call, with the server's own names.
#[derive(Debug)]
pub struct Call {
    pub server: String,
    pub tool: String,
    pub body: CallBody,
}

/// A call's arguments.
#[derive(Debug)]
pub enum CallBody {
    Parsed(Option<JsonObject>),
    /// The JSON object that the client sent. It is forwarded unparsed if the server's transport supports that and the call
    /// has no client that could be asked or notified.
    Raw(Option<Box<RawValue>>),
}

/// The server's answer. A call with a parsed body gets a parsed answer; one with a raw body gets either.
#[derive(Debug)]
pub enum ToolAnswer {
    Parsed(CallToolResponse),
    Raw(RawAnswer),
}

impl ToolAnswer {
    /// Whether it is the result of a failed tool.
    pub fn is_error(&self) -> bool {
        match self {
            ToolAnswer::Parsed(CallToolResponse::Complete(result)) => result.is_error == Some(true),
            ToolAnswer::Parsed(_) => false,
            ToolAnswer::Raw(answer) => answer.is_error,
        }
    }

    pub fn into_raw(self) -> RawAnswer {
        match self {
            ToolAnswer::Parsed(CallToolResponse::Complete(result)) => RawAnswer::of(result),
            ToolAnswer::Parsed(_) => {
                RawAnswer::of(failure("The server asks a question, and this call has no client to ask."))
            }
            ToolAnswer::Raw(answer) => answer,
        }
    }

    pub fn into_parsed(self) -> CallToolResponse {
        match self {
            ToolAnswer::Parsed(answer) => answer,
            ToolAnswer::Raw(answer) => serde_json::from_slice::<CallToolResult>(&answer.result)
                .unwrap_or_else(|error| failure(&format!("The server's answer is invalid: {error}.")))
                .into(),
        }
    }
}

fn failure(why: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

/// What belongs to one call.
#[derive(Default)]
pub struct CallContext {
    /// Cancels the call, also at the server.
    pub cancel: CancellationToken,
    /// Where its progress goes.
    pub progress: Option<mpsc::UnboundedSender<Progress>>,
    /// The timeout from when it was sent; by default that of the server's entry.
    pub timeout: Option<Duration>,
    /// The clock of the run around it, which is paused too while a person is asked.
    pub around: Option<Clock>,
    /// The client that the server may ask.
    pub client: Option<CallingClient>,
    /// Whether a question may be the answer, so that the client calls again with its response.
    pub may_ask_back: bool,
    /// The client's responses, if it calls again.
    pub input: Input,
    /// For the log.
    pub request_id: String,
}

/// What a client adds when it repeats a call that was answered with a question.
#[derive(Clone, Debug, Default)]
pub struct Input {
    pub responses: Option<InputResponses>,
    /// Opaque to everybody but the server.
    pub state: Option<String>,
}
