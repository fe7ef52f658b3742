//! `/metrics`, in the text format of Prometheus. Labels never hold names that callers choose.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use pml_worker::Counts;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    /// `builtin`, `code` or `tool`.
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NotificationLabels {
    /// `tools` or `tokens`.
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    /// A setting without its `limit_`, or `queue_full`.
    limit: &'static str,
    /// `token`, `organisation` or `everyone`; `tenant` of the sandbox's queue.
    of: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServerLabel {
    server: String,
}

/// What is read when the metrics are asked for, not counted as it happens.
#[derive(Debug, Default)]
pub struct Readings {
    pub calls_running: usize,
    pub finishes_pending: usize,
    pub sessions: usize,
    pub http_connections: usize,
    pub database_connections: (usize, usize),
    pub worker_processes: usize,
    /// Slots of the sandbox.
    pub worker: Counts,
    /// Runs that gave their slot back while a person is asked.
    pub runs_aside: usize,
    pub questions: usize,
    /// Running and queued statements.
    pub statements: Counts,
    pub servers: Vec<(String, bool)>,
}

/// Counters and gauges; each metric is documented where it is registered.
pub struct Metrics {
    registry: Registry,
    calls: Family<CallLabels, Counter>,
    call_seconds: Family<KindLabel, Histogram>,
    refused: Family<ReasonLabel, Counter>,
    connections_refused: Family<ReasonLabel, Counter>,
    connections_closed: Family<ReasonLabel, Counter>,
    database_errors: Family<KindLabel, Counter>,
    notifications: Family<NotificationLabels, Counter>,
    list_changes: Counter,
    listening: Gauge,
    listening_is_known: AtomicBool,
    calls_running: Gauge,
    finishes_pending: Gauge,
    sessions: Gauge,
    http_connections: Gauge,
    connections_used: Gauge,
    connections: Gauge,
    worker_processes: Gauge,
    worker_slots_used: Gauge,
    worker_waiting: Gauge,
    worker_waiting_bytes: Gauge,
    worker_aside: Gauge,
    questions: Gauge,
    statements_waiting: Gauge,
    limited: Family<LimitLabels, Counter>,
    servers_up: Family<ServerLabel, Gauge>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let seconds: fn() -> Histogram =
            || Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0]);
        let mut metrics = Metrics {
            registry: Registry::with_prefix("pml"),
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(seconds),
            refused: Family::default(),
            connections_refused: Family::default(),
            connections_closed: Family::default(),
            database_errors: Family::default(),
            notifications: Family::default(),
            list_changes: Counter::default(),
            listening: Gauge::default(),
            listening_is_known: AtomicBool::default(),
            calls_running: Gauge::default(),
            finishes_pending: Gauge::default(),
            sessions: Gauge::default(),
            http_connections: Gauge::default(),
            connections_used: Gauge::default(),
            connections: Gauge::default(),
            worker_processes: Gauge::default(),
            worker_slots_used: Gauge::default(),
            worker_waiting: Gauge::default(),
            worker_waiting_bytes: Gauge::default(),
            worker_aside: Gauge::default(),
            questions: Gauge::default(),
            statements_waiting: Gauge::default(),
            limited: Family::default(),
            servers_up: Family::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let r = &mut self.registry;
        r.register(
            "tool_calls",
            "Tool calls and requests for resources and prompts, by kind and outcome",
            self.calls.clone(),
        );
        r.register_with_unit("tool_call", "Duration of tool calls", Unit::Seconds, self.call_seconds.clone());
        r.register("http_refused", "Rejected HTTP requests, by reason", self.refused.clone());
        r.register(
            "http_connections_refused",
            "Connections closed before a request was read, by reason",
            self.connections_refused.clone(),
        );
        r.register(
            "http_connections_closed",
            "Connections closed by a timeout or to make room, by reason",
            self.connections_closed.clone(),
        );
        r.register("http_connections", "Open HTTP connections", self.http_connections.clone());
        r.register("database_errors", "Failed statements, by kind", self.database_errors.clone());
        r.register(
            "notifications",
            "Database notifications, by kind and what was done with them",
            self.notifications.clone(),
        );
        r.register(
            "list_changes",
            "Notifications of changed tool lists sent to clients",
            self.list_changes.clone(),
        );
        r.register("listening", "Whether database notifications arrive", self.listening.clone());
        r.register("calls_running", "Running calls", self.calls_running.clone());
        r.register("finishes_pending", "Outcomes that aren't stored yet", self.finishes_pending.clone());
        r.register("sessions", "Open MCP sessions", self.sessions.clone());
        r.register("database_connections_used", "Postgres connections in use", self.connections_used.clone());
        r.register("database_connections", "Open Postgres connections", self.connections.clone());
        r.register("worker_processes", "Sandbox processes", self.worker_processes.clone());
        r.register("worker_slots_used", "Runs with a slot", self.worker_slots_used.clone());
        r.register("worker_waiting", "Runs queued for a slot", self.worker_waiting.clone());
        r.register(
            "worker_waiting_bytes",
            "Bytes of code and arguments of queued runs",
            self.worker_waiting_bytes.clone(),
        );
        r.register("worker_aside", "Runs without a slot while a person is asked", self.worker_aside.clone());
        r.register("questions_open", "Unanswered questions to people", self.questions.clone());
        r.register(
            "database_waiting",
            "Statements queued for their tenant's turn",
            self.statements_waiting.clone(),
        );
        r.register("limit_refused", "Calls refused by a limit, and whose limit it is", self.limited.clone());
        r.register("server_up", "Whether a downstream server is connected", self.servers_up.clone());
    }

    pub fn called(&self, kind: &'static str, success: bool, took: Duration) {
        let outcome = if success { "success" } else { "error" };
        self.calls.get_or_create(&CallLabels { kind, outcome }).inc();
        self.call_seconds.get_or_create(&KindLabel { kind }).observe(took.as_secs_f64());
    }

    pub fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// `connections`, `address` or `tls`.
    pub fn connection_refused(&self, reason: &'static str) {
        self.connections_refused.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// `handshake`, `head`, `idle`, `send` or `evicted`.
    pub fn connection_closed(&self, reason: &'static str) {
        self.connections_closed.get_or_create(&ReasonLabel { reason }).inc();
    }

    pub fn limited(&self, limit: &'static str, of: &'static str) {
        self.limited.get_or_create(&LimitLabels { limit, of }).inc();
    }

    pub fn database_error(&self, kind: &'static str) {
        self.database_errors.get_or_create(&KindLabel { kind }).inc();
    }

    /// `taken`, `coalesced`, `unneeded` or `malformed`.
    pub fn notified(&self, kind: &'static str, outcome: &'static str) {
        self.notifications.get_or_create(&NotificationLabels { kind, outcome }).inc();
    }

    pub fn list_changed(&self) {
        self.list_changes.inc();
    }

    pub fn set_listening(&self, listening: bool) {
        self.listening.set(listening.into());
        self.listening_is_known.store(true, Ordering::Release);
    }

    /// Whether it was found out since the start.
    pub fn is_listening_known(&self) -> bool {
        self.listening_is_known.load(Ordering::Acquire)
    }

    pub fn is_listening(&self) -> bool {
        self.listening.get() == 1
    }

    /// The text, with these readings.
    pub fn render(&self, readings: Readings) -> String {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.calls_running.set(count(readings.calls_running));
        self.finishes_pending.set(count(readings.finishes_pending));
        self.sessions.set(count(readings.sessions));
        self.http_connections.set(count(readings.http_connections));
        self.connections_used.set(count(readings.database_connections.0));
        self.connections.set(count(readings.database_connections.1));
        self.worker_processes.set(count(readings.worker_processes));
        self.worker_slots_used.set(count(readings.worker.held));
        self.worker_waiting.set(count(readings.worker.waiting));
        self.worker_waiting_bytes.set(count(readings.worker.bytes));
        self.worker_aside.set(count(readings.runs_aside));
        self.questions.set(count(readings.questions));
        self.statements_waiting.set(count(readings.statements.waiting));
        for (server, up) in readings.servers {
            self.servers_up.get_or_create(&ServerLabel { server }).set(up.into());
        }
        let mut text = String::new();
        // Writing into a string can't fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
