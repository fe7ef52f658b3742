//! The tools that are always there.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// What a built-in tool does when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    Execute,
    Discover,
    TaskResult,
    /// One of the `cap_*` tools, by its name on the wire.
    Cap(&'static str),
}

impl Builtin {
    /// The built-in tool of that name; `cap:lookup` is `cap_lookup`.
    pub fn find(name: &str) -> Option<Builtin> {
        let spelled = match name.split_once(':') {
            Some((prefix @ ("cap" | "pml"), rest)) => Cow::from(format!("{prefix}_{rest}")),
            _ => Cow::from(name),
        };
        DEFINITIONS.iter().find(|definition| definition.name == spelled).map(|definition| definition.does)
    }

    /// Whether the list of tools may be another one afterwards.
    pub fn may_change_tools(self) -> bool {
        let definition = DEFINITIONS.iter().find(|definition| definition.does == self);
        !definition.is_some_and(|definition| matches!(definition.touch, Touch::Reads))
    }
}

/// How a tool touches the world.
#[derive(Clone, Copy)]
enum Touch {
    Reads,
    Adds,
    Changes,
    /// Runs code, which may call any tool.
    Anything,
}

struct Definition {
    name: &'static str,
    does: Builtin,
    title: &'static str,
    touch: Touch,
    description: &'static str,
    schema: fn() -> Value,
}

/// The definitions as MCP lists them.
pub fn tools() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| DEFINITIONS.iter().map(Definition::tool).collect());
    &TOOLS
}

impl Definition {
    fn tool(&self) -> Tool {
        let schema = match (self.schema)() {
            Value::Object(schema) => schema,
            _ => JsonObject::new(),
        };
        let hints = ToolAnnotations::with_title(self.title);
        let hints = match self.touch {
            Touch::Reads => hints.read_only(true).open_world(false),
            Touch::Adds => hints.read_only(false).destructive(false).open_world(false),
            Touch::Changes => hints.read_only(false).destructive(true).open_world(false),
            Touch::Anything => hints.read_only(false).destructive(true).open_world(true),
        };
        Tool::new(self.name, self.description, Arc::new(schema))
            .with_title(self.title)
            .with_annotations(hints)
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn spec() -> Value {
    json!({
        "type": "string",
        "description": "Name of the capability, such as fs:read_json; with @v2, @v1.2.0 or @2025-12-22 for a version"
    })
}

const DEFINITIONS: &[Definition] = &[
    Definition {
        name: "pml_execute",
        does: Builtin::Execute,
        title: "Run code or a capability",
        touch: Touch::Anything,
        description: "Run TypeScript in a sandbox, call a capability by name, or ask what there is for an intent.\n\
            - code: the body of an async function. Call tools with `await mcp.server.tool({…})` and capabilities with \
            `await mcp.namespace.action({…})`; use `args` for parameters and `return` the result. Code that succeeds is \
            kept as a capability; give `name` (such as fs:read_json) to call it by name next time.\n\
            - capability with args: runs what was kept. Cheaper than sending code again: look first.\n\
            - intent alone: runs nothing, suggests tools and capabilities with their schemas.\n\
            Results of single calls are previews; pml_get_task_result has the whole.",
        schema: || {
            object(
                json!({
                    "intent": {"type": "string", "description": "What this is for, in a sentence"},
                    "code": {"type": "string", "description": "TypeScript or JavaScript: the body of an async function"},
                    "name": {"type": "string", "description": "Name under which to keep the code, namespace:action"},
                    "source": {
                        "type": "object",
                        "description": "Instead of code: {\"type\": \"dag\", \"dagStructure\": {\"tasks\": [{\"id\", \"tool\", \"arguments\", \"dependsOn\"}]}}"
                    },
                    "capability": spec(),
                    "args": {"type": "object", "description": "Arguments, seen by the code as `args`"},
                    "description": {"type": "string", "description": "What the code does, for those who look for it"},
                    "options": {
                        "type": "object",
                        "properties": {"timeout": {"type": "integer", "minimum": 1, "description": "Milliseconds"}},
                        "additionalProperties": false
                    }
                }),
                &[],
            )
        },
    },
    Definition {
        name: "pml_discover",
        does: Builtin::Discover,
        title: "Find tools and capabilities",
        touch: Touch::Reads,
        description: "Find capabilities and tools for an intent, best first, with the schemas needed to call them. \
            Use it before writing code: what you need may be there already.",
        schema: || {
            object(
                json!({
                    "intent": {"type": "string", "description": "What you want to do, in words"},
                    "type": {"type": "string", "enum": ["capability", "tool"], "description": "Only this kind"},
                    "min_score": {"type": "number", "minimum": 0, "description": "Leave out weaker matches"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
                    "offset": {"type": "integer", "minimum": 0, "default": 0}
                }),
                &["intent"],
            )
        },
    },
    Definition {
        name: "pml_get_task_result",
        does: Builtin::TaskResult,
        title: "Fetch a whole result",
        touch: Touch::Reads,
        description: "Fetch the whole result of one call that pml_execute made, where its preview was cut. \
            Results are kept for an hour. Long ones come in parts: go on at next_offset.",
        schema: || {
            object(
                json!({
                    "workflow_id": {"type": "string", "description": "workflowId of the answer of pml_execute"},
                    "task_id": {"type": "string", "description": "taskId of the node in its dag"},
                    "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Character to begin at"},
                    "limit": {"type": "integer", "minimum": 1, "description": "Characters at most"},
                    "format": {"type": "string", "enum": ["raw", "pretty"], "default": "raw"}
                }),
                &["workflow_id", "task_id"],
            )
        },
    },
    Definition {
        name: "cap_lookup",
        does: Builtin::Cap("cap_lookup"),
        title: "Look up a capability",
        touch: Touch::Reads,
        description: "What a name means: the capability's description, parameters, version and usage. Old names work.",
        schema: || object(json!({"name": spec()}), &["name"]),
    },
    Definition {
        name: "cap_list",
        does: Builtin::Cap("cap_list"),
        title: "List capabilities",
        touch: Touch::Reads,
        description: "List capabilities by name pattern, namespace or tag, with their usage.",
        schema: || {
            object(
                json!({
                    "pattern": {"type": "string", "description": "Glob over names, such as fs:*"},
                    "namespace": {"type": "string", "description": "Glob over namespaces"},
                    "named_only": {"type": "boolean"},
                    "unnamed_only": {"type": "boolean"},
                    "created_by": {"type": "string"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "visibility": {"type": "string", "enum": ["private", "project", "org", "public"]},
                    "version_tag": {"type": "string", "description": "Glob over the tags of current versions, such as v1.*"},
                    "record_type": {"type": "string", "enum": ["capability", "mcp-server"], "default": "capability"},
                    "sort_by": {"type": "string", "description": "Such as name, usage_count or created_at"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 50},
                    "offset": {"type": "integer", "minimum": 0, "default": 0}
                }),
                &[],
            )
        },
    },
    Definition {
        name: "cap_rename",
        does: Builtin::Cap("cap_rename"),
        title: "Rename or describe a capability",
        touch: Touch::Changes,
        description: "Give a capability another name, description, tags or visibility; only what is given changes. \
            The old name goes on working.",
        schema: || {
            object(
                json!({
                    "name": spec(),
                    "new_name": {"type": "string", "description": "namespace:action"},
                    "description": {"type": "string"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "visibility": {"type": "string", "enum": ["private", "project", "org", "public"]}
                }),
                &["name"],
            )
        },
    },
    Definition {
        name: "cap_whois",
        does: Builtin::Cap("cap_whois"),
        title: "All about a capability",
        touch: Touch::Reads,
        description: "Everything about a capability: code, parameters, aliases, dependencies, provenance, statistics.",
        schema: || object(json!({"name": spec()}), &["name"]),
    },
    Definition {
        name: "cap_history",
        does: Builtin::Cap("cap_history"),
        title: "Versions of a capability",
        touch: Touch::Reads,
        description: "All versions of a capability, newest first, with who changed what and the diffs.",
        schema: || object(json!({"name": spec()}), &["name"]),
    },
    Definition {
        name: "cap_fork",
        does: Builtin::Cap("cap_fork"),
        title: "Copy a capability",
        touch: Touch::Adds,
        description: "Copy a capability under a new name, to change the copy. The source may be in another scope that \
            you can see: org.project:name.",
        schema: || {
            object(
                json!({"source": spec(), "name": {"type": "string", "description": "Name of the copy"}}),
                &["source", "name"],
            )
        },
    },
    Definition {
        name: "cap_merge",
        does: Builtin::Cap("cap_merge"),
        title: "Merge capabilities",
        touch: Touch::Changes,
        description: "Make one capability of several that do the same. Their names go on working and lead to the new one.",
        schema: || {
            object(
                json!({
                    "sources": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                    "name": {"type": "string", "description": "Name of the result"},
                    "code": {"type": "string", "description": "Its code; without it, that of the first source"}
                }),
                &["sources", "name"],
            )
        },
    },
];

#[cfg(test)]
mod tests {
    use super::{Builtin, DEFINITIONS, tools};

    #[test]
    fn both_spellings_are_found() {
        assert_eq!(Builtin::find("cap_lookup"), Some(Builtin::Cap("cap_lookup")));
        assert_eq!(Builtin::find("cap:lookup"), Some(Builtin::Cap("cap_lookup")));
        assert_eq!(Builtin::find("pml:execute"), Some(Builtin::Execute));
        for name in ["cap", "cap:", "cap_", "lookup", "cap:lookup:x", ""] {
            assert_eq!(Builtin::find(name), None, "{name}");
        }
    }

    #[test]
    fn every_definition_is_whole() {
        for tool in tools() {
            assert!(
                tool.name.len() <= 64 && tool.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            );
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            let properties = tool.input_schema["properties"].as_object().unwrap();
            for required in tool.input_schema["required"].as_array().unwrap() {
                assert!(properties.contains_key(required.as_str().unwrap()), "{}: {required}", tool.name);
            }
        }
        assert_eq!(tools().len(), DEFINITIONS.len());
    }
}
