//! Calls from sandboxed code, and the handler that answers them.

use std::{collections::HashMap, future::Future, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Clock, CpuMeter, Json, Limits, Tenant, pool::Run};

/// Whether the code called `mcp` or `capabilities`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// `mcp.ns.action(…)` or `mcp["…"](…)`.
    Tool,
    /// `capabilities.name(…)` or `capabilities["…"](…)`.
    Capability,
}

/// One call from the code that is waiting for its result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Call {
    /// Counts up from 0 in each run.
    pub number: u32,
    /// The node of the static structure that made it, if the code is instrumented.
    pub node: Option<String>,
    /// Tool or capability.
    pub kind: CallKind,
    /// `ns:action`, or the key in the brackets.
    pub target: String,
    /// The first argument; `{}` if there was none.
    pub args: Json,
    /// The tenant of the run.
    pub tenant: Tenant,
    /// Nesting depth of the run; 0 for a top-level run.
    pub depth: u32,
    /// The limits of the run; `wall_time` is what is left of it.
    pub limits: Limits,
    /// Display names of targets, from the run.
    pub(crate) names: Arc<HashMap<String, String>>,
    /// Measures the wall time; pause it while waiting for someone outside the run, such as a person.
    pub clock: Clock,
    /// Counts the CPU time of the run.
    pub(crate) cpu: CpuMeter,
}

impl Call {
    /// A nested run that answers this call: same tenant, one level deeper, with the time its caller has left.
    #[must_use]
    pub fn nested_run(&self, code: impl Into<String>, args: Json) -> Run {
        Run {
            tenant: self.tenant.clone(),
            code: code.into(),
            args,
            limits: Limits {
                wall_time: self.limits.wall_time.max(Duration::from_millis(1)),
                ..self.limits.clone()
            },
            names: self.names.clone(),
            depth: self.depth + 1,
            cpu: self.cpu.clone(),
            around: Some(self.clock.clone()),
        }
    }
}

/// Why a call failed; reaches the code as an `Error` with the tool's name in front of the message.
#[derive(Clone, Debug, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct CallError {
    /// For people and models.
    pub message: String,
    /// For the code, as `error.data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
}

impl CallError {
    /// An error with a message only.
    pub fn new(message: impl Into<String>) -> CallError {
        CallError { message: message.into(), data: None }
    }
}

/// Answers the calls of a run. Calls that are outstanding together are answered together.
pub trait CallHandler: Sync {
    /// Asked once when the run has its slot, which may be long after it was queued. An error ends it before it begins.
    fn admit(&self) -> Result<(), String> {
        Ok(())
    }

    /// Answers one call. Dropped if the run ends first.
    fn call(&self, call: Call) -> impl Future<Output = Result<Json, CallError>> + Send;
}

impl<F, Answer> CallHandler for F
where
    F: Fn(Call) -> Answer + Sync,
    Answer: Future<Output = Result<Json, CallError>> + Send,
{
    fn call(&self, call: Call) -> impl Future<Output = Result<Json, CallError>> + Send {
        self(call)
    }
}
