//! Downstream MCP servers: one connection to each, shared by all clients.
//!
//! A server is started on its first use (or with the proxy, if it is `eager`); concurrent callers wait for the same start.
//! A server that died is restarted with back-off. Until then its calls fail at once with the reason and the time of the
//! next attempt, and its tools stay listed. A call is never sent twice, with one exception: an HTTP server that rejected it
//! because it had lost our session.
//!
//! The timeout of a call is a total from when it was sent; progress doesn't extend it. A call that times out, is cancelled
//! or loses its caller is cancelled at the server too (`notifications/cancelled`).

mod announcements;
mod backoff;
mod call;
mod calling;
mod client;
mod config;
mod connection;
mod entry;
mod error;
mod expand;
mod fields;
mod foreign_fields;
mod http;
mod lists;
mod offers;
mod passthrough;
mod pending_request;
mod process;
mod question;
mod question_router;
mod request;
mod server;
mod status;
mod stderr;
mod subscribing;
mod subscriptions;
mod tap;
mod tool_filter;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use futures_util::future::join_all;
use rmcp::model::{Prompt, ServerCapabilities, Tool};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::{
    backoff::RestartPolicy,
    call::{Call, CallBody, CallContext, Input, ToolAnswer},
    client::{Asking, CallingClient},
    config::{
        ConfigErrors, DEFAULT_STARTUP_TIMEOUT, DEFAULT_TIMEOUT, DownstreamOptions, LeftOut, ParsedServers,
        ServerConfig, TransportConfig, parse_servers,
    },
    error::DownstreamError,
    lists::ResourceLists,
    passthrough::RawAnswer,
    request::{Answer, Request, RequestKind},
    status::{ServerState, ServerStatus},
    subscribing::Subscription,
    subscriptions::{Subscriber, Updates},
    tap::Progress,
    tool_filter::ToolFilter,
};
use self::{offers::OfferChanges, server::Server};

/// The buffer of each receiver of changes.
const CHANGES_KEPT: usize = 256;

/// All downstream servers. Cheap to clone; dropping the last clone stops the servers in the background.
#[derive(Clone)]
pub struct Downstreams(Arc<Inner>);

struct Inner {
    servers: BTreeMap<String, Arc<Server>>,
    passes_through: bool,
    changes: broadcast::Sender<String>,
    offer_changes: Arc<OfferChanges>,
    closing: CancellationToken,
    _end_with_us: DropGuard,
}

impl Downstreams {
    /// Starts the eager servers. To be called in a Tokio runtime.
    pub fn new(servers: BTreeMap<String, ServerConfig>, options: &DownstreamOptions) -> Downstreams {
        let (changes, _) = broadcast::channel(CHANGES_KEPT);
        let offer_changes = Arc::<OfferChanges>::default();
        let closing = CancellationToken::new();
        let servers: BTreeMap<_, _> = servers
            .into_iter()
            .map(|(name, config)| {
                let server = Server::new(
                    name.clone(),
                    config,
                    options.clone(),
                    changes.clone(),
                    offer_changes.clone(),
                    closing.clone(),
                );
                (name, server)
            })
            .collect();
        for server in servers.values().filter(|server| server.config.eager && !server.config.disabled) {
            server.wake();
        }
        let _end_with_us = closing.clone().drop_guard();
        let passes_through = options.passthrough;
        Downstreams(Arc::new(Inner {
            servers,
            passes_through,
            changes,
            offer_changes,
            closing,
            _end_with_us,
        }))
    }

    /// Whether calls may take the fast path.
    pub fn passes_through(&self) -> bool {
        self.0.passes_through
    }

    /// The servers that aren't disabled.
    pub fn names(&self) -> Vec<String> {
        self.enabled().map(|server| server.name.clone()).collect()
    }

    /// Whether a server of this name is configured.
    pub fn has(&self, server: &str) -> bool {
        self.0.servers.contains_key(server)
    }

    /// What people are shown of a server: its name in the configuration, and its identifier if that is another.
    pub fn shown(&self, server: &str) -> String {
        self.0.servers.get(server).map_or_else(|| server.to_owned(), |server| server.shown.clone())
    }

    /// The server's name in the configuration, if it isn't its identifier.
    pub fn other_name(&self, server: &str) -> Option<&str> {
        let configured = &self.0.servers.get(server)?.config.configured_name;
        (configured != server).then_some(configured)
    }

    /// Whether the configuration allows a server's tool.
    pub fn allows(&self, server: &str, tool: &str) -> bool {
        self.0.servers.get(server).is_none_or(|server| server.config.tools.allows(tool))
    }

    /// A server's tools. Starts it if needed; while it is down, the last list.
    pub async fn list(&self, server: &str) -> Result<Arc<Vec<Tool>>, DownstreamError> {
        let server = self.server(server)?;
        server.wake();
        if let Some(tools) = server.known_tools() {
            return Ok(tools);
        }
        server.connection().await?;
        server.known_tools().ok_or_else(|| DownstreamError::Closed { server: server.shown.clone() })
    }

    /// A server's last list of tools, without starting it.
    pub fn known_tools(&self, server: &str) -> Option<Arc<Vec<Tool>>> {
        self.server(server).ok()?.known_tools()
    }

    /// The names of servers whose list changed, and of those that were started or restarted.
    pub fn changes(&self) -> broadcast::Receiver<String> {
        self.0.changes.subscribe()
    }

    /// Calls a tool; the answer is the server's, unchanged. It is a question only if the context allows it.
    pub async fn call(&self, call: &Call, context: CallContext) -> Result<ToolAnswer, DownstreamError> {
        let server = self.server(&call.server)?;
        if !server.config.tools.allows(&call.tool) {
            return Err(DownstreamError::Excluded { server: server.shown.clone(), tool: call.tool.clone() });
        }
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

    /// Sends any other request; the answer is the server's, unchanged.
    pub async fn ask(&self, request: &Request, context: CallContext) -> Result<Answer, DownstreamError> {
        calling::ask(self.server(&request.server)?, request, &context).await
    }

    /// What each server that isn't disabled said that it has, if it was ever started.
    pub fn capabilities(&self) -> Vec<Option<ServerCapabilities>> {
        self.enabled().map(|server| server.capabilities.read().clone()).collect()
    }

    /// What one server has, if it was ever started.
    pub fn capabilities_of(&self, server: &str) -> Option<ServerCapabilities> {
        self.server(server).ok()?.capabilities.read().clone()
    }

    /// The resources of each server. Starts all that may have any, and waits for a few seconds at most.
    pub async fn resources(&self) -> Vec<(&str, Arc<ResourceLists>)> {
        let may_have = |has: &ServerCapabilities| has.resources.is_some();
        let listing =
            self.offering(may_have).map(async |server| (&*server.name, server.list_resources().await));
        join_all(listing).await
    }

    /// The last lists of resources, without starting a server.
    pub fn known_resources(&self) -> Vec<(&str, Arc<ResourceLists>)> {
        self.enabled().filter_map(|server| Some((&*server.name, server.resources.last()?))).collect()
    }

    /// The prompts of each server, likewise.
    pub async fn prompts(&self) -> Vec<(&str, Arc<Vec<Prompt>>)> {
        let may_have = |has: &ServerCapabilities| has.prompts.is_some();
        let listing =
            self.offering(may_have).map(async |server| (&*server.name, server.list_prompts().await));
        join_all(listing).await
    }

    /// Counts how often the resources of any server have changed.
    pub fn resource_changes(&self) -> watch::Receiver<u64> {
        self.0.offer_changes.resources.subscribe()
    }

    /// Counts how often the prompts of any server have changed.
    pub fn prompt_changes(&self) -> watch::Receiver<u64> {
        self.0.offer_changes.prompts.subscribe()
    }

    /// Subscribes a client to updates of a server's resource.
    pub async fn subscribe(
        &self,
        server: &str,
        uri: &str,
        subscriber: Subscriber,
        context: CallContext,
    ) -> Result<Subscription, DownstreamError> {
        subscribing::subscribe(self.server(server)?, uri, subscriber, context).await
    }

    fn enabled(&self) -> impl Iterator<Item = &Arc<Server>> {
        self.0.servers.values().filter(|server| !server.config.disabled)
    }

    /// The servers that have something, or weren't started yet.
    fn offering(&self, has: fn(&ServerCapabilities) -> bool) -> impl Iterator<Item = &Arc<Server>> {
        self.enabled().filter(move |server| server.capabilities.read().as_ref().is_none_or(has))
    }

    /// The state of each server, including disabled ones.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.0.servers.values().map(|server| ServerStatus::of(server)).collect()
    }

    /// Stops all servers, gracefully first, and waits until they are gone.
    pub async fn close(&self) {
        self.0.closing.cancel();
        for server in self.0.servers.values() {
            server.closed().await;
        }
    }

    fn server(&self, name: &str) -> Result<&Arc<Server>, DownstreamError> {
        match self.0.servers.get(name) {
            Some(server) if server.config.disabled => {
                Err(DownstreamError::Disabled { server: server.shown.clone() })
            }
            Some(server) if server.is_closing() => {
                Err(DownstreamError::Closed { server: server.shown.clone() })
            }
            Some(server) => Ok(server),
            None => {
                let known = self.names().iter().map(|name| self.shown(name)).collect();
                Err(DownstreamError::UnknownServer { server: name.to_owned(), known })
            }
        }
    }
}
