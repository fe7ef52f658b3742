//! Real MCP servers behind the proxy: one connection to each, however many clients there are.
//!
//! A server is started when somebody needs it (or with the proxy, if its entry says `eager`); everybody who needs it
//! meanwhile waits for the same start. When it dies it is started again, with a wait that doubles each time; until then
//! its calls fail at once and say why and when, and its tools stay in the list as they were. A call that was sent is
//! never sent again, with one exception: a server behind HTTP that refused it unread because it forgot our session.
//!
//! The limit of a call counts from when it was sent and is a total: progress doesn't extend it. A call that ran out of
//! time, was cancelled or whose caller went away is cancelled at the server too (`notifications/cancelled`).

mod backoff;
mod call;
mod calling;
mod client;
mod config;
mod connection;
mod error;
mod expand;
mod fields;
mod http;
mod passthrough;
mod pending_request;
mod process;
mod question;
mod question_router;
mod server;
mod status;
mod stderr;
mod tap;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use rmcp::model::Tool;
use tokio::sync::broadcast;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::server::Server;
pub use self::{
    backoff::RestartPolicy,
    call::{Call, CallBody, CallContext, Input, ToolAnswer},
    client::{Asking, CallingClient},
    config::{
        ConfigErrors, DEFAULT_STARTUP_TIMEOUT, DEFAULT_TIMEOUT, DownstreamOptions, ParsedServers,
        ServerConfig, TransportConfig, parse_servers,
    },
    error::DownstreamError,
    passthrough::RawAnswer,
    status::{ServerState, ServerStatus},
    tap::Progress,
};

/// How many changes a receiver may be behind before it is told that it missed some.
const CHANGES_KEPT: usize = 256;

/// All real servers. Cheap to clone; when the last clone is dropped, the servers are ended in the background.
#[derive(Clone)]
pub struct Downstreams(Arc<Inner>);

struct Inner {
    servers: BTreeMap<String, Arc<Server>>,
    passes_through: bool,
    changes: broadcast::Sender<String>,
    closing: CancellationToken,
    _end_with_us: DropGuard,
}

impl Downstreams {
    /// The servers, of which the eager ones are started. To be called in a Tokio runtime.
    pub fn new(servers: BTreeMap<String, ServerConfig>, options: &DownstreamOptions) -> Downstreams {
        let (changes, _) = broadcast::channel(CHANGES_KEPT);
        let closing = CancellationToken::new();
        let servers: BTreeMap<_, _> = servers
            .into_iter()
            .map(|(name, config)| {
                let server =
                    Server::new(name.clone(), config, options.clone(), changes.clone(), closing.clone());
                (name, server)
            })
            .collect();
        for server in servers.values().filter(|server| server.config.eager && !server.config.disabled) {
            server.wake();
        }
        let _end_with_us = closing.clone().drop_guard();
        let passes_through = options.passthrough;
        Downstreams(Arc::new(Inner { servers, passes_through, changes, closing, _end_with_us }))
    }

    /// Whether calls with raw bodies may be passed through as they are.
    pub fn passes_through(&self) -> bool {
        self.0.passes_through
    }

    /// The servers that aren't disabled.
    pub fn names(&self) -> Vec<String> {
        let enabled = self.0.servers.values().filter(|server| !server.config.disabled);
        enabled.map(|server| server.name.clone()).collect()
    }

    /// A server's tools: starts it if needed; while it is down, the list is the last one known.
    pub async fn list(&self, server: &str) -> Result<Arc<Vec<Tool>>, DownstreamError> {
        let server = self.server(server)?;
        server.wake();
        if let Some(tools) = server.known_tools() {
            return Ok(tools);
        }
        server.connection().await?;
        server.known_tools().ok_or_else(|| DownstreamError::Closed { server: server.name.clone() })
    }

    /// A server's tools as last listed, without starting anything.
    pub fn known_tools(&self, server: &str) -> Option<Arc<Vec<Tool>>> {
        self.server(server).ok()?.known_tools()
    }

    /// The names of the servers whose list changed, and of those that were started (again).
    pub fn changes(&self) -> broadcast::Receiver<String> {
        self.0.changes.subscribe()
    }

    /// Calls a tool; the answer is the server's, unchanged. It is a question only if the context allows that.
    pub async fn call(&self, call: &Call, context: CallContext) -> Result<ToolAnswer, DownstreamError> {
        let server = self.server(&call.server)?;
        let started = Instant::now();
        let answer = calling::call(server, call, &context).await;
        tracing::debug!(
            server = server.name,
            tool = call.tool,
            request_id = context.request_id,
            ms = started.elapsed().as_millis(),
            outcome = answer.as_ref().map_or_else(DownstreamError::kind, |_| "answered"),
            "called"
        );
        answer
    }

    /// What each server does, the disabled ones too.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.0.servers.values().map(|server| ServerStatus::of(server)).collect()
    }

    /// Ends all servers, politely first, and waits until they are gone.
    pub async fn close(&self) {
        self.0.closing.cancel();
        for server in self.0.servers.values() {
            server.closed().await;
        }
    }

    fn server(&self, name: &str) -> Result<&Arc<Server>, DownstreamError> {
        match self.0.servers.get(name) {
            Some(server) if server.config.disabled => {
                Err(DownstreamError::Disabled { server: name.to_owned() })
            }
            Some(server) if server.is_closing() => Err(DownstreamError::Closed { server: name.to_owned() }),
            Some(server) => Ok(server),
            None => Err(DownstreamError::UnknownServer { server: name.to_owned(), known: self.names() }),
        }
    }
}
