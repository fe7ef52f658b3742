//! What each server does, for people and for metrics.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::{
    config::TransportConfig,
    server::{Phase, Server},
};

/// Where a server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ServerState {
    /// Left out by the configuration.
    Disabled,
    /// Not needed yet.
    Idle,
    /// Being started.
    Starting,
    /// Ready.
    Up,
    /// It died or didn't start; it will be started again.
    Down,
    /// The proxy is shutting down.
    Closed,
}

/// What one server does.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// Where it is in its life.
    pub state: ServerState,
    /// Its process, of those that we started.
    pub pid: Option<u32>,
    /// The version of the protocol that it speaks.
    pub protocol: Option<String>,
    /// How it calls itself, with its version.
    pub implementation: Option<String>,
    /// How many tools it has, as last listed.
    pub tools: Option<usize>,
    /// How many calls wait for its answer.
    pub in_flight: usize,
    /// How often it was started, or a start was tried.
    pub starts: u64,
    /// Why it is down.
    pub reason: Option<String>,
    /// When it is started again; `None` if it isn't down, or is being started right now.
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
