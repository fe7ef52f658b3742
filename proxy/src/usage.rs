//! Calls that were passed on to a server, on their way into Postgres' statistics: many in one statement, none twice.

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

/// What comes within this time after a report waits for the next one.
const GATHERING: Duration = Duration::from_millis(50);
/// The calls of one report.
const MOST_TOGETHER: usize = 1_000;
/// The calls that wait while Postgres is away; about 20 MB.
const MOST_WAITING: usize = 100_000;

/// One call of a server's tool.
#[derive(Debug)]
pub(crate) struct ToolUse {
    pub caller: Caller,
    pub server: String,
    pub tool: String,
    pub duration: Duration,
    /// What went wrong, if anything did.
    pub error: Option<String>,
    pub ended: Instant,
}

/// Where calls are put; a task takes them to Postgres.
pub(crate) struct Usage {
    waiting: Mutex<Option<mpsc::Sender<ToolUse>>>,
    unrecorded: Arc<AtomicUsize>,
    lost: AtomicUsize,
    recorder: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Usage {
    /// To be called in a Tokio runtime.
    pub(crate) fn recorded_in(database: Database) -> Usage {
        let (waiting, calls) = mpsc::channel(MOST_WAITING);
        let unrecorded = Arc::new(AtomicUsize::new(0));
        let recorder = tokio::spawn(record(database, calls, unrecorded.clone()));
        Usage {
            waiting: Mutex::new(Some(waiting)),
            unrecorded,
            lost: AtomicUsize::new(0),
            recorder: tokio::sync::Mutex::new(Some(recorder)),
        }
    }

    /// Never waits: the client's answer is on its way.
    pub(crate) fn add(&self, used: ToolUse) {
        let waiting = self.waiting.lock();
        if waiting.as_ref().is_some_and(|waiting| waiting.try_send(used).is_ok()) {
            self.unrecorded.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let lost = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
        // Not one line for each: there are many when there is one.
        if lost.is_power_of_two() {
            tracing::error!(lost, "the use of tools can't be recorded: too many calls wait for Postgres");
        }
    }

    /// Calls that Postgres doesn't know of yet.
    pub(crate) fn unrecorded(&self) -> usize {
        self.unrecorded.load(Ordering::Relaxed)
    }

    /// Takes no more calls and waits until Postgres has those that came; says how many it hasn't.
    pub(crate) async fn close(&self, patience: Duration) -> usize {
        self.waiting.lock().take();
        if let Some(mut recorder) = self.recorder.lock().await.take()
            && timeout(patience, &mut recorder).await.is_err()
        {
            recorder.abort();
        }
        self.unrecorded()
    }
}

async fn record(database: Database, mut calls: mpsc::Receiver<ToolUse>, unrecorded: Arc<AtomicUsize>) {
    let mut together = Vec::new();
    while calls.recv_many(&mut together, MOST_TOGETHER).await > 0 {
        for report in reports(std::mem::take(&mut together)) {
            report.deliver(&database).await;
            unrecorded.fetch_sub(report.calls.len(), Ordering::Relaxed);
        }
        if !calls.is_closed() {
            sleep(GATHERING).await;
        }
    }
}

/// Calls of one scope.
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
    /// Tries until Postgres has it or refuses it.
    async fn deliver(&self, database: &Database) {
        let deliver = || async { database.tools_used(&self.caller, self.id, &self.to_json()).await };
        let delivered = deliver.retry(UNTIL_TAKEN).when(DatabaseError::is_passing).notify(|error, pause| {
            tracing::warn!(%error, "the use of tools isn't recorded yet; trying again in {pause:?}");
        });
        if let Err(error) = delivered.await {
            tracing::error!(calls = self.calls.len(), %error, "the use of tools can't be recorded");
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
    fn each_scope_reports_for_itself_in_order() {
        let reports = reports(vec![used("p", "1"), used("q", "2"), used("p", "3")]);
        let told: Vec<Vec<&str>> = reports
            .iter()
            .map(|report| report.calls.iter().map(|used| used.tool.as_str()).collect())
            .collect();
        assert_eq!(told, [vec!["1", "3"], vec!["2"]]);
        assert_ne!(reports[0].id, reports[1].id);
    }
}
