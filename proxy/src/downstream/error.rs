//! Why a downstream server didn't answer.

use std::time::Duration;

/// Why a list or a call failed. Every message names the server.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownstreamError {
    /// No such server is configured.
    #[error("there is no server {server:?}; configured are: {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    UnknownServer {
        /// The name asked for.
        server: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// It is `disabled`.
    #[error("the server {server:?} is disabled in the configuration")]
    Disabled {
        /// Its name.
        server: String,
    },
    /// The configuration excludes the tool; the call was not sent.
    #[error(
        "the tool {tool:?} of the server {server:?} is excluded in the configuration; nothing was sent to it"
    )]
    Excluded {
        /// The server's name.
        server: String,
        /// The tool called.
        tool: String,
    },
    /// It isn't running; the call was not sent.
    #[error("the server {server:?} is down: {reason}; {}; nothing was sent to it", next(*next_try))]
    Down {
        /// Its name.
        server: String,
        /// What happened.
        reason: String,
        /// When it is restarted; `None` if that is happening now.
        next_try: Option<Duration>,
    },
    /// It died, or the connection broke, during the call.
    #[error(
        "lost the server {server:?} during the call of {tool:?}: {reason}; the call may have taken effect and was not \
         repeated"
    )]
    Lost {
        /// Its name.
        server: String,
        /// The tool called, or the method.
        tool: String,
        /// What happened.
        reason: String,
    },
    /// It took too long and was cancelled.
    #[error("the call of {tool:?} at the server {server:?} took longer than {} s and was cancelled", limit.as_secs_f64())]
    Timeout {
        /// Its name.
        server: String,
        /// The tool called, or the method.
        tool: String,
        /// What it was given.
        limit: Duration,
    },
    /// The caller cancelled it.
    #[error("the call of {tool:?} at the server {server:?} was cancelled")]
    Cancelled {
        /// Its name.
        server: String,
        /// The tool called, or the method.
        tool: String,
    },
    /// It answered with a protocol error.
    #[error("the server {server:?} refused the call of {tool:?}: {message} (code {code})")]
    Refused {
        /// Its name.
        server: String,
        /// The tool called, or the method.
        tool: String,
        /// The JSON-RPC code.
        code: i32,
        /// Its message.
        message: String,
        /// Its data.
        data: Option<Box<serde_json::Value>>,
    },
    /// The arguments are invalid; the call was not sent.
    #[error("invalid arguments for {tool:?} of the server {server:?}: {what}; nothing was sent to it")]
    BadArguments {
        /// Its name.
        server: String,
        /// The tool called, or the method.
        tool: String,
        /// What is wrong with them.
        what: String,
    },
    /// Its answer isn't the result of such a request.
    #[error("the server {server:?} gave an invalid answer to the call of {tool:?}: {what}")]
    BadAnswer {
        /// Its name.
        server: String,
        /// The tool called, or the method.
        tool: String,
        /// What is wrong with it.
        what: String,
    },
    /// The proxy is being shut down.
    #[error("the server {server:?} is unavailable: the proxy is shutting down")]
    Closed {
        /// Its name.
        server: String,
    },
}

impl DownstreamError {
    /// A short name for metrics and traces.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::UnknownServer { .. } => "unknown_server",
            Self::Disabled { .. } => "disabled",
            Self::Excluded { .. } => "excluded",
            Self::Down { .. } => "down",
            Self::Lost { .. } => "lost",
            Self::Timeout { .. } => "timeout",
            Self::Cancelled { .. } => "cancelled",
            Self::Refused { .. } => "refused",
            Self::BadArguments { .. } => "bad_arguments",
            Self::BadAnswer { .. } => "bad_answer",
            Self::Closed { .. } => "closed",
        }
    }
}

fn next(next_try: Option<Duration>) -> String {
    match next_try {
        Some(wait) => format!("the next attempt is in {:.1} s", wait.as_secs_f64()),
        None => "it is being restarted".to_owned(),
    }
}
