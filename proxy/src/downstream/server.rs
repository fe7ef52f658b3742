//! The supervisor of a server: starts it on first use, watches it, restarts it, stops it with the proxy.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::RwLock;
use rmcp::model::{ClientRequest, PingRequest, Prompt, ServerCapabilities, SubscriptionFilter, Tool};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::{
    backoff::Backoff,
    config::{DownstreamOptions, ServerConfig},
    connection::{Broken, Connection, Era, OpenError, Service, open},
    error::DownstreamError,
    lists::ResourceLists,
    offers::{Offer, OfferChanges},
    subscribing::Confirmed,
    subscriptions::Subscriptions,
};

/// How long the service may take to close the server's input.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);
/// How often an HTTP server is probed for our session: while calls are running, and otherwise.
const PROBE_BUSY: Duration = Duration::from_secs(2);
const PROBE_IDLE: Duration = Duration::from_secs(30);
/// A session that is lost sooner isn't renewed at once.
const SHORTEST_SESSION: Duration = Duration::from_secs(1);
/// The pause before a subscription that ended is renewed.
pub(super) const RESUBSCRIBE: Duration = Duration::from_secs(2);

/// The state of a server.
#[derive(Clone)]
pub(super) enum Phase {
    /// Not used yet.
    Idle,
    /// Being started; callers wait.
    Starting,
    /// Ready.
    Up(Arc<Connection>),
    /// It died or didn't start.
    Down(Arc<Outage>),
    /// The proxy is shutting down.
    Closed,
}

/// Why it is down.
pub(super) struct Outage {
    pub(super) reason: String,
    /// `None` while it is being restarted.
    pub(super) next_try: Option<Instant>,
}

impl Outage {
    pub(super) fn error(&self, server: &str) -> DownstreamError {
        DownstreamError::Down {
            server: server.to_owned(),
            reason: self.reason.clone(),
            next_try: self.next_try.map(|at| at.saturating_duration_since(Instant::now())),
        }
    }
}

pub(super) struct Server {
    /// Its identifier.
    pub(super) name: String,
    /// What people are shown.
    pub(super) shown: String,
    pub(super) config: ServerConfig,
    pub(super) phase: watch::Sender<Phase>,
    pub(super) starts: AtomicU64,
    options: DownstreamOptions,
    tools: RwLock<Option<Arc<Vec<Tool>>>>,
    changes: broadcast::Sender<String>,
    /// What it said at its last start.
    pub(super) capabilities: RwLock<Option<ServerCapabilities>>,
    pub(super) resources: Offer<ResourceLists>,
    pub(super) prompts: Offer<Vec<Prompt>>,
    pub(super) offer_changes: Arc<OfferChanges>,
    pub(super) subscriptions: Arc<Subscriptions>,
    pub(super) confirmed: watch::Sender<Confirmed>,
    supervised: AtomicBool,
    /// When it was first needed.
    woken: OnceLock<tokio::time::Instant>,
    closing: CancellationToken,
}

impl Server {
    pub(super) fn new(
        name: String,
        config: ServerConfig,
        options: DownstreamOptions,
        changes: broadcast::Sender<String>,
        offer_changes: Arc<OfferChanges>,
        closing: CancellationToken,
    ) -> Arc<Server> {
        Arc::new(Server {
            shown: config.shown_as(&name),
            subscriptions: Subscriptions::new(&name),
            name,
            config,
            phase: watch::Sender::new(Phase::Idle),
            starts: AtomicU64::new(0),
            options,
            tools: RwLock::new(None),
            changes,
            capabilities: RwLock::new(None),
            resources: Offer::default(),
            prompts: Offer::default(),
            offer_changes,
            confirmed: watch::Sender::default(),
            supervised: AtomicBool::new(false),
            woken: OnceLock::new(),
            closing,
        })
    }

    /// Its last list of tools.
    pub(super) fn known_tools(&self) -> Option<Arc<Vec<Tool>>> {
        self.tools.read().clone()
    }

    /// Whether the proxy is shutting down.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Starts the supervisor, once. When that was.
    pub(super) fn wake(self: &Arc<Self>) -> tokio::time::Instant {
        if !self.supervised.swap(true, Ordering::AcqRel) {
            self.phase.send_replace(Phase::Starting);
            tokio::spawn(Arc::clone(self).supervise());
        }
        *self.woken.get_or_init(tokio::time::Instant::now)
    }

    /// The connection, if it is up.
    pub(super) fn current_connection(&self) -> Option<Arc<Connection>> {
        match &*self.phase.borrow() {
            Phase::Up(connection) => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// The connection. Waits while the server is being started; fails at once if it is down.
    pub(super) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, DownstreamError> {
        self.wake();
        let mut phase = self.phase.subscribe();
        let settled = phase.wait_for(|phase| !matches!(phase, Phase::Idle | Phase::Starting)).await;
        match settled.as_deref() {
            Ok(Phase::Up(connection)) => Ok(Arc::clone(connection)),
            Ok(Phase::Down(outage)) => Err(outage.error(&self.shown)),
            _ => Err(DownstreamError::Closed { server: self.shown.clone() }),
        }
    }

    /// Why `connection` was given up.
    pub(super) async fn outage_after(&self, connection: &Arc<Connection>) -> Option<Arc<Outage>> {
        let mut phase = self.phase.subscribe();
        let left =
            phase.wait_for(|phase| !matches!(phase, Phase::Up(current) if Arc::ptr_eq(current, connection)));
        match tokio::time::timeout(Duration::from_secs(1), left).await {
            Ok(Ok(phase)) => match &*phase {
                Phase::Down(outage) => Some(Arc::clone(outage)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Waits until the supervisor has ended.
    pub(super) async fn closed(&self) {
        if self.supervised.load(Ordering::Acquire) {
            let mut phase = self.phase.subscribe();
            let _ = phase.wait_for(|phase| matches!(phase, Phase::Closed)).await;
        } else {
            self.phase.send_replace(Phase::Closed);
        }
    }

    async fn supervise(self: Arc<Self>) {
        let mut backoff = Backoff::new(self.options.restart.clone());
        let mut era = Era::Any;
        loop {
            self.starts.fetch_add(1, Ordering::Relaxed);
            let opened = tokio::select! {
                opened = self.start(era) => opened,
                () = self.closing.cancelled() => break,
            };
            let end = match opened {
                Ok((connection, service)) => {
                    era = if connection.info.protocol_version.has_initialize() {
                        Era::Initialize
                    } else {
                        Era::Discover
                    };
                    let up_since = Instant::now();
                    let end = self.watch_over(&connection, service).await;
                    backoff.was_up(up_since);
                    match end {
                        End::SessionLost if up_since.elapsed() < SHORTEST_SESSION => {
                            End::Died("it loses the session again and again".to_owned())
                        }
                        end => end,
                    }
                }
                Err(error) if error.answers_discover && era == Era::Any => {
                    tracing::info!(
                        server = self.name,
                        "the server supports the newer protocol after all; restarting it"
                    );
                    era = Era::Discover;
                    continue;
                }
                Err(OpenError { reason, .. }) => {
                    // The next attempt uses the other handshake: some servers die of requests that they don't know.
                    era = if era == Era::Any { Era::Initialize } else { Era::Any };
                    End::Died(reason)
                }
            };
            match end {
                End::Closing => break,
                End::SessionLost => {
                    tracing::info!(server = self.name, "the server has lost the session; opening a new one");
                    continue;
                }
                End::Died(reason) => {
                    let wait = backoff.next();
                    tracing::warn!(server = self.name, %reason, next_try_ms = wait.as_millis(), "the server is down");
                    let next_try = Some(Instant::now() + wait);
                    self.phase
                        .send_replace(Phase::Down(Arc::new(Outage { reason: reason.clone(), next_try })));
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = self.closing.cancelled() => break,
                    }
                    self.phase.send_replace(Phase::Down(Arc::new(Outage { reason, next_try: None })));
                }
            }
        }
        self.phase.send_replace(Phase::Closed);
    }

    async fn start(&self, era: Era) -> Result<(Arc<Connection>, Service), OpenError> {
        let started = Instant::now();
        let (connection, service) =
            open(&self.name, &self.config, era, self.options.passthrough, Arc::clone(&self.subscriptions))
                .await?;
        let left = self.config.startup_timeout.saturating_sub(started.elapsed());
        let tools = match connection.fetch_tools(left).await {
            Ok(tools) => tools,
            Err(reason) => {
                let reason = connection.redactor.clean(&reason);
                drop(service);
                return Err(reason.into());
            }
        };
        tracing::info!(
            server = self.name,
            protocol = connection.info.protocol_version.as_str(),
            tools = tools.len(),
            pid = connection.pid(),
            ms = started.elapsed().as_millis(),
            "the server is up"
        );
        let connection = Arc::new(connection);
        self.store(tools);
        *self.capabilities.write() = Some(connection.info.capabilities.clone());
        self.phase.send_replace(Phase::Up(Arc::clone(&connection)));
        // At each start, even if the list is the same: the last registration may have failed.
        let _ = self.changes.send(self.name.clone());
        Ok((connection, service))
    }

    /// Stores the list, without excluded tools. Whether it differs from the last one.
    fn store(&self, mut tools: Vec<Tool>) -> bool {
        tools.retain(|tool| self.config.tools.allows(&tool.name));
        let mut known = self.tools.write();
        let changed = known.as_ref().is_none_or(|known| **known != tools);
        if changed {
            *known = Some(Arc::new(tools));
        }
        changed
    }

    /// Watches the connection until it ends, and then fails its calls at once.
    async fn watch_over(self: &Arc<Self>, connection: &Arc<Connection>, service: Service) -> End {
        tokio::spawn(Arc::clone(self).follow_tools(Arc::clone(connection)));
        tokio::spawn(Arc::clone(self).listen(Arc::clone(connection)));
        tokio::spawn(Arc::clone(self).keep_subscriptions(Arc::clone(connection)));
        self.follow_offers(connection);
        let close_service = service.cancellation_token();
        let serving = service.waiting();
        tokio::pin!(serving);
        let mut served = false;
        let end = tokio::select! {
            _ = &mut serving => {
                served = true;
                End::Died(connection.post_mortem().await)
            }
            () = connection.process_ended() => End::Died(connection.post_mortem().await),
            broken = connection.reported() => match broken {
                Broken::Unreachable(reason) => End::Died(reason),
                Broken::SessionLost => End::SessionLost,
            },
            broken = self.probe(connection) => match broken {
                Broken::Unreachable(reason) => End::Died(reason),
                Broken::SessionLost => End::SessionLost,
            },
            () = self.closing.cancelled() => End::Closing,
        };
        let end = match end {
            End::Died(reason) => End::Died(connection.redactor.clean(&reason)),
            end => end,
        };
        // First, because the rest takes time.
        match &end {
            End::Died(reason) => {
                let outage = Outage { reason: reason.clone(), next_try: None };
                self.phase.send_replace(Phase::Down(Arc::new(outage)));
            }
            End::SessionLost => drop(self.phase.send_replace(Phase::Starting)),
            // The supervisor sets `Closed` when the process is gone.
            End::Closing => {}
        }
        connection.ended.cancel();
        close_service.cancel();
        if !served {
            let _ = tokio::time::timeout(CLOSE_LIMIT, serving).await;
        }
        connection.stop().await;
        end
    }

    /// Reads the list again when the server announces a change.
    async fn follow_tools(self: Arc<Self>, connection: Arc<Connection>) {
        loop {
            tokio::select! {
                () = connection.announced.tools.notified() => {}
                () = connection.ended.cancelled() => return,
            }
            match connection.fetch_tools(self.config.startup_timeout).await {
                Ok(tools) => {
                    if self.store(tools) {
                        let _ = self.changes.send(self.name.clone());
                    }
                }
                Err(reason) => {
                    let reason = connection.redactor.clean(&reason);
                    tracing::warn!(server = self.name, %reason, "can't read the changed list of tools");
                }
            }
        }
    }

    /// Since 2026-07-28 a server announces changed lists only to subscribers.
    async fn listen(self: Arc<Self>, connection: Arc<Connection>) {
        let capabilities = &connection.info.capabilities;
        let announced = |list_changed: Option<bool>| list_changed.filter(|announced| *announced);
        let mut filter = SubscriptionFilter::default();
        filter.tools_list_changed = announced(capabilities.tools.as_ref().and_then(|it| it.list_changed));
        filter.prompts_list_changed = announced(capabilities.prompts.as_ref().and_then(|it| it.list_changed));
        filter.resources_list_changed =
            announced(capabilities.resources.as_ref().and_then(|it| it.list_changed));
        if connection.info.protocol_version.has_initialize() || filter == SubscriptionFilter::default() {
            return;
        }
        loop {
            let listening = async {
                let mut subscription = connection.peer.listen(filter.clone()).await?;
                // Earlier changes were not announced.
                connection.announced.all();
                while subscription.next().await?.is_some() {}
                Ok(())
            };
            let ended = tokio::select! {
                ended = listening => ended,
                () = connection.ended.cancelled() => return,
            };
            if let Err(error) = ended {
                if let Some(broken) = Broken::of(&error) {
                    return connection.report(broken);
                }
                tracing::debug!(server = self.name, %error, "the subscription to changed lists ended");
            }
            tokio::select! {
                () = tokio::time::sleep(RESUBSCRIBE) => {}
                () = connection.ended.cancelled() => return,
            }
        }
    }

    /// Probes an HTTP server. A slow answer isn't a failure.
    async fn probe(&self, connection: &Arc<Connection>) -> Broken {
        if !connection.has_http_session() {
            return std::future::pending().await;
        }
        let mut idle = Duration::ZERO;
        loop {
            tokio::time::sleep(PROBE_BUSY).await;
            idle += PROBE_BUSY;
            if connection.in_flight.load(Ordering::Relaxed) == 0 && idle < PROBE_IDLE {
                continue;
            }
            idle = Duration::ZERO;
            let ping = connection.peer.send_request(ClientRequest::PingRequest(PingRequest::default()));
            if let Ok(Err(error)) = tokio::time::timeout(PROBE_IDLE, ping).await
                && let Some(broken) = Broken::of(&error)
            {
                return broken;
            }
        }
    }
}

enum End {
    Died(String),
    SessionLost,
    Closing,
}
