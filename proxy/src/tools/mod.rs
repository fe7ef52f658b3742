//! The tools that a scope has: the built-in ones, its capabilities, and those of the downstream servers.

pub mod answer;
pub mod builtin;
pub(crate) mod known;
pub mod registration;

use std::{sync::Arc, time::Duration};

use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json, value::RawValue};

use crate::{
    app::App,
    database::{Database, DatabaseError, ToolRow},
    scope::{Caller, Scope},
};

const SHORT_WAIT: Duration = Duration::from_secs(2);

/// All tools of the caller's scope, on one page: most clients read no second one.
pub async fn list(app: &Arc<App>, caller: &Caller) -> Result<Arc<Vec<Tool>>, DatabaseError> {
    registration::scope_in_use(app, caller).await;
    let last = app.known.last_list(caller.scope());
    // With something to fall back on, nobody needs to wait for Postgres for long.
    let database = if last.is_some() { app.database.in_a_hurry(SHORT_WAIT) } else { app.database.clone() };
    let tools = match current(app, caller, &database).await {
        Err(error) if error.is_passing() => {
            tracing::warn!(%error, "the last known list of tools is given");
            last.ok_or(error)?
        }
        listed => listed?,
    };
    app.changes.was_given(caller.scope(), &tools);
    Ok(tools)
}

/// The list as it is now, for those who were given one before.
pub(crate) async fn list_again(app: &Arc<App>, scope: &Scope) -> Result<Arc<Vec<Tool>>, DatabaseError> {
    let caller = app.own_caller(scope.clone());
    current(app, &caller, &app.database.in_a_hurry(SHORT_WAIT)).await
}

/// What Postgres says, unless that is known.
async fn current(
    app: &Arc<App>,
    caller: &Caller,
    database: &Database,
) -> Result<Arc<Vec<Tool>>, DatabaseError> {
    if let Some(tools) = app.known.list(caller.scope()) {
        return Ok(tools);
    }
    let asked = app.known.moment();
    let rows = database.tools(caller, &app.server_names).await?;
    let mut tools = builtin::tools().to_vec();
    tools.extend(rows.into_iter().map(listed));
    let tools = Arc::new(tools);
    app.known.keep_list(caller.scope(), tools.clone(), asked);
    Ok(tools)
}

fn listed(row: ToolRow) -> Tool {
    let mut tool = match &row.definition {
        Some(definition) => defined(definition),
        None => described(row.description, row.input_schema, row.output_schema),
    };
    if tool.input_schema.get("type") != Some(&json!("object")) {
        // MCP wants an object's schema, whatever was inferred or registered.
        Arc::make_mut(&mut tool.input_schema).insert("type".into(), json!("object"));
    }
    tool.name = row.tool_name.into();
    tool.title.get_or_insert_with(|| row.name.clone());
    let mut ours = vec![("kind", json!(row.kind)), ("name", json!(row.name))];
    ours.extend(row.server.map(|server| ("server", json!(server))));
    ours.extend(row.fqdn.map(|fqdn| ("fqdn", json!(fqdn))));
    tool.meta.get_or_insert_default().0.extend(answer::tool_meta(ours).0);
    tool
}

/// A tool as its server lists it; if MCP has no such tool, what can be used of it.
fn defined(definition: &RawValue) -> Tool {
    serde_json::from_str(definition.get()).unwrap_or_else(|_| {
        let mut parts: JsonObject = serde_json::from_str(definition.get()).unwrap_or_default();
        let description = parts.get("description").and_then(Value::as_str).map(str::to_owned);
        described(description, parts.remove("inputSchema"), parts.remove("outputSchema"))
    })
}

fn described(description: Option<String>, input: Option<Value>, output: Option<Value>) -> Tool {
    let object = |schema: Option<Value>| match schema {
        Some(Value::Object(schema)) => Some(Arc::new(schema)),
        _ => None,
    };
    let mut tool = Tool::default();
    tool.description = description.map(Into::into);
    tool.input_schema = object(input).unwrap_or_default();
    tool.output_schema = object(output);
    tool
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::defined;

    #[test]
    fn a_tool_that_mcp_does_not_know_is_listed_as_far_as_it_goes() {
        let tool = json!({"name": "a", "title": 5, "description": "d", "outputSchema": {"type": "object"}});
        let tool = defined(&to_raw_value(&tool).unwrap());
        assert_eq!((tool.description.as_deref(), tool.title.as_deref()), (Some("d"), None));
        assert!(tool.input_schema.is_empty() && tool.output_schema.is_some());
    }
}
