//! The plan that `pml_plan` returns for a request.

use std::collections::{BTreeSet, HashMap};

use pml_core::arguments::{self, ArgumentsError};
use pml_worker::Json;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// What to do.
pub enum Plan {
    /// Run code in the sandbox.
    Run(Box<RunPlan>),
    /// Call this tool of a downstream server.
    Tool(ServerTool),
    /// Nothing to run; this is the answer.
    Answer(Value),
}

/// A tool of a downstream server, by its own names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerTool {
    pub server: String,
    pub tool: String,
}

/// A run without its arguments. That of a capability holds for every call of it.
#[derive(Debug, Deserialize)]
pub struct RunPlan {
    pub mode: String,
    pub executable: String,
    pub name: Option<String>,
    /// Of a capability.
    pub fqdn: Option<String>,
    pub parameters_schema: Option<Json>,
    /// Whether the schema was declared, so that its defaults are filled in; one inferred from the code only validates.
    #[serde(default)]
    pub parameters_explicit: bool,
    /// The capabilities that the code calls, directly or nested, by the target of the call.
    #[serde(default)]
    pub capabilities: HashMap<String, Nested>,
    /// Names for those that were deleted or can't be seen, by the target of the call.
    #[serde(default)]
    pub missing: HashMap<String, String>,
    /// The structure, for the answer.
    pub dag: Value,
    /// What `pml_finish_many` needs to know of it.
    pub context: Json,
}

/// What `pml_callable` returns for a capability that code names only at run time.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Callable {
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
    /// Names for the FQDNs in the linked code, which agents never see.
    pub fn names(&self) -> HashMap<String, String> {
        let called = self.capabilities.iter().map(|(key, nested)| (key.clone(), nested.name.clone()));
        called.chain(self.missing.clone()).collect()
    }

    /// The arguments that its code gets, if they fit.
    pub(crate) fn checked(&self, args: Json) -> Result<Json, ArgumentsError> {
        checked(args, self.parameters_schema.as_ref(), self.parameters_explicit)
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let nested = self.capabilities.values().map(|nested| nested.executable.len() + 1_000);
        self.executable.len() + self.context.get().len() + nested.sum::<usize>() + 1_000
    }

    /// The projects (`org.project`) of the capabilities that it depends on.
    pub(crate) fn projects(&self) -> BTreeSet<String> {
        let called = self.capabilities.values().map(|nested| nested.fqdn.as_str());
        let others = self.missing.keys().map(String::as_str);
        called.chain(others).chain(self.fqdn.as_deref()).filter_map(project_of).collect()
    }
}

/// The first two parts of an FQDN.
fn project_of(fqdn: &str) -> Option<String> {
    let (org, rest) = fqdn.split_once('.')?;
    let (project, _) = rest.split_once('.')?;
    Some(format!("{org}.{project}"))
}

/// The arguments, checked against a capability's schema, with the defaults of a declared one.
pub(crate) fn checked(args: Json, schema: Option<&Json>, is_explicit: bool) -> Result<Json, ArgumentsError> {
    let Some(schema) = schema else { return Ok(args) };
    if !is_explicit {
        return arguments::validate(schema.get(), args.get()).map(|()| args);
    }
    let merged = arguments::check(schema.get(), args.get())?;
    Json::from_text(merged).map_err(|error| arguments::unreadable("The arguments", &error))
}

impl Plan {
    pub fn parse(plan: &RawValue) -> Result<Plan, serde_json::Error> {
        let PlanHead { status } = serde_json::from_str(plan.get())?;
        match status {
            PlanStatus::Run => serde_json::from_str(plan.get()).map(|plan| Plan::Run(Box::new(plan))),
            PlanStatus::Tool => serde_json::from_str(plan.get()).map(Plan::Tool),
            PlanStatus::Answer => serde_json::from_str(plan.get()).map(Plan::Answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::RunPlan;

    #[test]
    fn a_plan_depends_on_the_projects_of_all_that_it_calls() {
        let nested = json!({"name": "x", "fqdn": "b.q.n.a.2222", "version": 1, "executable": "", "parameters_schema": null});
        let plan: RunPlan = serde_json::from_value(json!({
            "mode": "call_by_name", "executable": "", "name": "n", "fqdn": "a.p.n.a.1111", "dag": {}, "context": {},
            "capabilities": {"b.q.n.a.2222@v1": nested}, "missing": {"c.r.n.a.3333": "unknown:capability"}
        }))
        .unwrap();
        assert_eq!(plan.projects().into_iter().collect::<Vec<_>>(), ["a.p", "b.q", "c.r"]);
    }
}
