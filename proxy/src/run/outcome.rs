//! What came of a run, as `pml_finish` takes it.

use std::time::Duration;

use pml_worker::{CallKind, Failure, Json, LogEntry, Outcome, Trace};
use serde::Serialize;
use serde_json::value::RawValue;

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
    /// Of a nested capability only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fqdn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<i64>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct RunError {
    pub(super) kind: &'static str,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<String>,
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
    /// `false` if the code left it running, or never looked at its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) awaited: Option<bool>,
    /// The line that made it, told of calls that weren't awaited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u32>,
    /// What a capability did inside.
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
    /// The sandbox's outcome with the calls as we answered them.
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
            fqdn: None,
            version: None,
        }
    }

    /// A run that was stopped, with the calls that it had made.
    pub(super) fn stopped(kind: &'static str, message: &str, took: Duration, tasks: Vec<Task>) -> RunOutcome {
        let error = RunError { kind, message: message.to_owned(), line: None, node: None, tool: None };
        RunOutcome {
            success: false,
            result: None,
            error: Some(error),
            duration_ms: millis(took),
            path: tasks.iter().filter_map(|task| task.node.clone()).collect(),
            decisions: Vec::new(),
            tasks,
            logs: Vec::new(),
            fqdn: None,
            version: None,
        }
    }

    /// The same run with this error in the place of its result.
    pub(super) fn without_result(self, kind: &'static str, message: &str) -> RunOutcome {
        let error = RunError { kind, message: message.to_owned(), line: None, node: None, tool: None };
        RunOutcome { success: false, result: None, error: Some(error), ..self }
    }

    pub(super) fn for_postgres(&self) -> Box<RawValue> {
        serde_json::value::to_raw_value(self).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }
}

impl RunError {
    /// What went wrong, for whoever called this code and can't see it.
    pub(super) fn for_caller(&self) -> String {
        match self.line {
            Some(line) => format!("{} (line {line})", self.message),
            None => self.message.clone(),
        }
    }

    /// Not the code's doing; the message holds nothing of the code's either.
    pub(super) fn is_of_the_sandbox(&self) -> bool {
        matches!(self.kind, "crashed" | "protocol")
    }

    pub(super) fn of(failure: &Failure) -> RunError {
        let mut error =
            RunError { kind: "error", message: failure.to_string(), line: None, node: None, tool: None };
        match failure {
            Failure::Thrown(thrown) => {
                error.kind = "thrown";
                error.message = format!("{}: {}", thrown.name, thrown.message);
                error.line = thrown.line;
                error.node.clone_from(&thrown.node);
                error.tool.clone_from(&thrown.target);
            }
            Failure::Limit { node, .. } => {
                error.kind = "limit";
                error.node.clone_from(node);
            }
            Failure::Crashed { .. } => error.kind = "crashed",
            Failure::Protocol { .. } => error.kind = "protocol",
            Failure::QueueFull { .. } => error.kind = "queue_full",
            Failure::Invalid { .. } => error.kind = "invalid",
            Failure::Unavailable { .. } => error.kind = "unavailable",
            Failure::Closed => error.kind = "closed",
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
