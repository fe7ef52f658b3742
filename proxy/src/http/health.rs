//! `/healthz`: the process runs. `/readyz`: it can serve. `/metrics`: for Prometheus on this machine.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Extension, Request, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header::CONTENT_TYPE};
use serde_json::json;

use super::{connections::Connections, door::HttpPeer, session::OwnedSessions};
use crate::{
    app::App,
    rebinding::{HostPattern, is_allowed_host, requested_host},
};

pub(super) struct Watch {
    pub app: Arc<App>,
    pub sessions: Arc<OwnedSessions>,
    pub connections: Arc<Connections>,
    /// Allowed hosts.
    pub hosts: Vec<HostPattern>,
}

/// Health checks have short timeouts themselves.
const DATABASE_ANSWER: Duration = Duration::from_secs(2);

pub(super) async fn alive() -> &'static str {
    "ok\n"
}

pub(super) async fn ready(State(watch): State<Arc<Watch>>) -> Response {
    let app = &watch.app;
    let answered = tokio::time::timeout(DATABASE_ANSWER, app.database.ping()).await;
    let database = match &answered {
        Ok(Ok(())) => "ok",
        Ok(Err(error)) => error.kind(),
        Err(_) => "no answer",
    };
    // Without notifications it serves too: it asks Postgres each time.
    let ready =
        matches!(answered, Ok(Ok(()))) && app.metrics.is_listening_known() && !app.lifecycle.is_draining();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "ready": ready,
        "database": database,
        "listening": app.metrics.is_listening(),
        "draining": app.lifecycle.is_draining(),
    });
    (status, Json(body)).into_response()
}

/// They are about all tenants, so only this machine may read them.
pub(super) async fn metrics(
    State(watch): State<Arc<Watch>>,
    Extension(peer): Extension<HttpPeer>,
    request: Request,
) -> Response {
    // Protects against DNS rebinding: a page's request comes from this machine too, but with the page's host.
    let host = requested_host(request.uri(), request.version(), request.headers());
    if !peer.sender.is_local || !is_allowed_host(host.ok().flatten(), &watch.hosts) {
        return (StatusCode::FORBIDDEN, "Metrics are available only on this machine.\n").into_response();
    }
    let readings = watch.app.readings(watch.sessions.count(), watch.connections.count());
    let text = watch.app.metrics.render(readings);
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
}
