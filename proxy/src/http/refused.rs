//! A rejected HTTP request: its status, and a JSON-RPC error that MCP clients show.

use std::time::Duration;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{
    HeaderValue, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use rmcp::model::ErrorCode;
use serde_json::{json, value::RawValue};

use super::limits::Load;

/// The first of the codes that JSON-RPC leaves to servers.
const SERVER_ERROR: ErrorCode = ErrorCode(-32000);

pub(super) struct Refused {
    pub status: StatusCode,
    pub reason: Reason,
    pub code: ErrorCode,
    pub message: String,
    pub retry_after: Option<Duration>,
}

/// Why a request was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Unauthorized,
    /// `Host` or `Origin`.
    Host,
    Forwarded,
    Session,
    Body,
    SlowBody,
    LargeBody,
    /// Postgres couldn't be asked about the token.
    Database,
    Overload(Load),
}

impl Reason {
    /// Its label in metrics and logs.
    pub(super) fn label(self) -> &'static str {
        match self {
            Reason::Unauthorized => "unauthorized",
            Reason::Host => "host",
            Reason::Forwarded => "forwarded",
            Reason::Session => "session",
            Reason::Body => "body",
            Reason::SlowBody => "slow_body",
            Reason::LargeBody => "large_body",
            Reason::Database => "database",
            Reason::Overload(load) => load.label(),
        }
    }
}

impl Refused {
    pub(super) fn new(status: StatusCode, reason: Reason, message: impl Into<String>) -> Refused {
        Refused { status, reason, code: SERVER_ERROR, message: message.into(), retry_after: None }
    }

    pub(super) fn unauthorized(message: &str) -> Refused {
        Refused::new(StatusCode::UNAUTHORIZED, Reason::Unauthorized, message)
    }

    pub(super) fn bad_request(reason: Reason, message: impl Into<String>) -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, reason, message)
    }

    /// For a body in which rmcp found no message.
    pub(super) fn not_a_message(body: &[u8]) -> Refused {
        let (code, message) = match serde_json::from_slice::<&RawValue>(body) {
            Err(error) => (ErrorCode::PARSE_ERROR, format!("Parse error: the body isn't JSON ({error}).")),
            Ok(_) => {
                let message = "The body isn't one JSON-RPC message (batches aren't part of the protocol).";
                (ErrorCode::INVALID_REQUEST, message.to_owned())
            }
        };
        Refused { code, ..Refused::bad_request(Reason::Body, message) }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body =
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": self.code, "message": self.message}});
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"pml\""));
        }
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
        }
        response
    }
}
