//! MCP over streamable HTTP, and what watches over the proxy: health, readiness, metrics.

mod body;
mod guard;
mod health;
mod limits;
mod plain;
mod presence;
mod session;
mod ticks;
mod weight;
mod whole;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, middleware, routing::get, serve::ListenerExt};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::{app::App, config::HttpConfig, handler::Handler};
use guard::{Gate, guard};
use limits::HttpLimits;
use plain::PlainCalls;
pub use presence::Presence;
use session::OwnedSessions;
pub use weight::Weight;

/// How long open connections may take to end once nothing runs any more.
const CLOSING: Duration = Duration::from_secs(3);

/// Serves until `shutdown`, then lets running calls finish.
pub async fn serve(
    app: Arc<App>,
    config: HttpConfig,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let gate = gate(&app, &config);
    let router = router(&gate, &config);
    let listener = listener.tap_io(|stream| {
        // Answers are small; waiting for more of them only delays.
        let _ = stream.set_nodelay(true);
    });
    let stop_accepting = app.stop_accepting.clone();
    let server = axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>())
        .with_graceful_shutdown(async move { stop_accepting.cancelled().await });
    let mut server = tokio::spawn(server.into_future());
    tokio::select! {
        ended = &mut server => return ended.unwrap_or_else(|error| Err(std::io::Error::other(error))),
        () = shutdown => {}
    }
    app.stop_accepting.cancel();
    app.drain(config.drain).await;
    // The answers of the last calls are on their way.
    let _ = tokio::time::timeout(CLOSING, gate.limits.requests_ended()).await;
    // Sessions and streams end with it, and the connections with them.
    app.stop.cancel();
    if tokio::time::timeout(CLOSING, &mut server).await.is_err() {
        server.abort();
    }
    Ok(())
}

fn gate(app: &Arc<App>, config: &HttpConfig) -> Arc<Gate> {
    let sessions = OwnedSessions::new();
    Arc::new(Gate {
        app: app.clone(),
        limits: HttpLimits::new(config),
        plain: PlainCalls::new(app.clone(), sessions.clone(), hosts(config), config.max_body),
        sessions,
        require_token: config.require_token,
    })
}

fn router(gate: &Arc<Gate>, config: &HttpConfig) -> Router {
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
        .with_state(Arc::new(health::Watch { app, sessions, hosts: hosts(config) }))
}

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The names under which it may be asked.
fn hosts(config: &HttpConfig) -> Vec<String> {
    let mut hosts: Vec<String> = LOOPBACK.map(str::to_owned).to_vec();
    if !config.bind.ip().is_unspecified() {
        hosts.push(config.bind.ip().to_string());
    }
    hosts.extend(config.allowed_hosts.iter().cloned());
    hosts
}

fn mcp_config(app: &App, config: &HttpConfig) -> StreamableHttpServerConfig {
    let mut origins = config.allowed_origins.clone();
    if config.bind.ip().is_loopback() {
        origins.extend(LOOPBACK.map(|host| format!("http://{host}:*")));
    }
    StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts(config))
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(config.max_body)
        .with_json_response(true)
        .with_cancellation_token(app.stop.child_token())
}

async fn tidy(gate: Arc<Gate>) {
    let mut minute = tokio::time::interval(Duration::from_secs(60));
    loop {
        tokio::select! {
            () = gate.app.stop.cancelled() => return,
            _ = minute.tick() => gate.limits.tidy(),
        }
    }
}
