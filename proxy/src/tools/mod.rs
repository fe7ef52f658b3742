//! The tools of a scope: the built-in ones, its capabilities, and those of the downstream servers.

pub mod answer;
mod ask;
pub mod builtin;
pub(crate) mod cache;
mod kept_list;
mod registration;

use std::{sync::Arc, time::Duration};

use pml_worker::aside_if_large;
use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::watch;

use crate::{
    changes::Changes,
    database::{Database, DatabaseError, ToolRow},
    downstream::Downstreams,
    scope::{Caller, Scope},
};
use builtin::Builtins;
use cache::ToolCache;
use registration::Registration;
pub(crate) use registration::Unlisted;

/// The approximate bytes of a listed tool.
const TOOL_BYTES: usize = 512;

/// The approximate bytes of a list.
pub(crate) fn size(tools: &[Tool]) -> usize {
    TOOL_BYTES * tools.len()
}

/// How long a list waits for Postgres if there is an older list to fall back on.
const SHORT_WAIT: Duration = Duration::from_secs(2);

/// The tools of all scopes in use.
pub struct Catalog {
    database: Database,
    servers: Downstreams,
    /// The downstream servers that aren't disabled.
    pub server_names: Vec<String>,
    /// Most capabilities in a list; `pml_discover` finds all.
    pub(crate) list_limit: u32,
    pub(crate) cache: ToolCache,
    pub(crate) changes: Changes,
    registration: Registration,
    builtins: Builtins,
}

impl Catalog {
    pub fn new(database: Database, servers: Downstreams, list_limit: u32) -> Arc<Catalog> {
        Arc::new(Catalog {
            list_limit,
            server_names: servers.names(),
            database,
            servers,
            cache: ToolCache::default(),
            changes: Changes::default(),
            registration: Registration::default(),
            builtins: Builtins::default(),
        })
    }

    /// The tools of the caller's scope on one page, because most clients read no second one: of capabilities the most used.
    pub async fn list(self: &Arc<Self>, caller: &Caller) -> Result<Arc<Vec<Tool>>, DatabaseError> {
        self.register_servers(caller).await;
        let tools = self.current_or_last(caller).await?;
        self.changes.was_given(caller.scope(), &tools);
        Ok(tools)
    }

    /// Fails unless the caller may act in its scope, as listing its tools does.
    pub(crate) async fn check_access(&self, caller: &Caller) -> Result<(), DatabaseError> {
        self.current_or_last(caller).await.map(drop)
    }

    async fn current_or_last(&self, caller: &Caller) -> Result<Arc<Vec<Tool>>, DatabaseError> {
        let has_last = self.cache.has_list(caller.scope());
        let database = if has_last { self.database.in_a_hurry(SHORT_WAIT) } else { self.database.clone() };
        match self.current(caller, &database).await {
            Err(error) if error.is_passing() => {
                tracing::warn!(%error, "falling back to the last list of tools");
                self.cache.last_list(caller.scope()).ok_or(error)
            }
            listed => listed,
        }
    }

    /// The current list, to compare with what subscribers have.
    pub(crate) async fn list_again(&self, scope: &Scope) -> Result<Arc<Vec<Tool>>, DatabaseError> {
        let caller = Caller::proxy(scope.clone());
        self.current(&caller, &self.database.in_a_hurry(SHORT_WAIT)).await
    }

    /// Changes of the scope's list from now on.
    pub(crate) fn subscribe(&self, scope: &Scope) -> watch::Receiver<u64> {
        self.changes.subscribe(scope, self.cache.last_list(scope))
    }

    /// Drops the project's cached lists: who made a change sees it in the next list, even before the notification comes.
    pub(crate) fn invalidate(&self, scope: &Scope) {
        self.cache.invalidate(&scope.project_key());
    }

    /// Whether the configuration excludes it; it may have been registered before.
    fn is_excluded(&self, row: &ToolRow) -> bool {
        let tool = row.name.split_once(':').map_or("", |(_, tool)| tool);
        row.server.as_deref().is_some_and(|server| row.kind == "tool" && !self.servers.allows(server, tool))
    }

    /// From the cache, or else from Postgres.
    async fn current(&self, caller: &Caller, database: &Database) -> Result<Arc<Vec<Tool>>, DatabaseError> {
        if let Some(tools) = self.cache.list(caller.scope()) {
            return Ok(tools);
        }
        let asked = self.cache.moment();
        let (builtin, rows) = tokio::try_join!(
            database.agent_tools(caller),
            database.tools(caller, &self.server_names, self.list_limit)
        )?;
        let mut tools: Vec<Tool> = builtin.iter().map(|definition| defined(definition)).collect();
        self.builtins.keep(Arc::new(tools.clone()));
        aside_if_large(TOOL_BYTES * rows.len(), || {
            let rows = rows.into_iter().filter(|row| !self.is_excluded(row));
            tools.extend(rows.map(|row| {
                let server = row.server.as_deref().and_then(|server| self.servers.other_name(server));
                listed(row, server)
            }));
        });
        let tools = Arc::new(tools);
        self.cache.keep_list(caller.scope(), tools.clone(), asked);
        Ok(tools)
    }
}

/// `other_name` is the server's name in the configuration, if that isn't its identifier.
fn listed(row: ToolRow, other_name: Option<&str>) -> Tool {
    let mut tool = match &row.definition {
        Some(definition) => defined(definition),
        None => described(row.description, row.input_schema, row.output_schema),
    };
    if tool.input_schema.get("type") != Some(&json!("object")) {
        // MCP requires the schema of an object.
        Arc::make_mut(&mut tool.input_schema).insert("type".into(), json!("object"));
    }
    tool.name = row.tool_name.into();
    tool.title.get_or_insert_with(|| match (other_name, row.name.split_once(':')) {
        (Some(server), Some((_, tool))) => format!("{server}:{tool}"),
        _ => row.name.clone(),
    });
    let mut ours = vec![("kind", json!(row.kind)), ("name", json!(row.name))];
    ours.extend(row.server.map(|server| ("server", json!(server))));
    ours.extend(other_name.map(|name| ("serverName", json!(name))));
    ours.extend(row.fqdn.map(|fqdn| ("fqdn", json!(fqdn))));
    tool.meta.get_or_insert_default().0.extend(answer::tool_meta(ours).0);
    tool
}

/// A tool as its server lists it; if rmcp can't parse it, its main fields.
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
    fn the_main_fields_of_an_invalid_tool_are_listed() {
        let tool = json!({"name": "a", "title": 5, "description": "d", "outputSchema": {"type": "object"}});
        let tool = defined(&to_raw_value(&tool).unwrap());
        assert_eq!((tool.description.as_deref(), tool.title.as_deref()), (Some("d"), None));
        assert!(tool.input_schema.is_empty() && tool.output_schema.is_some());
    }
}
