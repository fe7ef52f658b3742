//! The outcome of a run, as `pml_finish_many` takes it.

use std::time::Duration;

use pml_worker::{CallKind, Failure, Json, LogEntry, MissedCall, Outcome, Trace};
use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub(super) struct RunOutcome {
    pub(super) success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<RunError>,
    pub(super) duration_ms: u64,
    pub(super) path: Vec<String>,
    pub(super) decisions: Vec<Decision>,
    pub(super) tasks: Vec<Task>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) logs: Vec<LogEntry>,
    /// Calls that timers would have made after the code had returned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) missed_calls: Vec<MissedCall>,
    /// Of a nested capability only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fqdn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<i64>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct RunError {
    pub(super) kind: RunErrorKind,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<String>,
}

/// Why a run failed. Agents read its name in `error.kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub(super) enum RunErrorKind {
    /// The code threw, or returned what JSON can't hold.
    Thrown,
    /// A limit of the run, or of its token.
    Limit,
    Cancelled,
    /// The proxy was shut down.
    Shutdown,
    Crashed,
    Protocol,
    QueueFull,
    Invalid,
    Unavailable,
    Closed,
    /// A failure that the sandbox has and this list doesn't.
    Other,
}

impl RunErrorKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            RunErrorKind::Thrown => "thrown",
            RunErrorKind::Limit => "limit",
            RunErrorKind::Cancelled => "cancelled",
            RunErrorKind::Shutdown => "shutdown",
            RunErrorKind::Crashed => "crashed",
            RunErrorKind::Protocol => "protocol",
            RunErrorKind::QueueFull => "queue_full",
            RunErrorKind::Invalid => "invalid",
            RunErrorKind::Unavailable => "unavailable",
            RunErrorKind::Closed => "closed",
            RunErrorKind::Other => "error",
        }
    }
}

impl From<RunErrorKind> for &'static str {
    fn from(kind: RunErrorKind) -> &'static str {
        kind.name()
    }
}

impl From<&Failure> for RunErrorKind {
    fn from(failure: &Failure) -> RunErrorKind {
        match failure {
            Failure::Thrown(_) => RunErrorKind::Thrown,
            Failure::Limit { .. } => RunErrorKind::Limit,
            Failure::Crashed { .. } => RunErrorKind::Crashed,
            Failure::Protocol { .. } => RunErrorKind::Protocol,
            Failure::QueueFull { .. } => RunErrorKind::QueueFull,
            Failure::Invalid { .. } => RunErrorKind::Invalid,
            Failure::NotAdmitted { .. } => RunErrorKind::Limit,
            Failure::Unavailable { .. } => RunErrorKind::Unavailable,
            Failure::Closed => RunErrorKind::Closed,
            _ => RunErrorKind::Other,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Decision {
    pub(super) node: String,
    pub(super) outcome: String,
}

/// One call that the code made.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Task {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<String>,
    pub(super) kind: TaskKind,
    pub(super) target: String,
    pub(super) args: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Json>,
    pub(super) success: bool,
    pub(super) duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// The number of the call in its run.
    #[serde(skip)]
    pub(super) number: u32,
    /// `false` if the code didn't await it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) awaited: Option<bool>,
    /// Its line, if it wasn't awaited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u32>,
    /// The run of a capability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<Box<RunOutcome>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TaskKind {
    Tool,
    Capability,
}

impl From<CallKind> for TaskKind {
    fn from(kind: CallKind) -> TaskKind {
        match kind {
            CallKind::Tool => TaskKind::Tool,
            CallKind::Capability => TaskKind::Capability,
        }
    }
}

impl RunOutcome {
    /// The sandbox's outcome, with the recorded calls.
    pub(super) fn of(outcome: Outcome, mut tasks: Vec<Task>) -> RunOutcome {
        let (result, error) = match outcome.result {
            Ok(result) => (Some(result), None),
            Err(failure) => (None, Some(RunError::of(&failure))),
        };
        for left in &outcome.unawaited {
            if let Some(task) = tasks.iter_mut().find(|task| task.number == left.call) {
                task.awaited = Some(false);
                task.line = left.line;
            }
        }
        RunOutcome {
            success: error.is_none(),
            result,
            error,
            duration_ms: millis(outcome.usage.wall_time),
            path: outcome.trace.path().map(str::to_owned).collect(),
            decisions: decisions(&outcome.trace),
            tasks,
            logs: outcome.logs,
            missed_calls: outcome.missed,
            fqdn: None,
            version: None,
        }
    }

    /// A run that was stopped, with its calls so far.
    pub(super) fn stopped(kind: RunErrorKind, message: &str, took: Duration, tasks: Vec<Task>) -> RunOutcome {
        RunOutcome {
            success: false,
            result: None,
            error: Some(RunError::new(kind, message)),
            duration_ms: millis(took),
            path: tasks.iter().filter_map(|task| task.node.clone()).collect(),
            decisions: Vec::new(),
            tasks,
            logs: Vec::new(),
            missed_calls: Vec::new(),
            fqdn: None,
            version: None,
        }
    }

    /// The same run with this error instead of its result.
    pub(super) fn without_result(self, kind: RunErrorKind, message: &str) -> RunOutcome {
        RunOutcome { success: false, result: None, error: Some(RunError::new(kind, message)), ..self }
    }

    pub(super) fn for_postgres(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "null".to_owned())
    }
}

impl RunError {
    fn new(kind: RunErrorKind, message: impl Into<String>) -> RunError {
        RunError { kind, message: message.into(), line: None, node: None, tool: None }
    }

    /// The message for a caller that can't see this code.
    pub(super) fn for_caller(&self) -> String {
        match self.line {
            Some(line) => format!("{} (line {line})", self.message),
            None => self.message.clone(),
        }
    }

    /// The sandbox failed, not the code. The message holds nothing of the code and may be logged.
    pub(super) fn is_sandbox_failure(&self) -> bool {
        matches!(self.kind, RunErrorKind::Crashed | RunErrorKind::Protocol)
    }

    pub(super) fn of(failure: &Failure) -> RunError {
        let mut error = RunError::new(failure.into(), failure.to_string());
        match failure {
            Failure::Thrown(thrown) => {
                error.message = format!("{}: {}", thrown.name, thrown.message);
                error.line = thrown.line;
                error.node.clone_from(&thrown.node);
                error.tool.clone_from(&thrown.target);
            }
            Failure::Limit { node, .. } => error.node.clone_from(node),
            _ => {}
        }
        error
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn decisions(trace: &Trace) -> Vec<Decision> {
    let own = |(node, outcome): (&str, &str)| Decision { node: node.to_owned(), outcome: outcome.to_owned() };
    trace.decisions().map(own).collect()
}
