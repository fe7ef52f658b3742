//! The plan that `pml_begin` makes of a request.

use std::collections::HashMap;

use pml_worker::Json;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use uuid::Uuid;

use crate::downstream::{Call, CallBody};

/// What is to be done.
pub enum Plan {
    /// Run code here.
    Run(Box<RunPlan>),
    /// Call a tool of a downstream server.
    Tool(Call),
    /// Nothing is to be run; this is the answer.
    Answer(Value),
}

#[derive(Debug, Deserialize)]
pub struct RunPlan {
    pub mode: String,
    pub workflow_id: Uuid,
    pub executable: String,
    pub args: Json,
    pub name: Option<String>,
    pub timeout_ms: Option<u64>,
    /// The capabilities that the code may call, also those that only nested ones call, by the target of the call.
    #[serde(default)]
    pub capabilities: HashMap<String, Nested>,
    /// What stands for those that were deleted or can't be seen any more, by the target of the call.
    #[serde(default)]
    pub missing: HashMap<String, String>,
}

/// What `pml_callable` knows of a capability that code names only while it runs.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Callable {
    /// The target that stands for it; `None` if there is no such capability.
    pub key: Option<String>,
    #[serde(default)]
    pub capabilities: HashMap<String, Nested>,
    #[serde(default)]
    pub missing: HashMap<String, String>,
}

/// A capability that the code may call.
#[derive(Debug, Deserialize)]
pub struct Nested {
    pub name: String,
    pub fqdn: String,
    pub version: Option<i64>,
    pub executable: String,
    pub parameters_schema: Option<Json>,
    /// Whether the schema was declared, so that its defaults are filled in; one inferred from the code only validates.
    #[serde(default)]
    pub parameters_explicit: bool,
}

#[derive(Deserialize)]
struct ToolPlan {
    server: String,
    tool: String,
    args: Option<rmcp::model::JsonObject>,
}

impl From<ToolPlan> for Call {
    fn from(ToolPlan { server, tool, args }: ToolPlan) -> Call {
        Call { server, tool, body: CallBody::Parsed(args) }
    }
}

#[derive(Deserialize)]
struct Status {
    status: String,
}

impl RunPlan {
    /// Names for the FQDNs that the linked code calls by and agents never see.
    pub fn names(&self) -> HashMap<String, String> {
        let called = self.capabilities.iter().map(|(key, nested)| (key.clone(), nested.name.clone()));
        called.chain(self.missing.clone()).collect()
    }
}

impl Plan {
    pub fn parse(plan: &RawValue) -> Result<Plan, serde_json::Error> {
        let Status { status } = serde_json::from_str(plan.get())?;
        match status.as_str() {
            "run" => serde_json::from_str(plan.get()).map(|plan| Plan::Run(Box::new(plan))),
            "tool" => serde_json::from_str(plan.get()).map(|plan: ToolPlan| Plan::Tool(plan.into())),
            _ => serde_json::from_str(plan.get()).map(Plan::Answer),
        }
    }
}
