//! What the code gives back: a JSON Schema from its `return` statements, as far as they can be read without running it.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value as Json};
use swc_ecma_ast::{Class, Expr, Function, Pat, ReturnStmt};
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::bindings::Bindings;
use super::link::Lookup;
use super::parameters::json_type;
use super::parse::Parsed;
use super::provides::ToolSchema;
use super::references::References;
use super::value::{Chain, Draft, Key, Root, draft_of};

/// What returns more kinds of things than this returns anything.
const MAX_ALTERNATIVES: usize = 32;

/// The schema of what the code returns; `None` if nothing can be said about it.
pub(crate) fn infer(
    parsed: &Parsed<'_>,
    bindings: &Bindings,
    references: &References,
    lookup: &Lookup,
    schemas: &HashMap<String, ToolSchema>,
) -> Option<Json> {
    let mut finder = Finder { bindings, returned: Vec::new() };
    for statement in parsed.statements() {
        statement.visit_with(&mut finder);
    }
    let known = Known { references, lookup, schemas };
    let mut alternatives = Vec::new();
    for draft in finder.returned {
        for schema in alternatives_of(known.schema(draft)?) {
            add_alternative(&mut alternatives, schema);
        }
    }
    any_of(alternatives)
}

struct Finder<'a> {
    bindings: &'a Bindings,
    returned: Vec<Draft>,
}

impl Visit for Finder<'_> {
    noop_visit_type!();

    fn visit_return_stmt(&mut self, statement: &ReturnStmt) {
        // A bare `return` gives null.
        let value = statement.arg.as_deref();
        self.returned.push(value.map_or(Draft::Literal(Json::Null), |value| draft_of(self.bindings, value)));
    }

    // Statements are in no expression but functions, and what those return is not what the code returns.
    fn visit_expr(&mut self, _: &Expr) {}
    fn visit_function(&mut self, _: &Function) {}
    fn visit_class(&mut self, _: &Class) {}
    fn visit_pat(&mut self, _: &Pat) {}
}

struct Known<'a> {
    references: &'a References,
    lookup: &'a Lookup,
    schemas: &'a HashMap<String, ToolSchema>,
}

impl Known<'_> {
    fn schema(&self, draft: Draft) -> Option<Json> {
        match draft {
            Draft::Literal(value) => Some(of_type(json_type(&value))),
            Draft::Template(_) => Some(of_type("string")),
            Draft::Object(fields) => self.object(fields),
            Draft::Array(_) => Some(of_type("array")),
            Draft::Chain(chain) => self.chain(&chain),
            Draft::Source(_) => None,
        }
    }

    fn object(&self, fields: Vec<(String, Draft)>) -> Option<Json> {
        // What is spread into it adds fields that can't be seen.
        let is_seen = fields.iter().all(|(name, _)| name != "...");
        let properties: Map<String, Json> = fields
            .into_iter()
            .filter(|(name, _)| name != "...")
            .map(|(name, field)| (name, self.schema(field).unwrap_or_else(|| Json::Object(Map::new()))))
            .collect();
        let required: BTreeSet<String> = properties.keys().cloned().collect();
        (is_seen || !properties.is_empty()).then(|| object(properties, required))
    }

    /// The result of a tool or capability whose schema says what it gives, or a field of that.
    fn chain(&self, chain: &Chain) -> Option<Json> {
        let Root::Call(call) = chain.root else { return None };
        let reference = &self.references.found[*self.references.by_call.get(&call)?];
        let called = reference.target(self.lookup).or(reference.candidates.first().map(String::as_str))?;
        let mut schema = &self.schemas.get(called)?.output;
        for step in &chain.steps {
            schema = match &step.key {
                Key::Index(_) => schema.get("items")?,
                key => schema.get("properties")?.get(key.as_text()?)?,
            };
        }
        schema.as_object().filter(|schema| !schema.is_empty()).map(|schema| Json::Object(schema.clone()))
    }
}

fn of_type(name: &str) -> Json {
    Json::Object(Map::from_iter([("type".to_owned(), Json::from(name))]))
}

fn object(properties: Map<String, Json>, required: BTreeSet<String>) -> Json {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), Json::from("object"));
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into_iter().collect());
    }
    schema.insert("properties".to_owned(), Json::Object(properties));
    Json::Object(schema)
}

/// Adds what a value can also be: objects become one, with all fields, that requires those that each of them requires.
fn add_alternative(alternatives: &mut Vec<Json>, schema: Json) {
    if alternatives.contains(&schema) {
        return;
    }
    let is_object = |schema: &Json| {
        schema.get("type").is_some_and(|name| name == "object")
            && schema.get("properties").is_some_and(Json::is_object)
    };
    match alternatives.iter_mut().find(|known| is_object(known) && is_object(&schema)) {
        Some(known) => *known = merged(known.take(), schema),
        None => alternatives.push(schema),
    }
}

fn merged(mut one: Json, mut other: Json) -> Json {
    let required = |schema: &Json| -> BTreeSet<String> {
        let names = schema.get("required").and_then(Json::as_array).into_iter().flatten();
        names.filter_map(Json::as_str).map(str::to_owned).collect()
    };
    let both = required(&one).intersection(&required(&other)).cloned().collect();
    let properties = |schema: &mut Json| match schema.get_mut("properties").map(Json::take) {
        Some(Json::Object(properties)) => properties,
        _ => Map::new(),
    };
    let mut fields = properties(&mut one);
    for (name, field) in properties(&mut other) {
        let field = match fields.remove(&name) {
            Some(known) => {
                let mut alternatives = alternatives_of(known);
                alternatives_of(field)
                    .into_iter()
                    .for_each(|field| add_alternative(&mut alternatives, field));
                any_of(alternatives).unwrap_or_else(|| Json::Object(Map::new()))
            }
            None => field,
        };
        fields.insert(name, field);
    }
    object(fields, both)
}

fn alternatives_of(mut schema: Json) -> Vec<Json> {
    let says_only_that = schema.as_object().is_some_and(|fields| fields.len() == 1);
    match schema.get_mut("anyOf") {
        Some(Json::Array(alternatives)) if says_only_that => std::mem::take(alternatives),
        _ => vec![schema],
    }
}

fn any_of(alternatives: Vec<Json>) -> Option<Json> {
    match alternatives.len() {
        0 | 1 => alternatives.into_iter().next(),
        MAX_ALTERNATIVES.. => None,
        _ => Some(Json::Object(Map::from_iter([("anyOf".to_owned(), Json::Array(alternatives))]))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use crate::compile::{CompileOptions, ToolSchema, compile};

    fn output(code: &str) -> Option<Json> {
        let read = ToolSchema {
            input: json!({}),
            output: json!({ "type": "object", "properties": { "content": { "type": "string" } } }),
        };
        let options =
            CompileOptions { schemas: [("fs:read".to_owned(), read)].into(), ..CompileOptions::default() };
        compile(code, &options).unwrap_or_else(|error| panic!("{code}: {error}")).output
    }

    #[test]
    fn objects_are_read_from_what_is_returned() {
        assert_eq!(
            output("return { ok: true, text: `a${args.b}`, rest: args.c }"),
            Some(json!({
                "type": "object",
                "required": ["ok", "rest", "text"],
                "properties": { "ok": { "type": "boolean" }, "text": { "type": "string" }, "rest": {} }
            }))
        );
        assert_eq!(output("return 1"), Some(json!({ "type": "number" })));
        assert_eq!(output("return args.a + 1"), None);
        assert_eq!(output("await mcp.fs.write({})"), None);
        assert_eq!(output("return { ...args }"), None);
    }

    #[test]
    fn the_result_of_a_tool_has_the_schema_of_the_tool() {
        let whole = json!({ "type": "object", "properties": { "content": { "type": "string" } } });
        assert_eq!(output("return await mcp.fs.read({ path: args.path })"), Some(whole));
        let text = Some(json!({ "type": "string" }));
        assert_eq!(output("const file = await mcp.fs.read(args); return file.content"), text);
        assert_eq!(output("const { content } = await mcp.fs.read(args); return content"), text);
        assert_eq!(output("return await mcp.fs.unknown(args)"), None);
    }

    /// However often the alternatives change, they don't lie in each other.
    #[test]
    fn many_returns_are_no_deep_schema() {
        let either = |count: usize| {
            output(&"if (a) return 1; if (b) return { c: 'x' }; if (b) return { c: 2 };".repeat(count))
        };
        assert_eq!(
            either(1000),
            Some(json!({ "anyOf": [
                { "type": "number" },
                { "type": "object", "required": ["c"], "properties": { "c": { "anyOf": [{ "type": "string" }, { "type": "number" }] } } }
            ] }))
        );
    }

    #[test]
    fn branches_require_what_they_share() {
        assert_eq!(
            output("if (args.a) { return { a: 1, b: 'x' } }\nreturn { a: 2, c: null }"),
            Some(json!({
                "type": "object",
                "required": ["a"],
                "properties": { "a": { "type": "number" }, "b": { "type": "string" }, "c": { "type": "null" } }
            }))
        );
        assert_eq!(output("const f = () => { return 1 }; return 'x'"), Some(json!({ "type": "string" })));
        assert_eq!(
            output("if (args.a) return 1; if (args.b) return 2; return 'x'"),
            Some(json!({ "anyOf": [{ "type": "number" }, { "type": "string" }] }))
        );
        let required = "if (args.a) return { a: 1 }; if (args.b) return { b: 1 }; return { a: 2 }";
        assert_eq!(output(required).expect("an object").get("required"), None);
    }
}
