//! The state of each server, for people and metrics.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::{
    config::TransportConfig,
    server::{Phase, Server},
};

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ServerState {
    /// Disabled in the configuration.
    Disabled,
    /// Not used yet.
    Idle,
    /// Being started.
    Starting,
    /// Ready.
    Up,
    /// It died or didn't start; it will be restarted.
    Down,
    /// The proxy is shutting down.
    Closed,
}

/// The status of a server.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ServerStatus {
    pub name: String,
    /// Its name in the configuration, which may be any text.
    pub configured_name: String,
    /// `stdio` or `http`.
    pub transport: &'static str,
    pub state: ServerState,
    /// Its process, if it runs on stdio.
    pub pid: Option<u32>,
    /// Its protocol version.
    pub protocol: Option<String>,
    /// Its own name and version.
    pub implementation: Option<String>,
    /// The number of tools in its last list.
    pub tools: Option<usize>,
    /// Running calls.
    pub in_flight: usize,
    /// Attempts to start it.
    pub starts: u64,
    /// Why it is down.
    pub reason: Option<String>,
    /// When it is restarted; `None` if it isn't down, or is being restarted now.
    pub next_try: Option<Duration>,
}

impl ServerStatus {
    pub(super) fn of(server: &Server) -> ServerStatus {
        let transport = match server.config.transport {
            TransportConfig::Stdio { .. } => "stdio",
            TransportConfig::Http { .. } => "http",
        };
        let mut status = ServerStatus {
            name: server.name.clone(),
            configured_name: server.config.configured_name.clone(),
            transport,
            state: ServerState::Disabled,
            pid: None,
            protocol: None,
            implementation: None,
            tools: server.known_tools().map(|tools| tools.len()),
            in_flight: 0,
            starts: server.starts.load(Ordering::Relaxed),
            reason: None,
            next_try: None,
        };
        if server.config.disabled {
            return status;
        }
        status.state = match &*server.phase.borrow() {
            Phase::Idle => ServerState::Idle,
            Phase::Starting => ServerState::Starting,
            Phase::Closed => ServerState::Closed,
            Phase::Up(connection) => {
                status.pid = connection.pid();
                status.protocol = Some(connection.info.protocol_version.to_string());
                let implementation = connection.info.server_info.as_ref();
                status.implementation = implementation.map(|info| format!("{} {}", info.name, info.version));
                status.in_flight = connection.in_flight.load(Ordering::Relaxed);
                ServerState::Up
            }
            Phase::Down(outage) => {
                status.reason = Some(outage.reason.clone());
                status.next_try = outage.next_try.map(|at| at.saturating_duration_since(Instant::now()));
                ServerState::Down
            }
        };
        status
    }
}
