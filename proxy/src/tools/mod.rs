//! The tools that a scope has: the built-in ones, its capabilities, and those of the downstream servers.

pub mod answer;
mod ask;
pub mod builtin;
pub(crate) mod known;
mod registration;

use std::{sync::Arc, time::Duration};

use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    changes::Changes,
    database::{Database, DatabaseError, ToolRow},
    downstream::Downstreams,
    scope::{Caller, Scope},
};
use known::KnownTools;
use registration::Registration;

const SHORT_WAIT: Duration = Duration::from_secs(2);

/// The tools of all scopes that are in use.
pub struct Catalog {
    database: Database,
    servers: Downstreams,
    /// The downstream servers that aren't disabled.
    pub server_names: Vec<String>,
    pub(crate) known: KnownTools,
    pub(crate) changes: Changes,
    registration: Registration,
}

impl Catalog {
    pub fn new(database: Database, servers: Downstreams) -> Arc<Catalog> {
        Arc::new(Catalog {
            server_names: servers.names(),
            database,
            servers,
            known: KnownTools::default(),
            changes: Changes::default(),
            registration: Registration::default(),
        })
    }

    /// All tools of the caller's scope, on one page: most clients read no second one.
    pub async fn list(self: &Arc<Self>, caller: &Caller) -> Result<Arc<Vec<Tool>>, DatabaseError> {
        self.scope_in_use(caller).await;
        let last = self.known.last_list(caller.scope());
        // With something to fall back on, nobody needs to wait for Postgres for long.
        let database =
            if last.is_some() { self.database.in_a_hurry(SHORT_WAIT) } else { self.database.clone() };
        let tools = match self.current(caller, &database).await {
            Err(error) if error.is_passing() => {
                tracing::warn!(%error, "the last known list of tools is given");
                last.ok_or(error)?
            }
            listed => listed?,
        };
        self.changes.was_given(caller.scope(), &tools);
        Ok(tools)
    }

    /// The list as it is now, for those who were given one before.
    pub(crate) async fn list_again(&self, scope: &Scope) -> Result<Arc<Vec<Tool>>, DatabaseError> {
        let caller = Caller::proxy(scope.clone());
        self.current(&caller, &self.database.in_a_hurry(SHORT_WAIT)).await
    }

    /// Changes of the scope's list from now on.
    pub(crate) fn subscribe(&self, scope: &Scope) -> watch::Receiver<u64> {
        self.changes.subscribe(scope, self.known.last_list(scope))
    }

    /// Whoever made a change sees it in the next list, though the database's notification may still be on its way.
    pub(crate) fn may_have_changed(&self, scope: &Scope) {
        self.known.changed(&scope.place());
    }

    /// From the cache, or else from Postgres.
    async fn current(&self, caller: &Caller, database: &Database) -> Result<Arc<Vec<Tool>>, DatabaseError> {
        if let Some(tools) = self.known.list(caller.scope()) {
            return Ok(tools);
        }
        let asked = self.known.moment();
        let rows = database.tools(caller, &self.server_names).await?;
        let mut tools = builtin::tools().to_vec();
        tools.extend(rows.into_iter().map(listed));
        let tools = Arc::new(tools);
        self.known.keep_list(caller.scope(), tools.clone(), asked);
        Ok(tools)
    }
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
