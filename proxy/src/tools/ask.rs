//! The built-in tools that are one question to Postgres.

use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;

use super::{Catalog, answer, builtin::Builtin};
use crate::{database::DiscoverArgs, scope::Caller};

impl Catalog {
    pub(crate) async fn ask(
        &self,
        caller: &Caller,
        builtin: Builtin,
        arguments: JsonObject,
    ) -> CallToolResult {
        let database = &self.database;
        let answered = match builtin {
            Builtin::Cap(tool) => database.cap(caller, tool, &Value::Object(arguments)).await,
            Builtin::Discover => match arguments_of::<DiscoverArgs>(arguments) {
                Ok(args) => database.discover(caller, &args, &self.server_names).await,
                Err(result) => return *result,
            },
            Builtin::TaskResult => match arguments_of::<TaskResultArgs>(arguments) {
                Ok(args) => {
                    let format = args.format.as_deref().unwrap_or("raw");
                    let offset = args.offset.unwrap_or(0);
                    database
                        .task_result(caller, args.workflow_id, &args.task_id, offset, args.limit, format)
                        .await
                }
                Err(result) => return *result,
            },
            Builtin::Execute => unreachable!("it runs as a task of its own"),
        };
        if builtin.may_change_tools() {
            self.may_have_changed(caller.scope());
        }
        match answered {
            Ok(answer) => answer::from_json(serde_json::from_str(answer.get()).unwrap_or_default(), false),
            Err(error) => answer::from_error(&error),
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskResultArgs {
    workflow_id: uuid::Uuid,
    task_id: String,
    offset: Option<i32>,
    limit: Option<i32>,
    format: Option<String>,
}

fn arguments_of<T: serde::de::DeserializeOwned>(arguments: JsonObject) -> Result<T, Box<CallToolResult>> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Box::new(answer::failure(format!("The arguments don't fit the tool: {error}."))))
}
