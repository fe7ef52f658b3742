//! A pipeline of capabilities: its code and its remaining parameters.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::{GenerateError, callee, key, member};
use crate::provides::{
    ToolSchema, compatible, input_fields, is_content, output_fields, provides_edge, required_fields, types,
};

/// A capability to put into a pipeline.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineSource {
    pub name: String,
    pub schema: ToolSchema,
    /// Its input was inferred from its code, which applies the defaults itself.
    pub is_inferred: bool,
}

impl PipelineSource {
    /// What it takes, with the defaults that whoever calls it has to fill in.
    fn input(&self) -> Json {
        let mut input = self.schema.input.clone();
        if self.is_inferred {
            remove_defaults(&mut input);
        }
        input
    }
}

fn remove_defaults(schema: &mut Json) {
    let Json::Object(schema) = schema else { return };
    schema.remove("default");
    for (keyword, part) in schema {
        match (keyword.as_str(), part) {
            ("properties" | "$defs" | "definitions", Json::Object(schemas)) => {
                schemas.values_mut().for_each(remove_defaults);
            }
            ("allOf", Json::Array(schemas)) => schemas.iter_mut().for_each(remove_defaults),
            ("items", items) => remove_defaults(items),
            _ => {}
        }
    }
}

/// A pipeline: each source gets the previous one's result, and the rest from `args`.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    pub code: String,
    /// The parameters of the first source, and those of the others that no step provides.
    pub parameters: Json,
}

pub fn pipeline(sources: &[PipelineSource]) -> Result<Pipeline, GenerateError> {
    let [first, rest @ ..] = sources else { return Err(too_few()) };
    if rest.is_empty() {
        return Err(too_few());
    }
    let mut parameters = ParametersOfSteps::of(&first.input());
    let mut code =
        format!("const step1 = await {}({});\n", callee(&first.name), arguments(first, &BTreeMap::new()));
    for (step, pair) in (2..).zip(sources.windows(2)) {
        let [before, source] = pair else { continue };
        let arguments = match fed_fields(before, source, step - 1)? {
            Fed::Whole(value) => value,
            Fed::Fields(fed) => {
                parameters.add(&source.input(), &fed);
                arguments(source, &fed)
            }
        };
        code.push_str(&format!("const step{step} = await {}({arguments});\n", callee(&source.name)));
    }
    code.push_str(&format!("return step{};\n", sources.len()));
    Ok(Pipeline { code, parameters: parameters.schema() })
}

fn too_few() -> GenerateError {
    GenerateError("a pipeline needs at least two capabilities".to_owned())
}

/// The part of a source's input that comes from the previous step.
enum Fed<'a> {
    /// The expression for each field.
    Fields(BTreeMap<&'a str, String>),
    /// The whole input: the source has no named fields.
    Whole(String),
}

fn fed_fields<'a>(
    before: &PipelineSource,
    source: &'a PipelineSource,
    step: usize,
) -> Result<Fed<'a>, GenerateError> {
    let (given, input) = (&before.schema.output, &source.schema.input);
    let wanted = input_fields(input);
    if let Some(edge) = provides_edge((&before.name, &before.schema), (&source.name, &source.schema)) {
        let is_whole = output_is_whole(given);
        let fields = edge.field_mapping.iter().filter(|field| field.type_compatible).filter_map(|field| {
            let path = if is_whole { String::new() } else { member(&field.from_field) };
            Some((*wanted.get_key_value(&*field.to_field)?.0, format!("step{step}{path}")))
        });
        return Ok(Fed::Fields(fields.collect()));
    }
    if wanted.is_empty() && (types(given).is_empty() || types(given).contains("object")) {
        return Ok(Fed::Whole(format!("step{step}")));
    }
    let field = taker_of_the_whole(given, input).ok_or_else(|| GenerateError(mismatch(before, source)))?;
    Ok(Fed::Fields(BTreeMap::from([(field, format!("step{step}"))])))
}

/// The field for a result without known fields: the content, or else the only required one.
fn taker_of_the_whole<'a>(given: &Json, input: &'a Json) -> Option<&'a str> {
    let (required, fields) = (required_fields(input), input_fields(input));
    let takers: Vec<&str> =
        fields.iter().filter(|(_, wanted)| compatible(given, wanted)).map(|(name, _)| *name).collect();
    let only =
        |fits: &dyn Fn(&str) -> bool| match takers.iter().filter(|name| fits(name)).collect::<Vec<_>>()[..] {
            [taker] => Some(*taker),
            _ => None,
        };
    only(&|name| is_content(name) && required.contains(name)).or_else(|| only(&is_content)).or_else(|| {
        // An object with known fields isn't the content: none of its fields has the right name.
        (input_fields(given).is_empty() && required.len() == 1)
            .then(|| only(&|name| required.contains(name)))?
    })
}

/// The arguments of a step: what the previous step provides, and its own parameters by name.
fn arguments(source: &PipelineSource, fed: &BTreeMap<&str, String>) -> String {
    let fields = input_fields(&source.schema.input);
    if fields.is_empty() {
        return "args".to_owned();
    }
    // One by one, since a capability refuses unknown arguments.
    let own = |name: &str| fed.get(name).cloned().unwrap_or_else(|| format!("args{}", member(name)));
    let fields: Vec<String> = fields.keys().map(|name| format!("{}: {}", key(name), own(name))).collect();
    format!("{{ {} }}", fields.join(", "))
}

/// The parameters of a pipeline, collected step by step.
struct ParametersOfSteps {
    schema: Map<String, Json>,
}

impl ParametersOfSteps {
    fn of(first: &Json) -> Self {
        Self { schema: first.as_object().cloned().unwrap_or_default() }
    }

    fn add(&mut self, input: &Json, fed: &BTreeMap<&str, String>) {
        let is_own = |name: &str| !fed.contains_key(name);
        let own: Map<String, Json> = input_fields(input)
            .into_iter()
            .filter(|(name, _)| is_own(name))
            .map(|(name, field)| (name.to_owned(), field.clone()))
            .collect();
        self.extend("properties", &own);
        for definitions in ["$defs", "definitions"] {
            self.extend(definitions, input.get(definitions).and_then(Json::as_object).unwrap_or(&Map::new()));
        }
        let required = self.schema.entry("required").or_insert_with(|| Json::Array(Vec::new()));
        if let Json::Array(required) = required {
            let more = required_fields(input).into_iter().filter(|name| is_own(name)).map(Json::from);
            let more: Vec<Json> = more.filter(|name| !required.contains(name)).collect();
            required.extend(more);
        }
    }

    /// The first step that declares a parameter wins.
    fn extend(&mut self, keyword: &str, entries: &Map<String, Json>) {
        if entries.is_empty() {
            return;
        }
        let known = self.schema.entry(keyword).or_insert_with(|| Json::Object(Map::new()));
        if let Json::Object(known) = known {
            for (name, entry) in entries {
                known.entry(name.clone()).or_insert_with(|| entry.clone());
            }
        }
    }

    fn schema(mut self) -> Json {
        self.schema.insert("type".to_owned(), Json::from("object"));
        Json::Object(self.schema)
    }
}

fn output_is_whole(output: &Json) -> bool {
    output.get("properties").is_none() && output_fields(output).contains_key("result")
}

fn mismatch(from: &PipelineSource, to: &PipelineSource) -> String {
    let describe = |fields: Vec<(&str, String)>, nothing: &str| {
        if fields.is_empty() {
            return nothing.to_owned();
        }
        let fields: Vec<String> = fields.into_iter().map(|(name, kind)| format!("{name} ({kind})")).collect();
        fields.join(", ")
    };
    let kind = |schema: &Json| {
        let names: Vec<&str> = types(schema).into_iter().collect();
        if names.is_empty() { "any type".to_owned() } else { names.join(" or ") }
    };
    let given =
        output_fields(&from.schema.output).into_iter().map(|(name, field)| (name, kind(field))).collect();
    let input = &to.schema.input;
    let wanted =
        required_fields(input).into_iter().map(|name| (name, kind(&input["properties"][name]))).collect();
    format!(
        "`{}` doesn't fit after `{}`: it needs {}, and `{}` returns {}",
        to.name,
        from.name,
        describe(wanted, "nothing by name"),
        from.name,
        describe(given, "no known fields")
    )
}
