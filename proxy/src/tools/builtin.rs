//! Dispatches calls of the built-in tools, which `sql/agent_tools.sql` defines.

use std::{borrow::Cow, sync::Arc};

use parking_lot::Mutex;
use rmcp::model::Tool;

/// How a built-in tool is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Builtin<'a> {
    /// `pml_execute`.
    Execute,
    /// Any other: one query to Postgres, by its name.
    Ask(Cow<'a, str>),
}

impl Builtin<'_> {
    /// The built-in tool of this name; `cap:lookup` is `cap_lookup`.
    pub fn find(name: &str) -> Option<Builtin<'_>> {
        let spelled = match name.split_once(':') {
            Some((prefix @ ("cap" | "pml"), rest)) => Cow::from(format!("{prefix}_{rest}")),
            _ => Cow::from(name),
        };
        match &*spelled {
            "pml_execute" => Some(Builtin::Execute),
            "pml_discover" | "pml_get_task_result" => Some(Builtin::Ask(spelled)),
            other => {
                let action = other.strip_prefix("cap_")?;
                let is_word = !action.is_empty() && action.bytes().all(|byte| byte.is_ascii_lowercase());
                is_word.then_some(Builtin::Ask(spelled))
            }
        }
    }
}

/// The built-in tools as Postgres last listed them.
#[derive(Default)]
pub(super) struct Builtins(Mutex<Arc<Vec<Tool>>>);

impl Builtins {
    pub(super) fn keep(&self, tools: Arc<Vec<Tool>>) {
        *self.0.lock() = tools;
    }

    /// Whether the tool is known to be read-only.
    pub(super) fn only_reads(&self, name: &str) -> bool {
        let tools = self.0.lock().clone();
        let tool = tools.iter().find(|tool| tool.name == name);
        tool.and_then(|tool| tool.annotations.as_ref()?.read_only_hint).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::Builtin;

    #[test]
    fn both_spellings_are_found() {
        assert_eq!(Builtin::find("cap_lookup"), Some(Builtin::Ask("cap_lookup".into())));
        assert_eq!(Builtin::find("cap:lookup"), Some(Builtin::Ask("cap_lookup".into())));
        assert_eq!(Builtin::find("pml:execute"), Some(Builtin::Execute));
        for name in ["cap", "cap:", "cap_", "lookup", "cap:lookup:x", "cap_lookup_x", "pml_x", ""] {
            assert_eq!(Builtin::find(name), None, "{name}");
        }
    }
}
