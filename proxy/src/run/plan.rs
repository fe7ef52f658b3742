//! The plan that `pml_begin` returns for a request.

use std::collections::HashMap;

use pml_worker::{Json, aside_if_large};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use uuid::Uuid;

use crate::downstream::{Call, CallBody};

/// What to do.
pub enum Plan {
    /// Run code in the sandbox.
    Run(Box<RunPlan>),
    /// Call a tool of a downstream server.
    Tool(Call),
    /// Nothing to run; this is the answer.
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
    /// The capabilities that the code calls, directly or nested, by the target of the call.
    #[serde(default)]
    pub capabilities: HashMap<String, Nested>,
    /// Names for those that were deleted or can't be seen, by the target of the call.
    #[serde(default)]
    pub missing: HashMap<String, String>,
}

/// What `pml_callable` returns for a capability that code names only at run time.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Callable {
    /// Its target; `None` if there is no such capability.
    pub key: Option<String>,
    #[serde(default)]
    pub capabilities: HashMap<String, Nested>,
    #[serde(default)]
    pub missing: HashMap<String, String>,
}

/// A capability that the code calls.
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
    args: Option<JsonObject>,
}

impl From<ToolPlan> for Call {
    fn from(ToolPlan { server, tool, args }: ToolPlan) -> Call {
        Call { server, tool, body: CallBody::Parsed(args) }
    }
}

#[derive(Deserialize)]
struct PlanHead {
    status: PlanStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PlanStatus {
    Run,
    Tool,
    #[serde(other)]
    Answer,
}

impl RunPlan {
    /// Restores the order of the arguments' keys, which jsonb has changed.
    fn order_args(&mut self, given: &Value) {
        if !has_order(given) {
            return;
        }
        aside_if_large(self.args.get().len(), || {
            if let Ok(args) = self.args.parse::<Value>() {
                self.args = in_order_of(given, args).into();
            }
        });
    }

    /// Names for the FQDNs in the linked code, which agents never see.
    pub fn names(&self) -> HashMap<String, String> {
        let called = self.capabilities.iter().map(|(key, nested)| (key.clone(), nested.name.clone()));
        called.chain(self.missing.clone()).collect()
    }
}

/// The same value, with the keys of `given` first and in their order; defaults come after them.
fn in_order_of(given: &Value, value: Value) -> Value {
    match (given, value) {
        (Value::Object(given), Value::Object(mut fields)) => {
            let mut ordered = JsonObject::new();
            for (key, given) in given {
                if let Some(value) = fields.shift_remove(key) {
                    ordered.insert(key.clone(), in_order_of(given, value));
                }
            }
            ordered.extend(fields);
            Value::Object(ordered)
        }
        (Value::Array(given), Value::Array(values)) if given.len() == values.len() => {
            Value::Array(given.iter().zip(values).map(|(given, value)| in_order_of(given, value)).collect())
        }
        (_, value) => value,
    }
}

/// Whether there is an object of several keys in it.
fn has_order(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.len() > 1 || fields.values().any(has_order),
        Value::Array(values) => values.iter().any(has_order),
        _ => false,
    }
}

impl Plan {
    /// Gives the arguments the form in which the client sent them.
    pub(super) fn keep_args(&mut self, given: &Value) {
        match self {
            Plan::Run(plan) => plan.order_args(given),
            Plan::Tool(call) => call.body = CallBody::Parsed(given.as_object().cloned()),
            Plan::Answer(_) => {}
        }
    }

    pub fn parse(plan: &RawValue) -> Result<Plan, serde_json::Error> {
        let PlanHead { status } = serde_json::from_str(plan.get())?;
        match status {
            PlanStatus::Run => serde_json::from_str(plan.get()).map(|plan| Plan::Run(Box::new(plan))),
            PlanStatus::Tool => {
                serde_json::from_str(plan.get()).map(|plan: ToolPlan| Plan::Tool(plan.into()))
            }
            PlanStatus::Answer => serde_json::from_str(plan.get()).map(Plan::Answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::in_order_of;

    #[test]
    fn given_keys_come_first_and_in_their_order() {
        let given = json!({"z": 1, "a": [{"y": 1, "b": 2}, 3], "gone": 0});
        let merged = json!({"a": [{"b": 2, "y": 1}, 3], "default": true, "z": 1});
        let ordered = r#"{"z":1,"a":[{"y":1,"b":2},3],"default":true}"#;
        assert_eq!(in_order_of(&given, merged).to_string(), ordered);
    }
}
