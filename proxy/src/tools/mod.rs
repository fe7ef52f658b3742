//! The tools that a scope has: the built-in ones, its capabilities, and those of the downstream servers.

pub mod answer;
pub mod builtin;
pub(crate) mod known;
pub mod registration;

use std::{sync::Arc, time::Duration};

use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};

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
    let schema = object_schema(row.input_schema);
    let mut tool = Tool::new_with_raw(row.tool_name, row.description.map(Into::into), Arc::new(schema))
        .with_title(row.name.clone());
    if let Some(Value::Object(schema)) = row.output_schema {
        tool = tool.with_raw_output_schema(Arc::new(schema));
    }
    let mut meta = vec![("kind", json!(row.kind)), ("name", json!(row.name))];
    meta.extend(row.server.map(|server| ("server", json!(server))));
    meta.extend(row.fqdn.map(|fqdn| ("fqdn", json!(fqdn))));
    tool.with_meta(answer::tool_meta(meta))
}

/// MCP wants an object schema, whatever was inferred or registered.
fn object_schema(schema: Option<Value>) -> JsonObject {
    let mut schema = match schema {
        Some(Value::Object(schema)) => schema,
        _ => JsonObject::new(),
    };
    if schema.get("type") != Some(&json!("object")) {
        schema.insert("type".into(), json!("object"));
    }
    schema
}
