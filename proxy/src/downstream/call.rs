//! A call of a server's tool and its answer, each parsed or as it was written.

use std::time::Duration;

use pml_worker::Clock;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, InputResponses, JsonObject};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{client::CallingClient, passthrough::RawAnswer, tap::Progress};

/// What is called, by the server's own names.
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
    /// As the client wrote them: a JSON object. They are sent as they are if the server can be called so and the call has
    /// no client that could be asked or told something.
    Raw(Option<Box<RawValue>>),
}

/// What the server answered. A call with a parsed body gets a parsed answer, one with a raw body gets either.
#[derive(Debug)]
pub enum ToolAnswer {
    Parsed(CallToolResponse),
    Raw(RawAnswer),
}

impl ToolAnswer {
    /// Whether the call is over and its result says that the tool failed.
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
            ToolAnswer::Parsed(_) => RawAnswer::of(failure("The server asks back, and nobody can be asked.")),
            ToolAnswer::Raw(answer) => answer,
        }
    }

    pub fn into_parsed(self) -> CallToolResponse {
        match self {
            ToolAnswer::Parsed(answer) => answer,
            ToolAnswer::Raw(answer) => serde_json::from_slice::<CallToolResult>(&answer.result)
                .unwrap_or_else(|error| failure(&format!("The answer can't be read: {error}.")))
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
    /// Stops the call; the server is told.
    pub cancel: CancellationToken,
    /// Where its progress goes.
    pub progress: Option<mpsc::UnboundedSender<Progress>>,
    /// How long it may take after it was sent, progress or not; otherwise as the server's entry says.
    pub timeout: Option<Duration>,
    /// What is around it and has to wait with it while a person is asked.
    pub around: Option<Clock>,
    /// Whom the server may ask.
    pub client: Option<CallingClient>,
    /// Whether what the server asks may be the answer, so that the client makes the call again.
    pub may_ask_back: bool,
    /// What the client answered, if it makes the call again.
    pub input: Input,
    /// For the log.
    pub request_id: String,
}

/// What belongs to a call that was answered with a question before.
#[derive(Clone, Debug, Default)]
pub struct Input {
    pub responses: Option<InputResponses>,
    /// The server's, which nobody else understands.
    pub state: Option<String>,
}
