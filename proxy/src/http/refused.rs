//! Why a request isn't let in, in the form that MCP clients show.

use std::time::Duration;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{
    HeaderValue, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde_json::json;

pub(super) struct Refused {
    pub status: StatusCode,
    /// For the metrics.
    pub reason: &'static str,
    pub message: String,
    pub retry_after: Option<Duration>,
}

impl Refused {
    pub(super) fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Refused {
        Refused { status, reason, message: message.into(), retry_after: None }
    }

    pub(super) fn unauthorized(message: &str) -> Refused {
        Refused::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(super) fn bad_request(reason: &'static str, message: impl Into<String>) -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, reason, message)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": self.message}});
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
