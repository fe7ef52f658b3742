//! The form of answers: text for models, `structuredContent` for programs, `_meta` for neither.

use pml_worker::aside_if_large;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, JsonObject, MetaObject};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Unlisted;
use crate::{database::DatabaseError, limits::LimitReached};

/// The key of everything of ours in `_meta`.
const META: &str = "pml";

/// How a run ended, in the `status` of an answer from Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RunStatus {
    Success,
    Error,
}

impl RunStatus {
    /// None if nothing was run.
    fn of(answer: &Value) -> Option<RunStatus> {
        RunStatus::deserialize(&answer["status"]).ok()
    }
}

/// What `pml_execute` answers: a run with all that belongs to it, or suggestions.
pub fn from_execute(answer: Value) -> CallToolResult {
    let is_error = RunStatus::of(&answer) == Some(RunStatus::Error);
    from_json(answer, is_error)
}

/// A JSON object as a result; its `_meta` becomes that of the result.
pub fn from_json(mut answer: Value, is_error: bool) -> CallToolResult {
    let meta = answer.as_object_mut().and_then(|answer| answer.remove("_meta"));
    let text = aside_if_large(estimate(&answer), || answer.to_string());
    let mut result = plain(text, is_error);
    result.structured_content = Some(as_object(answer));
    result.meta = meta.filter(|meta| !meta.is_null()).map(wrapped);
    result
}

/// What a capability that was called as a tool answers: its value alone.
pub fn from_run(mut answer: Value) -> CallToolResult {
    let meta = answer.as_object_mut().and_then(|answer| answer.remove("_meta"));
    let mut result = if RunStatus::of(&answer) == Some(RunStatus::Success) {
        let value = answer["result"].take();
        let text = match &value {
            Value::String(text) => text.clone(),
            other => aside_if_large(estimate(other), || other.to_string()),
        };
        let mut result = plain(text, false);
        // As a separate text, so that the value stays unchanged.
        if let Some(warning) = answer["warning"].as_str() {
            result.content.push(ContentBlock::text(format!("Warning: {warning}")));
        }
        result.structured_content = Some(as_object(value));
        result
    } else {
        let mut result = plain(error_text(&answer["error"]), true);
        result.structured_content = Some(as_object(answer));
        result
    };
    result.meta = meta.filter(|meta| !meta.is_null()).map(wrapped);
    result
}

/// The message of a run's error, with its line.
fn error_text(error: &Value) -> String {
    let message = error["message"].as_str().unwrap_or("The run failed.");
    match (error["line"].as_u64(), error["excerpt"].as_str()) {
        (Some(line), Some(excerpt)) => format!("{message}\nline {line}: {excerpt}"),
        (Some(line), None) => format!("{message}\nline {line}"),
        _ => message.to_owned(),
    }
}

/// The approximate bytes of text of an answer.
pub fn size(answer: &CallToolResponse) -> usize {
    let CallToolResponse::Complete(result) = answer else { return 0 };
    result.content.iter().filter_map(ContentBlock::as_text).map(|text| text.text.len()).sum()
}

/// The approximate length of a value as JSON, estimated without reading all of it.
fn estimate(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.first().map_or(0, estimate).max(1) * items.len(),
        Value::Object(fields) => fields.values().map(estimate).sum(),
        _ => 1,
    }
}

/// A failed statement.
pub fn from_error(error: &DatabaseError) -> CallToolResult {
    let (text, structured) = match error {
        DatabaseError::Refused(refusal) => (refusal.text(), refusal.to_json()),
        other => (other.to_string(), json!({"code": other.kind(), "message": other.to_string()})),
    };
    let mut result = plain(text, true);
    result.structured_content = Some(json!({"status": "error", "error": structured}));
    result
}

/// A reached limit.
pub fn from_limit(reached: &LimitReached) -> CallToolResult {
    let mut result = plain(reached.to_string(), true);
    result.structured_content = Some(json!({"status": "error", "error": reached.to_json()}));
    result
}

/// A failure with only a message.
pub fn failure(message: impl Into<String>) -> CallToolResult {
    let message = message.into();
    let mut result = plain(message.clone(), true);
    result.structured_content = Some(json!({"status": "error", "error": {"message": message}}));
    result
}

fn plain(text: String, is_error: bool) -> CallToolResult {
    let content = vec![ContentBlock::text(text)];
    if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) }
}

/// Clients of 2025 and before require an object in `structuredContent`.
fn as_object(value: Value) -> Value {
    if value.is_object() { value } else { json!({"result": value}) }
}

fn wrapped(meta: Value) -> MetaObject {
    let mut object = JsonObject::new();
    object.insert(META.into(), meta);
    MetaObject(object)
}

/// The `_meta` of a list that lacks the tools of some servers.
pub(crate) fn list_meta(unlisted: &Unlisted) -> Option<MetaObject> {
    (*unlisted != Unlisted::default()).then(|| wrapped(json!(unlisted)))
}

/// The `_meta` of a listed tool.
pub fn tool_meta(entries: Vec<(&str, Value)>) -> MetaObject {
    wrapped(Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{from_json, from_run};

    #[test]
    fn meta_leaves_the_answer() {
        let result = from_json(json!({"a": 1, "_meta": {"fqdn": "x"}}), false);
        assert_eq!(result.structured_content, Some(json!({"a": 1})));
        assert_eq!(result.meta.unwrap().0["pml"], json!({"fqdn": "x"}));
    }

    #[test]
    fn a_capabilitys_answer_is_its_value() {
        let result = from_run(json!({"status": "success", "result": [1, 2]}));
        assert_eq!(result.structured_content, Some(json!({"result": [1, 2]})));
        let result = from_run(json!({"status": "success", "result": {"a": 1}}));
        assert_eq!(result.structured_content, Some(json!({"a": 1})));
        assert_eq!(result.is_error, Some(false));
        let result = from_run(json!({"status": "error", "error": {"message": "no"}}));
        assert_eq!(result.is_error, Some(true));
    }
}
