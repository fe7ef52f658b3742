//! Records calls of servers' tools in Postgres' statistics: in batches, each call exactly once.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use backon::Retryable;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};
use uuid::Uuid;

use crate::{
    backoff::UNTIL_TAKEN,
    database::{Database, DatabaseError},
    scope::Caller,
};

/// The pause between batches.
const PAUSE: Duration = Duration::from_millis(50);
/// Calls in a batch.
const LARGEST_BATCH: usize = 1_000;
/// Queued calls while Postgres can't be reached; about 20 MB.
const LONGEST_QUEUE: usize = 100_000;

/// One call of a server's tool.
#[derive(Debug)]
pub(crate) struct ToolUse {
    pub caller: Caller,
    pub server: String,
    pub tool: String,
    pub duration: Duration,
    pub error: Option<String>,
    pub ended: Instant,
}

/// A queue, and the task that empties it into Postgres.
pub(crate) struct Usage {
    queue: Mutex<Option<mpsc::Sender<ToolUse>>>,
    unrecorded: Arc<AtomicUsize>,
    lost: AtomicUsize,
    recorder: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Usage {
    /// To be called in a Tokio runtime.
    pub(crate) fn recorded_in(database: Database) -> Usage {
        let (queue, calls) = mpsc::channel(LONGEST_QUEUE);
        let unrecorded = Arc::new(AtomicUsize::new(0));
        let recorder = tokio::spawn(record(database, calls, unrecorded.clone()));
        Usage {
            queue: Mutex::new(Some(queue)),
            unrecorded,
            lost: AtomicUsize::new(0),
            recorder: tokio::sync::Mutex::new(Some(recorder)),
        }
    }

    /// Never blocks: the client is waiting for its answer.
    pub(crate) fn add(&self, used: ToolUse) {
        let queue = self.queue.lock();
        if queue.as_ref().is_some_and(|queue| queue.try_send(used).is_ok()) {
            self.unrecorded.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let lost = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
        // Rate-limited: there are many when there is one.
        if lost.is_power_of_two() {
            tracing::error!(lost, "can't record tool usage: the queue for Postgres is full");
        }
    }

    /// Calls that aren't recorded yet.
    pub(crate) fn unrecorded(&self) -> usize {
        self.unrecorded.load(Ordering::Relaxed)
    }

    /// Closes the queue and waits until it is empty. How many calls are left at the end of `patience`.
    pub(crate) async fn close(&self, patience: Duration) -> usize {
        self.queue.lock().take();
        if let Some(mut recorder) = self.recorder.lock().await.take()
            && timeout(patience, &mut recorder).await.is_err()
        {
            recorder.abort();
        }
        self.unrecorded()
    }
}

async fn record(database: Database, mut calls: mpsc::Receiver<ToolUse>, unrecorded: Arc<AtomicUsize>) {
    let mut batch = Vec::new();
    while calls.recv_many(&mut batch, LARGEST_BATCH).await > 0 {
        for report in reports(std::mem::take(&mut batch)) {
            report.deliver(&database).await;
            unrecorded.fetch_sub(report.calls.len(), Ordering::Relaxed);
        }
        if !calls.is_closed() {
            sleep(PAUSE).await;
        }
    }
}

/// A batch of calls of one scope. Its id makes recording idempotent.
struct Report {
    id: Uuid,
    caller: Caller,
    calls: Vec<ToolUse>,
}

fn reports(calls: Vec<ToolUse>) -> Vec<Report> {
    let mut reports: Vec<Report> = Vec::new();
    let mut by_scope: HashMap<_, usize> = HashMap::new();
    for used in calls {
        let at = *by_scope.entry(used.caller.scope().clone()).or_insert(reports.len());
        if at == reports.len() {
            reports.push(Report { id: Uuid::new_v4(), caller: used.caller.clone(), calls: Vec::new() });
        }
        reports[at].calls.push(used);
    }
    reports
}

impl Report {
    /// Retries until Postgres takes or refuses it.
    async fn deliver(&self, database: &Database) {
        let deliver = || async { database.tools_used(&self.caller, self.id, &self.to_json()).await };
        let delivered = deliver.retry(UNTIL_TAKEN).when(DatabaseError::is_passing).notify(|error, pause| {
            tracing::warn!(%error, "can't record tool usage yet; retrying in {pause:?}");
        });
        if let Err(error) = delivered.await {
            tracing::error!(calls = self.calls.len(), %error, "can't record tool usage");
        }
    }

    fn to_json(&self) -> Value {
        let calls = self.calls.iter().map(|used| {
            json!({
                "server": used.server,
                "tool": used.tool,
                "success": used.error.is_none(),
                "duration_ms": used.duration.as_millis() as u64,
                // Postgres can't store U+0000.
                "error": used.error.as_ref().map(|error| error.replace('\0', "\u{fffd}")),
                "ago_ms": used.ended.elapsed().as_millis() as u64,
            })
        });
        Value::Array(calls.collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{ToolUse, reports};
    use crate::scope::{Caller, Identity, Principal, Scope};

    fn used(project: &str, tool: &str) -> ToolUse {
        let scope = Scope { org: "o".into(), project: project.into(), actor: "a".into() };
        let principal = Principal { identity: Identity::Configured, scope };
        ToolUse {
            caller: Caller { principal, request_id: "r".into() },
            server: "s".into(),
            tool: tool.into(),
            duration: Duration::ZERO,
            error: None,
            ended: Instant::now(),
        }
    }

    #[test]
    fn each_scope_has_its_own_batch_in_order() {
        let reports = reports(vec![used("p", "1"), used("q", "2"), used("p", "3")]);
        let told: Vec<Vec<&str>> = reports
            .iter()
            .map(|report| report.calls.iter().map(|used| used.tool.as_str()).collect())
            .collect();
        assert_eq!(told, [vec!["1", "3"], vec!["2"]]);
        assert_ne!(reports[0].id, reports[1].id);
    }
}
