//! What all connections of a proxy share. How it starts and stops is in [`Lifecycle`].

use std::{sync::Arc, time::Duration};

use pml_worker::{FairGate, Limits, Pool, Shares, StartError};

use crate::{
    config::Config,
    database::{self, Database},
    downstream::{DownstreamOptions, Downstreams, ServerState},
    expiry,
    lifecycle::{ENDING, Lifecycle},
    limits::{Questions, RunLimits, SubscriptionCounts},
    memory,
    metrics::{Metrics, Readings},
    notifications::{self, Listener},
    recorder::Recorder,
    request_state::RequestStates,
    scope::{Identity, Principal},
    tokens::Tokens,
    tools::Catalog,
    usage::Usage,
};

/// The proxy without its transports.
pub struct App {
    pub database: Database,
    pub workers: Pool,
    pub servers: Downstreams,
    pub tools: Arc<Catalog>,
    pub tokens: Arc<Tokens>,
    /// The principal of requests without a token.
    pub configured: Principal,
    /// Of one run.
    pub limits: Limits,
    pub run_limits: Arc<RunLimits>,
    pub questions: Arc<Questions>,
    pub subscriptions: Arc<SubscriptionCounts>,
    /// One large result of a tenant at a time.
    pub large_results: FairGate,
    /// How long a client may be disconnected before it counts as gone.
    pub absent: Duration,
    pub metrics: Arc<Metrics>,
    pub(crate) recorder: Recorder,
    pub(crate) usage: Usage,
    pub(crate) request_states: RequestStates,
    pub lifecycle: Lifecycle,
}

impl App {
    /// Starts the sandbox, the listener and the eager downstream servers.
    pub async fn start(config: Config) -> Result<Arc<App>, StartError> {
        let workers = Pool::start(config.worker).await?;
        if !workers.missing_layers().is_empty() {
            tracing::warn!(
                missing = workers.missing_layers(),
                "the sandbox runs without a layer of its confinement"
            );
        }
        let metrics = Arc::new(Metrics::default());
        let database = Database::new(&config.database, metrics.clone());
        let options = DownstreamOptions { passthrough: config.passthrough, ..DownstreamOptions::default() };
        let servers = Downstreams::new(config.servers, &options);
        let lifecycle = Lifecycle::default();
        expiry::start(database.clone(), lifecycle.stop.clone());
        let recorder = Recorder::start(database.clone(), lifecycle.finishes.clone(), lifecycle.stop.clone());
        let app = Arc::new(App {
            recorder,
            tools: Catalog::new(database.clone(), servers.clone(), config.list_limit),
            tokens: Arc::new(Tokens::new(database.clone())),
            configured: Principal { identity: Identity::Configured, scope: config.scope },
            limits: config.limits,
            questions: Questions::new(&config.token_limits),
            subscriptions: Arc::default(),
            large_results: FairGate::new(Shares::unbounded(1, 3)),
            absent: config.token_limits.absent,
            run_limits: RunLimits::new(config.token_limits),
            usage: Usage::recorded_in(database.clone()),
            request_states: RequestStates::default(),
            lifecycle,
            database,
            workers,
            servers,
            metrics,
        });
        let (tools, tokens, metrics) = (&app.tools, &app.tokens, &app.metrics);
        let stop = &app.lifecycle.stop;
        let listener =
            Arc::new(Listener { tools: tools.clone(), tokens: tokens.clone(), metrics: metrics.clone() });
        tokio::spawn(database::listen(config.database.listen, app.database.clone(), listener, stop.clone()));
        tokio::spawn(notifications::follow_tools(tools.clone(), metrics.clone(), stop.clone()));
        tokio::spawn(tokens.clone().follow_hints(stop.clone()));
        tokio::spawn(tools.clone().follow_servers(stop.clone()));
        tokio::spawn(memory::return_at_rest(tools.clone(), stop.clone()));
        Ok(app)
    }

    pub fn readings(&self, sessions: usize, http_connections: usize) -> Readings {
        Readings {
            calls_running: self.lifecycle.calls.len(),
            finishes_pending: self.lifecycle.finishes.len() + self.usage.unrecorded(),
            sessions,
            http_connections,
            database_connections: self.database.connections(),
            worker_processes: self.workers.processes(),
            worker: self.workers.counts(),
            runs_aside: self.workers.stepped_aside(),
            questions: self.questions.count(),
            statements: self.database.statements(),
            servers: self
                .servers
                .status()
                .iter()
                .map(|status| (status.name.clone(), status.state == ServerState::Up))
                .collect(),
        }
    }

    /// Stops everything, after [`Lifecycle::drain`].
    pub async fn close(&self) {
        self.lifecycle.finish().await;
        let lost = self.usage.close(ENDING).await;
        if lost > 0 {
            tracing::error!(lost, "can't record tool usage: Postgres can't be reached");
        }
        self.lifecycle.stop.cancel();
        self.servers.close().await;
        let _ = tokio::time::timeout(ENDING, self.workers.close()).await;
    }
}
