//! Infers the JSON Schema of the result from the code's `return` statements, as far as that is possible statically.

use std::collections::{BTreeMap, HashMap};

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value as Json;
use swc_atoms::Atom;
use swc_ecma_ast::{Class, Expr, Function, Pat, ReturnStmt};
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::bindings::Bindings;
use super::link::Lookup;
use super::parameters::json_type;
use super::parse::Parsed;
use super::provides::ToolSchema;
use super::references::References;
use super::value::{Chain, Draft, Key, Root, draft_of};

/// Beyond this many alternatives the result can be anything.
const MAX_ALTERNATIVES: usize = 32;

/// What the code returns; serialized it is a JSON Schema (2020-12).
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    shape: Shape,
}

/// The schema of what the code returns; `None` if nothing is known about it.
pub(crate) fn infer(
    parsed: &Parsed<'_>,
    bindings: &Bindings,
    references: &References,
    lookup: &Lookup,
    schemas: &HashMap<String, ToolSchema>,
) -> Option<Output> {
    let mut finder = Finder { bindings, returned: Vec::new() };
    for statement in parsed.statements() {
        statement.visit_with(&mut finder);
    }
    let known = Known { references, lookup, schemas };
    let mut shape: Option<Shape> = None;
    for draft in finder.returned {
        let also = known.shape(draft)?;
        shape = Some(match shape {
            Some(shape) => shape.or(also),
            None => also,
        });
    }
    shape.filter(|shape| *shape != Shape::Anything).map(|shape| Output { shape })
}

struct Finder<'a> {
    bindings: &'a Bindings,
    returned: Vec<Draft>,
}

impl Visit for Finder<'_> {
    noop_visit_type!();

    fn visit_return_stmt(&mut self, statement: &ReturnStmt) {
        // A bare `return` returns null.
        let value = statement.arg.as_deref();
        self.returned.push(value.map_or(Draft::Literal(Json::Null), |value| draft_of(self.bindings, value)));
    }

    // Only functions contain statements in expressions, and their `return` isn't the code's.
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
    fn shape(&self, draft: Draft) -> Option<Shape> {
        match draft {
            Draft::Literal(value) => Some(Shape::Type(json_type(&value))),
            Draft::Template(_) => Some(Shape::Type("string")),
            Draft::Object(fields) => self.object(fields),
            Draft::Array(_) => Some(Shape::Type("array")),
            Draft::Chain(chain) => self.chain(&chain).map(Shape::Known),
            Draft::Source(_) => None,
        }
    }

    fn object(&self, fields: Vec<(Atom, Draft)>) -> Option<Shape> {
        // A spread adds unknown fields.
        let is_seen = fields.iter().all(|(name, _)| *name != *"...");
        let fields: BTreeMap<String, Field> = fields
            .into_iter()
            .filter(|(name, _)| *name != *"...")
            .map(|(name, field)| {
                let name = name.as_str().to_owned();
                (name, Field { shape: self.shape(field).unwrap_or(Shape::Anything), is_required: true })
            })
            .collect();
        (is_seen || !fields.is_empty()).then_some(Shape::Object(fields))
    }

    /// The result of a tool or capability with a known output schema, or a field of it.
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

/// The type of a value, before it is written as a schema.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Anything,
    Type(&'static str),
    Object(BTreeMap<String, Field>),
    /// A tool's schema.
    Known(Json),
    OneOf(Vec<Shape>),
}

#[derive(Debug, Clone, PartialEq)]
struct Field {
    shape: Shape,
    is_required: bool,
}

impl Serialize for Output {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shape.serialize(serializer)
    }
}

impl Shape {
    /// The union of two types. Two objects are merged: all fields, of which those are required that both require.
    fn or(self, other: Shape) -> Shape {
        if self == other {
            return self;
        }
        match (self.opened(), other.opened()) {
            (Shape::Anything, _) | (_, Shape::Anything) => Shape::Anything,
            (Shape::Object(one), Shape::Object(other)) => Shape::Object(merged(one, other)),
            (Shape::OneOf(one), Shape::OneOf(other)) => other.into_iter().fold(Shape::OneOf(one), Shape::or),
            (Shape::OneOf(mut shapes), also) | (also, Shape::OneOf(mut shapes)) => {
                let is_same = |known: &&mut Shape| {
                    matches!((&**known, &also), (Shape::Object(_), Shape::Object(_))) || **known == also
                };
                match shapes.iter_mut().find(is_same) {
                    Some(known) => *known = std::mem::replace(known, Shape::Anything).or(also),
                    None => shapes.push(also),
                }
                if shapes.len() > MAX_ALTERNATIVES { Shape::Anything } else { Shape::OneOf(shapes) }
            }
            (one, other) => Shape::OneOf(vec![one, other]),
        }
    }

    /// The object type of a tool's schema, so that it can be merged with others.
    fn opened(self) -> Shape {
        let Shape::Known(Json::Object(mut schema)) = self else { return self };
        if schema.get("type").is_none_or(|name| name != "object") {
            return Shape::Known(Json::Object(schema));
        }
        let Some(Json::Object(properties)) = schema.remove("properties") else {
            return Shape::Known(Json::Object(schema));
        };
        let required = schema.get("required").and_then(Json::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
        let fields = properties.into_iter().map(|(name, field)| {
            let field = Field { is_required: is_required(&name), shape: Shape::Known(field) };
            (name, field)
        });
        Shape::Object(fields.collect())
    }
}

// Serialized directly, because maps of `serde_json` are slow to build.
impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut schema = match self {
            Shape::Known(schema) => return schema.serialize(serializer),
            _ => serializer.serialize_map(None)?,
        };
        match self {
            Shape::Anything | Shape::Known(_) => {}
            Shape::Type(name) => schema.serialize_entry("type", name)?,
            Shape::OneOf(shapes) => schema.serialize_entry("anyOf", shapes)?,
            Shape::Object(fields) => {
                schema.serialize_entry("type", "object")?;
                let required: Vec<&str> = fields
                    .iter()
                    .filter(|(_, field)| field.is_required)
                    .map(|(name, _)| name.as_str())
                    .collect();
                if !required.is_empty() {
                    schema.serialize_entry("required", &required)?;
                }
                schema.serialize_entry("properties", &Properties(fields))?;
            }
        }
        schema.end()
    }
}

struct Properties<'a>(&'a BTreeMap<String, Field>);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, field)| (name, &field.shape)))
    }
}

fn merged(one: BTreeMap<String, Field>, mut other: BTreeMap<String, Field>) -> BTreeMap<String, Field> {
    let mut fields: BTreeMap<String, Field> = one
        .into_iter()
        .map(|(name, field)| {
            let field = match other.remove(&name) {
                Some(also) => Field {
                    is_required: field.is_required && also.is_required,
                    shape: field.shape.or(also.shape),
                },
                None => Field { is_required: false, ..field },
            };
            (name, field)
        })
        .collect();
    fields.extend(other.into_iter().map(|(name, field)| (name, Field { is_required: false, ..field })));
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use crate::{CompileOptions, ToolSchema, compile};

    fn output(code: &str) -> Option<Json> {
        let read = ToolSchema {
            input: json!({}),
            output: json!({ "type": "object", "properties": { "content": { "type": "string" } } }),
        };
        let options =
            CompileOptions { schemas: [("fs:read".to_owned(), read)].into(), ..CompileOptions::default() };
        let compiled = compile(code, &options).unwrap_or_else(|error| panic!("{code}: {error}"));
        compiled.output.map(|output| json!(output))
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

    /// Alternatives are never nested, however many there are.
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
        assert_eq!(
            output("if (args.a) return { error: 'x' }; return await mcp.fs.read(args)"),
            Some(json!({
                "type": "object",
                "properties": { "content": { "type": "string" }, "error": { "type": "string" } }
            }))
        );
        let required = "if (args.a) return { a: 1 }; if (args.b) return { b: 1 }; return { a: 2 }";
        assert_eq!(output(required).expect("an object").get("required"), None);
    }
}
