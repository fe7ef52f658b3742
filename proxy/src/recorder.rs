//! Records runs that have ended: those that end at the same time in one statement, and each exactly once.
//!
//! While a statement is under way, others gather; nobody waits for more to come. `pml_finish_many` ignores a run that it has
//! recorded already, so a statement whose outcome isn't known is repeated.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use backon::Retryable;
use serde_json::Value;
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::sleep,
};
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};
use tracing::Span;

use crate::{
    backoff::UNTIL_TAKEN,
    database::{Database, DatabaseError, EndedRun},
};

/// Statements at the same time.
const CONCURRENT: usize = 2;
/// Runs of one statement, and their bytes.
const MOST_RUNS: usize = 64;
const MOST_BYTES: usize = 256 * 1024;
/// A run with more is recorded alone, in its tenant's turn, so that others don't wait for it.
const MOST_CALLS: usize = 8;
const SMALL: usize = 32 * 1024;
/// How long it is retried.
const LONGEST_RETRY: Duration = Duration::from_secs(3600);
/// How often the counts of uses are added to the capabilities.
const FOLDING: Duration = Duration::from_secs(1);

/// The answer of `pml_execute`, without the result.
type Recorded = Result<Value, DatabaseError>;

struct Pending {
    run: EndedRun,
    answer: oneshot::Sender<Recorded>,
    deadline: Instant,
    span: Span,
    /// The proxy doesn't end before it is recorded.
    _unfinished: TaskTrackerToken,
}

/// The queue of ended runs.
pub(crate) struct Recorder {
    queue: mpsc::UnboundedSender<Pending>,
    finishes: TaskTracker,
}

impl Recorder {
    /// To be called in a Tokio runtime.
    pub(crate) fn start(database: Database, finishes: TaskTracker, stop: CancellationToken) -> Recorder {
        let (queue, ended) = mpsc::unbounded_channel();
        let has_counted = Arc::new(AtomicBool::new(true));
        tokio::spawn(record_all(database.clone(), ended, has_counted.clone()));
        tokio::spawn(fold(database, has_counted, stop));
        Recorder { queue, finishes }
    }

    /// The answer comes when the run is on disk.
    pub(crate) fn record(&self, run: EndedRun) -> oneshot::Receiver<Recorded> {
        let (answer, recorded) = oneshot::channel();
        let deadline = Instant::now() + LONGEST_RETRY;
        let _unfinished = self.finishes.token();
        // The task that receives it ends with this queue.
        let _ = self.queue.send(Pending { run, answer, deadline, span: Span::current(), _unfinished });
        recorded
    }
}

impl Pending {
    fn is_small(&self) -> bool {
        self.run.calls <= MOST_CALLS && self.run.bytes() <= SMALL && !self.run.keeps_code
    }

    fn answer(self, recorded: Recorded) {
        if let Err(error) = &recorded {
            self.span.in_scope(
                || tracing::error!(workflow = %self.run.workflow, %error, "can't record the outcome"),
            );
        }
        let _ = self.answer.send(recorded);
    }
}

async fn record_all(
    database: Database,
    mut ended: mpsc::UnboundedReceiver<Pending>,
    has_counted: Arc<AtomicBool>,
) {
    let places = Arc::new(Semaphore::new(CONCURRENT));
    let mut next = None;
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Some(first) = (match next.take() {
            Some(first) => Some(first),
            None => ended.recv().await,
        }) else {
            return;
        };
        has_counted.store(true, Ordering::Relaxed);
        if !first.is_small() {
            let database = database.clone();
            tokio::spawn(async move { deliver(&database, vec![first], true).await });
            continue;
        }
        let mut bytes = first.run.bytes();
        let mut batch = vec![first];
        while batch.len() < MOST_RUNS {
            let Ok(pending) = ended.try_recv() else { break };
            bytes += pending.run.bytes();
            if !pending.is_small() || bytes > MOST_BYTES {
                next = Some(pending);
                break;
            }
            batch.push(pending);
        }
        let database = database.clone();
        tokio::spawn(async move {
            deliver(&database, batch, false).await;
            drop(place);
        });
    }
}

/// Records them, and retries until Postgres has taken or refused each.
async fn deliver(database: &Database, mut batch: Vec<Pending>, in_turn: bool) {
    let deadline = batch.iter().map(|pending| pending.deadline).min().unwrap_or_else(Instant::now);
    let recorded = {
        let runs: Vec<&EndedRun> = batch.iter().map(|pending| &pending.run).collect();
        let finish = || database.finish_many(&runs, in_turn);
        finish
            .retry(UNTIL_TAKEN)
            .when(|error: &DatabaseError| error.is_passing() && Instant::now() < deadline)
            .notify(|error, pause| {
                tracing::warn!(runs = runs.len(), %error, "can't record outcomes yet; retrying in {pause:?}");
            })
            .await
    };
    match recorded {
        Ok(answers) => batch.into_iter().zip(answers).for_each(|(pending, answer)| pending.answer(answer)),
        Err(error) if batch.len() == 1 => {
            batch.into_iter().for_each(|pending| pending.answer(Err(error.clone())));
        }
        // One of them fails the statement as a whole.
        Err(_) => {
            while let Some(alone) = batch.pop() {
                Box::pin(deliver(database, vec![alone], false)).await;
            }
        }
    }
}

/// Adds the counts of uses to the capabilities, while there are new ones.
async fn fold(database: Database, has_counted: Arc<AtomicBool>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(FOLDING) => {}
        }
        if has_counted.swap(false, Ordering::Relaxed)
            && let Err(error) = database.fold_usage().await
        {
            has_counted.store(true, Ordering::Relaxed);
            tracing::debug!(%error, "can't add up the counts of uses");
        }
    }
}
