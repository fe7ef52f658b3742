//! The built-in tools that are one query to Postgres.

use std::sync::Arc;

use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;

use super::{Catalog, answer};
use crate::{database::Repeat, scope::Caller};

impl Catalog {
    pub(crate) async fn ask(
        self: &Arc<Self>,
        caller: &Caller,
        tool: &str,
        arguments: JsonObject,
    ) -> CallToolResult {
        let only_reads = self.builtins.only_reads(tool);
        let repeat = if only_reads { Repeat::Harmless } else { Repeat::Never };
        if let Some(code) = arguments.get("code") {
            self.register_servers_in(caller, || code.to_string()).await;
        }
        let arguments = Value::Object(arguments);
        let answered = self.database.ask_tool(caller, tool, &arguments, &self.server_names, repeat).await;
        if !only_reads {
            self.invalidate(caller.scope());
        }
        match answered {
            Ok(answer) => answer::from_json(serde_json::from_str(answer.get()).unwrap_or_default(), false),
            Err(error) => answer::from_error(&error),
        }
    }
}
