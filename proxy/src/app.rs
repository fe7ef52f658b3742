//! What all connections of one proxy share.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pml_worker::{FairGate, Limits, Pool, Shares, StartError};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    changes::{self, Changes, Listener},
    config::Config,
    database::{self, Database},
    downstream::{Downstreams, ServerState},
    limits::{Questions, RunLimits},
    metrics::{Metrics, Readings},
    request_state::RequestStates,
    scope::{Caller, Identity, Principal, Scope, new_request_id},
    tokens::Tokens,
    tools::{known::KnownTools, registration::Registration},
    usage::Usage,
};

/// The proxy without its transports.
pub struct App {
    pub database: Database,
    pub workers: Pool,
    pub limits: Limits,
    pub run_limits: Arc<RunLimits>,
    pub questions: Arc<Questions>,
    /// Turns for large results.
    pub large_results: FairGate,
    /// A client that has been away for so long isn't asked any more.
    pub absent: Duration,
    pub servers: Downstreams,
    pub server_names: Vec<String>,
    pub configured: Principal,
    pub tokens: Arc<Tokens>,
    pub(crate) changes: Arc<Changes>,
    pub metrics: Arc<Metrics>,
    pub(crate) known: Arc<KnownTools>,
    pub(crate) usage: Usage,
    pub(crate) request_states: RequestStates,
    pub(crate) registration: Registration,
    /// Calls under way. They go on when their client has gone.
    pub calls: TaskTracker,
    /// Outcomes on their way to Postgres.
    pub finishes: TaskTracker,
    /// Cancelled when calls that still run must end.
    pub end_calls: CancellationToken,
    /// Cancelled when no new connections are wanted.
    pub stop_accepting: CancellationToken,
    /// Cancelled when everything must end.
    pub stop: CancellationToken,
    draining: AtomicBool,
    places: Mutex<HashSet<Scope>>,
}

impl App {
    /// Starts the sandbox, the listener and the downstream servers that are to be started at once.
    pub async fn start(config: Config) -> Result<Arc<App>, StartError> {
        let workers = Pool::start(config.worker).await?;
        if !workers.missing_layers().is_empty() {
            tracing::warn!(
                missing = workers.missing_layers(),
                "the sandbox does without a layer of its confinement"
            );
        }
        let metrics = Arc::new(Metrics::default());
        let database = Database::new(&config.database, metrics.clone());
        let servers = Downstreams::new(config.servers);
        let app = Arc::new(App {
            tokens: Arc::new(Tokens::new(database.clone())),
            changes: Arc::default(),
            known: Arc::default(),
            usage: Usage::recorded_in(database.clone()),
            request_states: RequestStates::default(),
            registration: Registration::default(),
            calls: TaskTracker::new(),
            finishes: TaskTracker::new(),
            end_calls: CancellationToken::new(),
            stop_accepting: CancellationToken::new(),
            stop: CancellationToken::new(),
            draining: AtomicBool::new(false),
            places: Mutex::default(),
            configured: Principal { identity: Identity::Configured, scope: config.scope },
            server_names: servers.names(),
            limits: config.limits,
            questions: Questions::new(&config.token_limits),
            large_results: FairGate::new(Shares::unbounded(1, 3)),
            absent: config.token_limits.absent,
            run_limits: RunLimits::new(config.token_limits),
            database,
            workers,
            servers,
            metrics,
        });
        let listener = Arc::new(Listener {
            changes: app.changes.clone(),
            known: app.known.clone(),
            tokens: app.tokens.clone(),
            metrics: app.metrics.clone(),
        });
        tokio::spawn(database::listen(config.database.listen, listener, app.stop.clone()));
        tokio::spawn(changes::follow(app.clone()));
        tokio::spawn(app.tokens.clone().follow_hints(app.stop.clone()));
        tokio::spawn(crate::tools::registration::follow_servers(app.clone()));
        Ok(app)
    }

    /// Somebody of the configuration's scope, for what the proxy does by itself.
    pub fn own_caller(&self, scope: Scope) -> Caller {
        Caller {
            principal: Principal { identity: self.configured.identity.clone(), scope },
            request_id: new_request_id(),
        }
    }

    /// Remembers that this scope is in use; its tools are kept up to date from then on.
    pub fn visited(&self, scope: &Scope) -> bool {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        !places.contains(scope) && places.insert(scope.clone())
    }

    pub fn places(&self) -> Vec<Scope> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = HashSet::new();
        places.iter().filter(|scope| seen.insert(scope.place())).cloned().collect()
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub fn readings(&self, sessions: usize, http_connections: usize) -> Readings {
        Readings {
            calls_running: self.calls.len(),
            finishes_pending: self.finishes.len() + self.usage.unrecorded(),
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

    /// Takes no more calls, lets those that run finish within `patience`, and ends what is left.
    pub async fn drain(&self, patience: Duration) {
        self.draining.store(true, Ordering::Relaxed);
        self.calls.close();
        self.finishes.close();
        tracing::info!(running = self.calls.len(), "shutting down; running calls may finish");
        if tokio::time::timeout(patience, self.calls.wait()).await.is_err() {
            tracing::warn!(running = self.calls.len(), "calls still run at the deadline and are cancelled");
            self.end_calls.cancel();
            let _ = tokio::time::timeout(ENDING, self.calls.wait()).await;
        }
    }

    /// Ends everything, after [`App::drain`].
    pub async fn close(&self) {
        self.end_calls.cancel();
        if tokio::time::timeout(ENDING, self.finishes.wait()).await.is_err() {
            tracing::error!(lost = self.finishes.len(), "outcomes could not be stored: Postgres is away");
        }
        let lost = self.usage.close(ENDING).await;
        if lost > 0 {
            tracing::error!(lost, "the use of tools could not be recorded: Postgres is away");
        }
        self.stop.cancel();
        self.servers.close().await;
        let _ = tokio::time::timeout(ENDING, self.workers.close()).await;
    }
}

/// For what should take no time: the last messages, the last statements, the end of processes.
const ENDING: Duration = Duration::from_secs(5);
