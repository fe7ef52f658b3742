//! Generates code for other sources: a DAG of tasks, a tool with default arguments, and a pipeline of capabilities.

mod pipeline;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::names::is_identifier;
use super::structure::{ArgumentValue, Arguments};

pub use pipeline::{Pipeline, PipelineSource, pipeline};

/// Why no code could be generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GenerateError(pub String);

/// A workflow as data: tasks and their dependencies.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Dag {
    pub tasks: Vec<DagTask>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DagTask {
    pub id: String,
    /// The tool or capability to call.
    pub tool: String,
    /// As the static structure writes them: `{"type": "reference", "expression": "other_task.field"}`.
    #[serde(default)]
    pub arguments: Arguments,
    #[serde(default, alias = "depends_on")]
    pub depends_on: Vec<String>,
}

/// `return await mcp.ns.tool({ …defaults, ...args })`
pub fn tool_code(tool: &str, defaults: &Map<String, Json>) -> String {
    // Sorted by name, whatever order the map has.
    let defaults: BTreeMap<&String, &Json> = defaults.iter().collect();
    let fields: String =
        defaults.iter().map(|(name, value)| format!("{}: {}, ", key(name), literal(value))).collect();
    format!("return await {}({{ {fields}...args }});\n", callee(tool))
}

/// The code that runs a DAG: tasks with the same dependencies run in parallel.
pub fn dag_code(dag: &Dag) -> Result<String, GenerateError> {
    let mut waiting: BTreeMap<&str, (&DagTask, BTreeSet<&str>)> = BTreeMap::new();
    for task in &dag.tasks {
        let mut needs: BTreeSet<&str> = task.depends_on.iter().map(String::as_str).collect();
        task.arguments.iter().for_each(|(_, value)| collect_references(value, &mut needs));
        if waiting.insert(&task.id, (task, needs)).is_some() {
            return Err(GenerateError(format!("two tasks have the id `{}`", task.id)));
        }
    }
    let names: BTreeMap<&str, String> =
        dag.tasks.iter().enumerate().map(|(index, task)| (&*task.id, variable(&task.id, index))).collect();
    let mut needed: BTreeSet<&str> = BTreeSet::new();
    for (task, needs) in waiting.values() {
        if let Some(unknown) = needs.iter().find(|id| !names.contains_key(*id)) {
            return Err(GenerateError(format!("task `{}` needs `{unknown}`, which isn't a task", task.id)));
        }
        needed.extend(needs);
    }
    let mut code = String::new();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    while done.len() < dag.tasks.len() {
        let is_ready = |task: &&DagTask| !done.contains(&*task.id) && waiting[&*task.id].1.is_subset(&done);
        let ready: Vec<&DagTask> = dag.tasks.iter().filter(is_ready).collect();
        if ready.is_empty() {
            let stuck: Vec<&str> =
                dag.tasks.iter().map(|task| &*task.id).filter(|id| !done.contains(id)).collect();
            return Err(GenerateError(format!("these tasks wait for each other: {}", stuck.join(", "))));
        }
        let calls: Vec<String> =
            ready.iter().map(|task| task_call(task, &names)).collect::<Result<_, _>>()?;
        match (&ready[..], &calls[..]) {
            ([task], [call]) => code.push_str(&format!("const {} = await {call};\n", names[&*task.id])),
            _ => {
                let results: Vec<&str> = ready.iter().map(|task| names[&*task.id].as_str()).collect();
                code.push_str(&format!("const [{}] = await Promise.all([\n", results.join(", ")));
                calls.iter().for_each(|call| code.push_str(&format!("  {call},\n")));
                code.push_str("]);\n");
            }
        }
        done.extend(ready.iter().map(|task| &*task.id));
    }
    let last: Vec<&str> = dag.tasks.iter().map(|task| &*task.id).filter(|id| !needed.contains(id)).collect();
    match last[..] {
        [] => {}
        [only] => code.push_str(&format!("return {};\n", names[only])),
        _ => {
            let fields: Vec<String> = last.iter().map(|id| format!("{}: {}", key(id), names[id])).collect();
            code.push_str(&format!("return {{ {} }};\n", fields.join(", ")));
        }
    }
    Ok(code)
}

fn task_call(task: &DagTask, names: &BTreeMap<&str, String>) -> Result<String, GenerateError> {
    let spread = task.arguments.get("...").map(|value| argument(task, value, names)).transpose()?;
    let fields = task.arguments.iter().filter(|(name, _)| *name != "...");
    let fields: Vec<String> = spread
        .map(|value| Ok(format!("...{value}")))
        .into_iter()
        .chain(fields.map(|(name, value)| Ok(format!("{}: {}", key(name), argument(task, value, names)?))))
        .collect::<Result<_, GenerateError>>()?;
    Ok(format!("{}({{ {} }})", callee(&task.tool), fields.join(", ")).replace("{  }", "{}"))
}

fn argument(
    task: &DagTask,
    value: &ArgumentValue,
    names: &BTreeMap<&str, String>,
) -> Result<String, GenerateError> {
    let wrong = |what: &str| GenerateError(format!("task `{}`: {what}", task.id));
    match value {
        ArgumentValue::Literal { value } => Ok(literal(value)),
        ArgumentValue::Parameter { parameter_name } if parameter_name == "args" => Ok("args".to_owned()),
        ArgumentValue::Parameter { parameter_name } => {
            let path = path_of(parameter_name)
                .ok_or_else(|| wrong(&format!("`{parameter_name}` isn't a parameter")))?;
            Ok(format!("args{}", path.iter().map(|name| member(name)).collect::<String>()))
        }
        ArgumentValue::Reference { expression } => {
            let path = path_of(expression)
                .ok_or_else(|| wrong(&format!("`{expression}` isn't a reference to a task")))?;
            let (root, fields) = path.split_first().ok_or_else(|| wrong("an empty reference"))?;
            let name = names.get(root.as_str()).ok_or_else(|| wrong(&format!("`{root}` isn't a task")))?;
            Ok(format!("{name}{}", fields.iter().map(|field| member(field)).collect::<String>()))
        }
        ArgumentValue::Object { fields } => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| Ok(format!("{}: {}", key(name), argument(task, value, names)?)))
                .collect::<Result<_, GenerateError>>()?;
            Ok(format!("{{ {} }}", fields.join(", ")))
        }
        ArgumentValue::Array { items } => {
            let items: Vec<String> =
                items.iter().map(|item| argument(task, item, names)).collect::<Result<_, _>>()?;
            Ok(format!("[{}]", items.join(", ")))
        }
        ArgumentValue::Template { template } => template_text(task, template, names),
        ArgumentValue::Expression { expression } => {
            Err(wrong(&format!("`{expression}` is code: save the capability as code instead")))
        }
    }
}

/// `Hello ${n1.name}` as a JavaScript template, each placeholder checked to be a reference or a parameter.
fn template_text(
    task: &DagTask,
    template: &str,
    names: &BTreeMap<&str, String>,
) -> Result<String, GenerateError> {
    let mut text = String::from("`");
    let mut rest = template;
    while let Some(start) = rest.find("${") {
        let end = rest[start..].find('}').map_or(rest.len(), |end| start + end);
        text.push_str(&escape_template(&rest[..start]));
        let inside = rest.get(start + 2..end).unwrap_or_default();
        let value = match inside.strip_prefix("args.") {
            Some(parameter) => ArgumentValue::Parameter { parameter_name: parameter.to_owned() },
            None => ArgumentValue::Reference { expression: inside.to_owned() },
        };
        text.push_str(&format!("${{{}}}", argument(task, &value, names)?));
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    text.push_str(&escape_template(rest));
    text.push('`');
    Ok(text)
}

fn escape_template(text: &str) -> String {
    text.replace('\\', "\\\\").replace('`', "\\`").replace("${", "\\${")
}

fn collect_references<'a>(value: &'a ArgumentValue, found: &mut BTreeSet<&'a str>) {
    match value {
        ArgumentValue::Reference { expression } => {
            found.extend(expression.split(['.', '[']).next().filter(|root| !root.is_empty()));
        }
        ArgumentValue::Template { template } => {
            for inside in template.split("${").skip(1) {
                let root = inside.split(['.', '[', '}']).next().unwrap_or_default();
                if root != "args" {
                    found.insert(root);
                }
            }
        }
        ArgumentValue::Object { fields } => {
            fields.iter().for_each(|(_, field)| collect_references(field, found));
        }
        ArgumentValue::Array { items } => items.iter().for_each(|item| collect_references(item, found)),
        ArgumentValue::Literal { .. }
        | ArgumentValue::Parameter { .. }
        | ArgumentValue::Expression { .. } => {}
    }
}

/// The steps of `a.b[0]["c d"]`; `None` for anything else, so that a path can't inject code.
fn path_of(text: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let end = inside.find(']')?;
            let name = inside[..end].trim();
            let name = name
                .strip_prefix(['"', '\''])
                .and_then(|name| name.strip_suffix(['"', '\'']))
                .unwrap_or(name);
            steps.push(name.to_owned());
            rest = &inside[end + 1..];
        } else {
            let name = rest.strip_prefix('.').filter(|_| !steps.is_empty()).unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            if end == 0 || !name[..end].chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-')) {
                return None;
            }
            steps.push(name[..end].to_owned());
            rest = &name[end..];
        }
    }
    Some(steps)
}

fn variable(id: &str, index: usize) -> String {
    let safe: String = id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    format!("task{}_{safe}", index + 1)
}

/// `mcp.ns.action`, or `mcp["any name"]`.
fn callee(name: &str) -> String {
    match name.split_once(':') {
        Some((namespace, action)) if is_identifier(namespace) && is_identifier(action) => {
            format!("mcp.{namespace}.{action}")
        }
        _ => format!("mcp[{}]", Json::from(name)),
    }
}

fn member(name: &str) -> String {
    if is_identifier(name) {
        format!(".{name}")
    } else if name.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty() {
        format!("[{name}]")
    } else {
        format!("[{}]", Json::from(name))
    }
}

fn key(name: &str) -> String {
    match name {
        // As a plain key, it would set the prototype instead of a field.
        "__proto__" => "[\"__proto__\"]".to_owned(),
        _ if is_identifier(name) => name.to_owned(),
        _ => Json::from(name).to_string(),
    }
}

/// JSON as a JavaScript literal.
fn literal(value: &Json) -> String {
    match value {
        Json::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Json::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{}: {}", key(name), literal(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Json::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
