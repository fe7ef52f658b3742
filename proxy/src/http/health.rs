//! `/healthz`: the process answers. `/readyz`: it can serve. `/metrics`: for Prometheus, on this machine.

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
    rebinding::{HostPattern, asked_as, is_named},
};

pub(super) struct Watch {
    pub app: Arc<App>,
    pub sessions: Arc<OwnedSessions>,
    pub connections: Arc<Connections>,
    /// The names of this machine.
    pub hosts: Vec<HostPattern>,
}

/// Whoever asks has little patience.
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
    let ready = matches!(answered, Ok(Ok(()))) && app.metrics.is_listening() && !app.lifecycle.is_draining();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "ready": ready,
        "database": database,
        "listening": app.metrics.is_listening(),
        "draining": app.lifecycle.is_draining(),
    });
    (status, Json(body)).into_response()
}

/// Numbers about all tenants, so not for everyone who can reach the port.
pub(super) async fn metrics(
    State(watch): State<Arc<Watch>>,
    Extension(peer): Extension<HttpPeer>,
    request: Request,
) -> Response {
    // A page whose name was made to point here asks from this machine too, but under its own name.
    let asked = asked_as(request.uri(), request.version(), request.headers());
    if !peer.sender.is_local || !is_named(asked.ok().flatten(), &watch.hosts) {
        return (StatusCode::FORBIDDEN, "Metrics are for this machine only.\n").into_response();
    }
    let readings = watch.app.readings(watch.sessions.count(), watch.connections.count());
    let text = watch.app.metrics.render(readings);
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
}
