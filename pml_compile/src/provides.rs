//! Provides edges: which tool's output can be which tool's input, computed from their schemas.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::parameters::json_type;
use super::structure::{Coverage, Edge, EdgeKind, Node, Structure};

/// The input and output schema of a tool or capability.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolSchema {
    #[serde(default)]
    pub input: Json,
    #[serde(default)]
    pub output: Json,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldMapping {
    pub from_field: String,
    pub to_field: String,
    pub type_compatible: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvidesEdge {
    pub from: String,
    pub to: String,
    #[serde(rename = "type")]
    pub kind: EdgeKind,
    pub coverage: Coverage,
    pub provider_output_schema: Json,
    pub consumer_input_schema: Json,
    pub field_mapping: Vec<FieldMapping>,
}

/// The number of edges is quadratic in that of the calls; past this many, nobody reads them.
const MAX_PROVIDING_CALLS: usize = 200;

/// Names that all mean "the content itself", so that they match each other.
const CONTENT_NAMES: &[&str] = &[
    "body", "content", "contents", "csv", "data", "document", "html", "input", "json", "markdown", "object",
    "output", "parsed", "payload", "raw", "result", "string", "text", "value", "xml", "yaml",
];

/// How well a set of outputs covers the inputs of a consumer; `None` if not at all.
pub fn coverage(
    outputs: &BTreeSet<&str>,
    required: &BTreeSet<&str>,
    optional: &BTreeSet<&str>,
) -> Option<Coverage> {
    let gives_required = required.intersection(outputs).count();
    let gives_optional = optional.intersection(outputs).count();
    match (gives_required, gives_optional) {
        (0, 0) => None,
        (0, _) => Some(Coverage::Optional),
        (n, _) if n == required.len() => Some(Coverage::Strict),
        _ => Some(Coverage::Partial),
    }
}

/// Which output field maps to which input field: the same name, or two names for the content itself.
pub fn field_mapping(output: &Json, input: &Json) -> Vec<FieldMapping> {
    let outputs = output_fields(output);
    let mut mapping = Vec::new();
    let mut taken = BTreeSet::new();
    for (to_field, wanted) in input_fields(input) {
        let same_name = outputs.iter().find(|(name, _)| normalized(name) == normalized(to_field));
        let content = || {
            outputs.iter().find(|(name, given)| {
                is_content(name)
                    && is_content(to_field)
                    && !taken.contains(*name)
                    && compatible(given, wanted)
            })
        };
        if let Some((from_field, given)) = same_name.or_else(content) {
            taken.insert(*from_field);
            mapping.push(FieldMapping {
                from_field: (*from_field).to_owned(),
                to_field: to_field.to_owned(),
                type_compatible: compatible(given, wanted),
            });
        }
    }
    mapping
}

/// The edge from one tool to another, if any output of the first matches an input of the second.
pub fn provides_edge(from: (&str, &ToolSchema), to: (&str, &ToolSchema)) -> Option<ProvidesEdge> {
    let field_mapping = field_mapping(&from.1.output, &to.1.input);
    let fed: BTreeSet<&str> = field_mapping
        .iter()
        .filter(|field| field.type_compatible)
        .map(|field| field.to_field.as_str())
        .collect();
    let required = required_fields(&to.1.input);
    let optional = input_fields(&to.1.input).into_keys().filter(|name| !required.contains(name)).collect();
    Some(ProvidesEdge {
        from: from.0.to_owned(),
        to: to.0.to_owned(),
        kind: EdgeKind::Provides,
        coverage: coverage(&fed, &required, &optional)?,
        provider_output_schema: from.1.output.clone(),
        consumer_input_schema: to.1.input.clone(),
        field_mapping,
    })
}

/// An index of tools by input field, which finds consumers without comparing all pairs.
pub struct ToolsByInput {
    tools: Vec<(String, ToolSchema)>,
    takers: HashMap<String, Vec<usize>>,
    content_takers: Vec<usize>,
}

impl ToolsByInput {
    pub fn of(tools: BTreeMap<String, ToolSchema>) -> Self {
        let tools: Vec<_> = tools.into_iter().collect();
        let mut takers: HashMap<String, Vec<usize>> = HashMap::new();
        let mut content_takers = Vec::new();
        for (index, (_, schema)) in tools.iter().enumerate() {
            let names: BTreeSet<String> = input_fields(&schema.input).into_keys().map(normalized).collect();
            if names.iter().any(|name| CONTENT_NAMES.contains(&name.as_str())) {
                content_takers.push(index);
            }
            for name in names {
                takers.entry(name).or_default().push(index);
            }
        }
        Self { tools, takers, content_takers }
    }

    /// The edges from and to one tool, or all, ordered by the names of producer and consumer. They are made lazily, since
    /// their number is quadratic in that of the tools; `pulse` is called between two.
    pub fn edges(self, tool: Option<String>, pulse: impl Fn()) -> impl Iterator<Item = ProvidesEdge> {
        let (mut giver, mut next) = (0, BTreeSet::new().into_iter());
        std::iter::from_fn(move || {
            loop {
                pulse();
                let Some(taker) = next.next() else {
                    next = self.fed_by(self.tools.get(giver)?, tool.as_deref()).into_iter();
                    giver += 1;
                    continue;
                };
                let ((from, given), (to, wanted)) = (&self.tools[giver - 1], &self.tools[taker]);
                if let Some(edge) = provides_edge((from, given), (to, wanted)) {
                    return Some(edge);
                }
            }
        })
    }

    /// The consumers of a tool's output fields; with `tool`, only edges that have it at one end.
    fn fed_by(&self, (giver, schema): &(String, ToolSchema), tool: Option<&str>) -> BTreeSet<usize> {
        let outputs = output_fields(&schema.output);
        let gives_content = outputs.keys().any(|name| is_content(name));
        let same_name = outputs.keys().filter_map(|name| self.takers.get(&normalized(name))).flatten();
        let content = self.content_takers.iter().filter(|_| gives_content);
        let is_asked_for = |taker: &str| tool.is_none_or(|tool| tool == giver || tool == taker);
        same_name
            .chain(content)
            .copied()
            .filter(|taker| self.tools[*taker].0 != *giver && is_asked_for(&self.tools[*taker].0))
            .collect()
    }
}

impl Structure {
    /// Replaces the provides edges: one from each call to each later one that can use its output.
    pub fn add_provides(&mut self, schemas: &HashMap<String, ToolSchema>) {
        self.edges.retain(|edge| edge.kind != EdgeKind::Provides);
        let calls: Vec<(usize, &str, &ToolSchema)> = self
            .nodes
            .iter()
            .enumerate()
            .filter_map(|(index, node)| Some((index, node.called()?, schemas.get(node.called()?)?)))
            .take(MAX_PROVIDING_CALLS)
            .collect();
        if calls.len() < 2 {
            return;
        }
        let ways = Ways::of(self);
        let mut known: HashMap<(&str, &str), Option<Coverage>> = HashMap::new();
        let mut edges = Vec::new();
        for &(from, from_name, given) in &calls {
            let reached = ways.reachable(from);
            for &(to, to_name, wanted) in calls.iter().filter(|(to, ..)| reached[*to]) {
                let coverage = *known.entry((from_name, to_name)).or_insert_with(|| {
                    provides_edge((from_name, given), (to_name, wanted)).map(|edge| edge.coverage)
                });
                if coverage.is_some() {
                    edges.push(Edge {
                        from: self.nodes[from].id().into(),
                        to: self.nodes[to].id().into(),
                        kind: EdgeKind::Provides,
                        outcome: None,
                        coverage,
                    });
                }
            }
        }
        self.edges.append(&mut edges);
    }
}

/// The nodes that control can reach from each node.
struct Ways {
    next: Vec<Vec<usize>>,
}

impl Ways {
    fn of(structure: &Structure) -> Self {
        let by_id: HashMap<&str, usize> = structure.nodes.iter().map(Node::id).zip(0..).collect();
        let mut next = vec![Vec::new(); structure.nodes.len()];
        for edge in &structure.edges {
            if let (Some(&start), Some(&end)) = (by_id.get(&*edge.from), by_id.get(&*edge.to)) {
                next[start].push(end);
            }
        }
        Self { next }
    }

    fn reachable(&self, from: usize) -> Vec<bool> {
        let mut reached = vec![false; self.next.len()];
        let mut waiting = vec![from];
        while let Some(node) = waiting.pop() {
            for &end in &self.next[node] {
                if end != from && !std::mem::replace(&mut reached[end], true) {
                    waiting.push(end);
                }
            }
        }
        reached
    }
}

fn normalized(name: &str) -> String {
    name.chars().filter(|c| *c != '_' && *c != '-').flat_map(char::to_lowercase).collect()
}

/// Whether the name means the content itself.
pub(crate) fn is_content(name: &str) -> bool {
    CONTENT_NAMES.contains(&normalized(name).as_str())
}

pub(crate) fn input_fields(schema: &Json) -> BTreeMap<&str, &Json> {
    let properties = schema.get("properties").and_then(Json::as_object);
    properties.into_iter().flatten().map(|(name, field)| (name.as_str(), field)).collect()
}

pub(crate) fn required_fields(schema: &Json) -> BTreeSet<&str> {
    schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect()
}

/// The fields of an output; one that isn't an object counts as one field.
pub(crate) fn output_fields(schema: &Json) -> BTreeMap<&str, &Json> {
    let fields = input_fields(schema);
    let is_known = schema.get("type").is_some();
    if fields.is_empty() && is_known && types(schema).iter().all(|name| *name != "object") {
        return BTreeMap::from([("result", schema)]);
    }
    fields
}

/// The JSON types a schema allows; empty if it doesn't say.
pub(crate) fn types(schema: &Json) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    match schema.get("type") {
        Some(Json::String(name)) => {
            names.insert(name.as_str());
        }
        Some(Json::Array(several)) => names.extend(several.iter().filter_map(Json::as_str)),
        _ => {}
    }
    for alternatives in ["anyOf", "oneOf"] {
        for schema in schema.get(alternatives).and_then(Json::as_array).into_iter().flatten() {
            names.extend(types(schema));
        }
    }
    if names.is_empty() {
        let constant = schema.get("const").into_iter();
        let choices = schema.get("enum").and_then(Json::as_array).into_iter().flatten();
        for value in constant.chain(choices) {
            names.insert(json_type(value));
        }
    }
    names
}

/// Whether the types of two schemas are compatible.
pub(crate) fn compatible(given: &Json, wanted: &Json) -> bool {
    let (given, wanted) = (types(given), types(wanted));
    let fits = |name: &&str| wanted.contains(name) || (*name == "integer" && wanted.contains("number"));
    given.is_empty() || wanted.is_empty() || given.iter().any(fits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{CompileOptions, compile};

    fn schema(input: Json, output: Json) -> ToolSchema {
        ToolSchema { input, output }
    }

    fn object(properties: Json, required: Json) -> Json {
        json!({ "type": "object", "properties": properties, "required": required })
    }

    fn tools() -> BTreeMap<String, ToolSchema> {
        let text = json!({ "type": "string" });
        BTreeMap::from([
            (
                "fs:read".into(),
                schema(
                    object(json!({ "path": text }), json!(["path"])),
                    object(json!({ "content": text }), json!([])),
                ),
            ),
            (
                "json:parse".into(),
                schema(
                    object(json!({ "json": text }), json!(["json"])),
                    object(json!({ "data": { "type": "object" } }), json!([])),
                ),
            ),
            (
                "http:post".into(),
                schema(
                    object(json!({ "url": text, "body": { "type": "object" } }), json!(["url", "body"])),
                    json!({}),
                ),
            ),
            (
                "fs:stat".into(),
                schema(
                    object(json!({ "path": text }), json!(["path"])),
                    object(json!({ "path": text, "exists": { "type": "boolean" } }), json!([])),
                ),
            ),
        ])
    }

    fn edge(from: &str, to: &str) -> Option<ProvidesEdge> {
        let tools = tools();
        provides_edge((from, &tools[from]), (to, &tools[to]))
    }

    #[test]
    fn the_seeds_two_examples() {
        let edge_one = edge("fs:read", "json:parse").expect("an edge");
        assert_eq!(edge_one.coverage, Coverage::Strict);
        let mapping =
            FieldMapping { from_field: "content".into(), to_field: "json".into(), type_compatible: true };
        assert_eq!(edge_one.field_mapping, [mapping]);
        assert_eq!(edge("json:parse", "http:post").expect("an edge").coverage, Coverage::Partial);
        assert_eq!(edge("http:post", "json:parse"), None);
    }

    #[test]
    fn coverage_is_about_required_inputs_first() {
        let set = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(coverage(&set(&["a", "b"]), &set(&["a"]), &set(&["c"])), Some(Coverage::Strict));
        assert_eq!(coverage(&set(&["a"]), &set(&["a", "b"]), &set(&[])), Some(Coverage::Partial));
        assert_eq!(coverage(&set(&["c"]), &set(&["a"]), &set(&["c"])), Some(Coverage::Optional));
        assert_eq!(coverage(&set(&["x"]), &set(&["a"]), &set(&["c"])), None);
    }

    #[test]
    fn a_field_of_another_type_feeds_nothing() {
        let number = object(json!({ "path": { "type": "number" } }), json!([]));
        let text = object(json!({ "path": { "type": "string" } }), json!(["path"]));
        let mapping = field_mapping(&number, &text);
        assert!(!mapping[0].type_compatible);
        assert_eq!(provides_edge(("a", &schema(json!({}), number)), ("b", &schema(text, json!({})))), None);
        let integer = json!({ "properties": { "n": { "type": "integer" } } });
        let any_number =
            json!({ "properties": { "n": { "anyOf": [{ "type": "number" }, { "type": "null" }] } } });
        assert!(field_mapping(&integer, &any_number)[0].type_compatible);
        assert_eq!(
            field_mapping(&json!({ "type": "string" }), &json!({ "properties": { "text": {} } }))[0]
                .from_field,
            "result"
        );
    }

    #[test]
    fn the_structure_gets_the_edges_of_its_calls() {
        let code = "const file = await mcp.fs.stat({ path });\nif (file.exists) { return await mcp.fs.read({ path }) } else { await mcp.fs.create({ path }) }";
        let schemas = tools().into_iter().collect();
        let options = CompileOptions { schemas, ..CompileOptions::default() };
        let structure = compile(code, &options).expect("compiles").structure;
        let provides: Vec<Json> = structure
            .edges
            .iter()
            .filter(|edge| edge.kind == EdgeKind::Provides)
            .map(|edge| serde_json::to_value(edge).expect("serializes"))
            .collect();
        assert_eq!(provides, [json!({ "from": "n1", "to": "n2", "type": "provides", "coverage": "strict" })]);
    }

    #[test]
    fn branches_do_not_feed_each_other() {
        let code = "if (args.a) { await mcp.fs.read({ path }) } else { await mcp.json.parse({ json }) }";
        let options = CompileOptions { schemas: tools().into_iter().collect(), ..CompileOptions::default() };
        let structure = compile(code, &options).expect("compiles").structure;
        assert!(structure.edges.iter().all(|edge| edge.kind != EdgeKind::Provides));
    }

    #[test]
    fn the_edges_are_those_of_comparing_all_with_all() {
        let tools = tools();
        for tool in [None, Some("fs:read"), Some("nothing")] {
            let mut compared = Vec::new();
            for from in &tools {
                for to in tools.iter().filter(|to| to.0 != from.0) {
                    if tool.is_none_or(|tool| tool == from.0 || tool == to.0) {
                        compared.extend(provides_edge((from.0, from.1), (to.0, to.1)));
                    }
                }
            }
            let tool = tool.map(str::to_owned);
            let found: Vec<_> = ToolsByInput::of(tools.clone()).edges(tool, || ()).collect();
            assert_eq!(found, compared);
        }
    }
}
