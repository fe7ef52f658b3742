//! What the code gives back: a JSON Schema from its `return` statements, as far as they can be read without running it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value as Json, json};
use swc_ecma_ast::{ArrowExpr, Class, Function, Lit, ReturnStmt, Tpl};
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::bindings::Bindings;
use super::link::Lookup;
use super::parameters::json_type;
use super::parse::Parsed;
use super::provides::ToolSchema;
use super::references::References;
use super::value::{Chain, Draft, Key, Root, draft_of};

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
    let returned = finder.returned.iter().map(|draft| known.schema(draft)).collect::<Option<Vec<_>>>()?;
    returned.into_iter().reduce(either)
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

    // What an inner function returns is not what the code returns; what is in a literal is no statement.
    fn visit_function(&mut self, _: &Function) {}
    fn visit_arrow_expr(&mut self, _: &ArrowExpr) {}
    fn visit_class(&mut self, _: &Class) {}
    fn visit_lit(&mut self, _: &Lit) {}
    fn visit_tpl(&mut self, _: &Tpl) {}
}

struct Known<'a> {
    references: &'a References,
    lookup: &'a Lookup,
    schemas: &'a HashMap<String, ToolSchema>,
}

impl Known<'_> {
    fn schema(&self, draft: &Draft) -> Option<Json> {
        match draft {
            Draft::Literal(value) => Some(literal(value)),
            Draft::Template(_) => Some(json!({ "type": "string" })),
            Draft::Object(fields) => self.object(fields),
            Draft::Array(_) => Some(json!({ "type": "array" })),
            Draft::Chain(chain) => self.chain(chain),
            Draft::Source(_) => None,
        }
    }

    fn object(&self, fields: &[(String, Draft)]) -> Option<Json> {
        // What is spread into it adds fields that can't be seen.
        let is_seen = fields.iter().all(|(name, _)| name != "...");
        let properties: Map<String, Json> = fields
            .iter()
            .filter(|(name, _)| name != "...")
            .map(|(name, field)| (name.clone(), self.schema(field).unwrap_or_else(|| json!({}))))
            .collect();
        (is_seen || !properties.is_empty()).then(|| object(properties))
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

fn object(properties: Map<String, Json>) -> Json {
    let required: BTreeSet<&String> = properties.keys().collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn literal(value: &Json) -> Json {
    match value {
        Json::Object(fields) => {
            object(fields.iter().map(|(name, field)| (name.clone(), literal(field))).collect())
        }
        other => json!({ "type": json_type(other) }),
    }
}

/// What is one or the other: objects keep all fields, and require those that both have.
fn either(one: Json, other: Json) -> Json {
    if one == other {
        return one;
    }
    let fields = |schema: &Json| -> Option<BTreeMap<String, Json>> {
        (schema.get("type")? == "object").then_some(())?;
        let properties = schema.get("properties")?.as_object()?;
        Some(properties.iter().map(|(name, field)| (name.clone(), field.clone())).collect())
    };
    let (Some(left), Some(right)) = (fields(&one), fields(&other)) else {
        return json!({ "anyOf": [one, other] });
    };
    let required: BTreeSet<&String> = left.keys().filter(|name| right.contains_key(*name)).collect();
    let mut properties = left.clone();
    for (name, field) in &right {
        let merged = match left.get(name) {
            Some(known) => either(known.clone(), field.clone()),
            None => field.clone(),
        };
        properties.insert(name.clone(), merged);
    }
    json!({ "type": "object", "required": required, "properties": properties })
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
            output("if (args.a) return 1; return 'x'"),
            Some(json!({ "anyOf": [{ "type": "number" }, { "type": "string" }] }))
        );
    }
}
