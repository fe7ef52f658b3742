//! The outcome of a run: result or failure, path, logs and resource usage.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{CallError, CallKind, Full, FullOf, Json, LimitKind, Limits};

/// The outcome of a run; every run has exactly one.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// What the code returned, or why it failed.
    pub result: Result<Json, Failure>,
    /// The path that the run took.
    pub trace: Trace,
    /// What the code wrote to `console`, oldest first.
    pub logs: Vec<LogEntry>,
    /// What the run used.
    pub usage: Usage,
    /// Calls that the code didn't await before it returned: still running, or failed unnoticed.
    pub unawaited: Vec<Unawaited>,
    /// Calls that pending timers would have made after the code had returned. They were not made.
    pub missed: Vec<MissedCall>,
}

/// A call that the code didn't await.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unawaited {
    /// Which of the run's calls, counted from 0 in the order in which they were made.
    pub call: u32,
    /// The line of the source that made it, if known.
    pub line: Option<u32>,
}

/// A call that would have been made after the code had returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedCall {
    /// What it would have called.
    pub target: String,
    /// The line of the source, if known.
    pub line: Option<u32>,
}

/// Why a run has no result.
#[derive(Clone, Debug, thiserror::Error, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Failure {
    /// The code threw, doesn't parse, or returned what JSON can't hold.
    #[error("{0}")]
    Thrown(Box<Thrown>),
    /// The run reached one of its limits.
    #[error("the run met its limit {limit} ({value}): {advice}")]
    Limit {
        /// Which one.
        limit: LimitKind,
        /// Its value.
        value: String,
        /// What the author of the code can do.
        advice: &'static str,
        /// The node that was running, if known.
        node: Option<String>,
    },
    /// The worker process died during the run. No other run is affected; this one may be retried.
    #[error("the sandbox process ended during the run ({how}); other runs are not affected")]
    Crashed {
        /// The signal or exit status.
        how: String,
    },
    /// The worker violated the protocol and was killed.
    #[error("the sandbox process broke its protocol ({what}) and was killed; other runs are not affected")]
    Protocol {
        /// What it sent.
        what: String,
    },
    /// The queue is full; the run was not started.
    #[error(
        "the queue is full: {what}, which is the most allowed; try again later or raise {setting} (pml: worker_{setting})",
        what = match .setting {
            QueueSetting::Queue => format!("{most} runs wait"),
            QueueSetting::QueuePerTenant => format!("{most} runs wait for this tenant"),
            QueueSetting::QueueBytes => format!("waiting runs hold {most} bytes of code and arguments"),
            QueueSetting::QueueBytesPerTenant => {
                format!("waiting runs of this tenant hold {most} bytes of code and arguments")
            }
        }
    )]
    QueueFull {
        /// The bound.
        most: usize,
        /// The field of the pool's configuration that sets it.
        setting: QueueSetting,
    },
    /// The run itself is invalid.
    #[error("the run was not started: {why}")]
    Invalid {
        /// What is wrong with it.
        why: String,
    },
    /// The handler refused the run when its turn had come.
    #[error("the run was not started: {why}")]
    NotAdmitted {
        /// What the handler said.
        why: String,
    },
    /// No process could be started for the run.
    #[error("no sandbox process could be started: {why}")]
    Unavailable {
        /// What went wrong.
        why: String,
    },
    /// The pool was closed before the run began.
    #[error("the pool is closed")]
    Closed,
}

/// A field of the pool's configuration that bounds its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is a field of PoolConfig")]
pub enum QueueSetting {
    Queue,
    QueuePerTenant,
    QueueBytes,
    QueueBytesPerTenant,
}

impl QueueSetting {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            QueueSetting::Queue => "queue",
            QueueSetting::QueuePerTenant => "queue_per_tenant",
            QueueSetting::QueueBytes => "queue_bytes",
            QueueSetting::QueueBytesPerTenant => "queue_bytes_per_tenant",
        }
    }
}

impl std::fmt::Display for QueueSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Full> for Failure {
    fn from(full: Full) -> Failure {
        let setting = match full.of {
            FullOf::Waiting => QueueSetting::Queue,
            FullOf::WaitingOfTenant => QueueSetting::QueuePerTenant,
            FullOf::Bytes => QueueSetting::QueueBytes,
            FullOf::BytesOfTenant => QueueSetting::QueueBytesPerTenant,
        };
        Failure::QueueFull { most: full.most, setting }
    }
}

impl Failure {
    pub(crate) fn limit(limit: LimitKind, limits: &Limits, node: Option<String>) -> Failure {
        Failure::Limit { limit, value: limits.describe(limit), advice: limit.advice(), node }
    }
}

/// An exception that the code didn't catch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Thrown {
    /// The error's class: `TypeError`, `ToolError`, `SyntaxError`, …
    pub name: String,
    /// Its message.
    pub message: String,
    /// Where it happened, in lines of the source; may be empty.
    pub stack: String,
    /// The line of the innermost place in the source, if there is one.
    pub line: Option<u32>,
    /// The node that failed or ran last, if the code is instrumented.
    pub node: Option<String>,
    /// The name of the tool or capability whose call failed, if that is the cause.
    pub target: Option<String>,
}

impl std::fmt::Display for Thrown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.message)?;
        if !self.stack.is_empty() {
            write!(f, "\n{}", self.stack)?;
        }
        Ok(())
    }
}

/// The path of a run, in order.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Trace {
    /// Visits, decisions and calls in the order in which they began.
    pub events: Vec<TraceEvent>,
    /// Visits and decisions that were past the limit `trace_events` and are not in `events`.
    pub dropped: u64,
}

impl Trace {
    /// The node ids in the order in which they were reached.
    pub fn path(&self) -> impl Iterator<Item = &str> {
        self.events.iter().filter_map(|event| match event {
            TraceEvent::Visit { node } | TraceEvent::Decision { node, .. } => Some(node.as_str()),
            TraceEvent::Call(call) => call.node.as_deref(),
        })
    }

    /// The decisions as node id and outcome, in order.
    pub fn decisions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.events.iter().filter_map(|event| match event {
            TraceEvent::Decision { node, outcome } => Some((node.as_str(), outcome.as_str())),
            TraceEvent::Visit { .. } | TraceEvent::Call(_) => None,
        })
    }

    /// The calls, in the order in which they were made.
    pub fn calls(&self) -> impl Iterator<Item = &CallRecord> {
        self.events.iter().filter_map(|event| match event {
            TraceEvent::Call(call) => Some(call),
            TraceEvent::Visit { .. } | TraceEvent::Decision { .. } => None,
        })
    }
}

/// One step of a run.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TraceEvent {
    /// A node was reached.
    Visit {
        /// Its id.
        node: String,
    },
    /// A decision was taken.
    Decision {
        /// Its id.
        node: String,
        /// `true`, `false`, `case:…`, `default` or `catch`.
        outcome: String,
    },
    /// A tool or capability was called.
    Call(CallRecord),
}

/// One call and its answer.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CallRecord {
    /// The node that made it, if the code is instrumented.
    pub node: Option<String>,
    /// Tool or capability.
    #[serde(rename = "call")]
    pub kind: CallKind,
    /// What was called.
    pub target: String,
    /// With what.
    pub args: Json,
    /// When it began, from the start of the run.
    pub start: Duration,
    /// How long the answer took; until the end of the run if there was none.
    pub duration: Duration,
    /// The answer.
    pub answer: Answer,
}

/// How a call ended.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// With a value.
    Result(Json),
    /// With an error.
    Error(CallError),
    /// The run ended first, and the call was dropped.
    Unfinished,
}

/// The severity of a log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are those of console's methods")]
pub enum LogLevel {
    Debug,
    Info,
    Log,
    Warn,
    Error,
}

/// One line that the code wrote to `console`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct LogEntry {
    /// Which method wrote it.
    pub level: LogLevel,
    /// The text.
    pub text: String,
}

/// What a run used.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Usage {
    /// From start to outcome as measured by the parent, without the time in the queue.
    pub wall_time: Duration,
    /// CPU time as reported by the worker; zero if it died.
    pub cpu_time: Duration,
    /// Peak heap size in bytes as reported by the worker; zero if it died.
    pub memory_peak: u64,
    /// Bytes of JSON sent out.
    pub output: u64,
    /// Bytes written to `console`.
    pub logs: u64,
    /// Calls made.
    pub calls: u64,
}
