//! `/healthz`: the process answers. `/readyz`: it can serve. `/metrics`: for Prometheus, on this machine.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{ConnectInfo, State},
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_TYPE, HOST},
};
use serde_json::{Value, json};

use super::session::OwnedSessions;
use crate::app::App;

pub(super) struct Watch {
    pub app: Arc<App>,
    pub sessions: Arc<OwnedSessions>,
    /// The names of this machine.
    pub hosts: Vec<String>,
}

/// Whoever asks has little patience.
const DATABASE_ANSWER: Duration = Duration::from_secs(2);

pub(super) async fn alive() -> &'static str {
    "ok\n"
}

pub(super) async fn ready(State(watch): State<Arc<Watch>>) -> Response {
    let app = &watch.app;
    let database = match tokio::time::timeout(DATABASE_ANSWER, app.database.ping()).await {
        Ok(Ok(())) => Value::from("ok"),
        Ok(Err(error)) => json!(error.kind()),
        Err(_) => json!("no answer"),
    };
    let ready = database == "ok" && app.metrics.is_listening() && !app.is_draining();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "ready": ready,
        "database": database,
        "listening": app.metrics.is_listening(),
        "draining": app.is_draining(),
    });
    (status, Json(body)).into_response()
}

/// Numbers about all tenants, so not for everyone who can reach the port.
pub(super) async fn metrics(
    State(watch): State<Arc<Watch>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    // A page whose name was made to point here asks from this machine too, but under its own name.
    if !peer.ip().is_loopback() || !is_named(&headers, &watch.hosts) {
        return (StatusCode::FORBIDDEN, "Metrics are for this machine only.\n").into_response();
    }
    let text = watch.app.metrics.render(watch.app.readings(watch.sessions.count()));
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
}

/// Whether it is asked under one of these names.
pub(super) fn is_named(headers: &HeaderMap, names: &[String]) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let host = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(host, |(host, _)| host);
    names.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
}
