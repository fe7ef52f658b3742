//! MCP over streamable HTTP; health, readiness and metrics.

mod body;
mod connections;
mod door;
mod forwarded;
mod guard;
mod health;
mod incoming;
mod limits;
mod passthrough;
mod refused;
mod session;
mod tls;
mod watched;
mod whole;

use std::{sync::Arc, time::Duration};

use axum::{Router, middleware, routing::get};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::{
    app::App,
    config::HttpConfig,
    handler::Handler,
    rebinding::{HostPattern, OriginPattern},
};
use connections::Connections;
use door::Door;
use guard::{Gate, guard};
use incoming::BodyLimits;
use limits::HttpLimits;
use passthrough::Passthrough;
use session::OwnedSessions;
pub use tls::{Tls, TlsError};

/// How long open connections may take to end when nothing is running.
const CLOSING: Duration = Duration::from_secs(3);

/// Serves until `shutdown`, then lets running calls finish.
pub async fn serve(
    app: Arc<App>,
    config: HttpConfig,
    tls: Option<Arc<Tls>>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    let gate = gate(&app, &config);
    let connections = Connections::new(config.door.clone(), app.metrics.clone());
    let door = Arc::new(Door {
        connections: connections.clone(),
        router: router(&gate, connections, &config),
        tls,
        trusted_proxies: config.trusted_proxies,
        metrics: app.metrics.clone(),
        stop_accepting: app.lifecycle.stop_accepting.clone(),
        stop: app.lifecycle.stop.clone(),
    });
    let mut serving = tokio::spawn(door.serve(listener));
    shutdown.await;
    app.lifecycle.stop_accepting.cancel();
    app.lifecycle.drain(config.drain).await;
    // The answers of the last calls are being sent.
    let _ = tokio::time::timeout(CLOSING, gate.limits.requests_ended()).await;
    // Ends sessions and streams, and with them the connections.
    app.lifecycle.stop.cancel();
    if tokio::time::timeout(CLOSING, &mut serving).await.is_err() {
        serving.abort();
    }
}

fn gate(app: &Arc<App>, config: &HttpConfig) -> Arc<Gate> {
    let sessions = OwnedSessions::new();
    Arc::new(Gate {
        app: app.clone(),
        limits: HttpLimits::new(config),
        passthrough: app.servers.passes_through().then(|| Passthrough::new(app.clone(), sessions.clone())),
        bodies: BodyLimits::new(config),
        hosts: hosts(config),
        origins: origins(config),
        sessions,
        require_token: config.require_token,
    })
}

fn router(gate: &Arc<Gate>, connections: Arc<Connections>, config: &HttpConfig) -> Router {
    let (app, sessions) = (gate.app.clone(), gate.sessions.clone());
    let for_handlers = app.clone();
    let mcp = StreamableHttpService::new(
        move || Ok(Handler::new(for_handlers.clone())),
        sessions.clone(),
        mcp_config(&app, config),
    );
    tokio::spawn(tidy(gate.clone()));
    Router::new()
        .route_service("/mcp", mcp)
        .route_layer(middleware::from_fn_with_state(gate.clone(), guard))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .with_state(Arc::new(health::Watch { app, sessions, connections, hosts: hosts(config) }))
}

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The allowed hosts.
fn hosts(config: &HttpConfig) -> Vec<HostPattern> {
    let mut hosts: Vec<HostPattern> = LOOPBACK.into_iter().filter_map(HostPattern::parse).collect();
    if !config.bind.ip().is_unspecified() {
        hosts.push(HostPattern::address(config.bind.ip()));
    }
    hosts.extend(config.allowed_hosts.iter().cloned());
    hosts
}

/// The allowed web origins: on a loopback address also those of this machine.
fn origins(config: &HttpConfig) -> Vec<OriginPattern> {
    let mut origins = config.allowed_origins.clone();
    if config.bind.ip().is_loopback() {
        let own =
            LOOPBACK.iter().flat_map(|host| ["http", "https"].map(|scheme| format!("{scheme}://{host}:*")));
        origins.extend(own.filter_map(|origin| OriginPattern::parse(&origin)));
    }
    origins
}

fn mcp_config(app: &App, config: &HttpConfig) -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        // The guard checks both, more strictly.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(config.max_body)
        .with_json_response(true)
        .with_cancellation_token(app.lifecycle.stop.child_token())
}

async fn tidy(gate: Arc<Gate>) {
    let mut minute = tokio::time::interval(Duration::from_secs(60));
    loop {
        tokio::select! {
            () = gate.app.lifecycle.stop.cancelled() => return,
            _ = minute.tick() => gate.limits.tidy(),
        }
    }
}
