//! The arguments of a call in the structure: values in which node ids stand for calls.

use serde_json::Value as Json;
use swc_atoms::Atom;
use swc_common::Span;

use super::finish::shortened;
use super::{ArgumentValue, Arguments};
use crate::parse::Parsed;
use crate::value::{Chain, Draft, Key, Root, Step, TemplatePart};

/// The first argument of a call; an object's fields are the arguments by name. `ids` maps calls to nodes.
pub(crate) fn arguments<'i>(
    parsed: &Parsed<'_>,
    draft: Draft,
    ids: &impl Fn(Span) -> Option<&'i str>,
) -> Arguments {
    match draft {
        Draft::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, argument(parsed, value, ids))).collect()
        }
        other => [(Atom::from("..."), argument(parsed, other, ids))].into_iter().collect(),
    }
}

fn argument<'i>(parsed: &Parsed<'_>, draft: Draft, ids: &impl Fn(Span) -> Option<&'i str>) -> ArgumentValue {
    match draft {
        Draft::Literal(value) => ArgumentValue::Literal { value },
        Draft::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, argument(parsed, value, ids)));
            literal_object(fields.collect())
        }
        Draft::Array(items) => {
            literal_array(items.into_iter().map(|item| argument(parsed, item, ids)).collect())
        }
        Draft::Template(parts) => {
            let mut template = String::new();
            for part in parts {
                match part {
                    TemplatePart::Text(text) => template.push_str(&text),
                    TemplatePart::Value(value) => {
                        template.push_str("${");
                        push_expression(&mut template, argument(parsed, value, ids));
                        template.push('}');
                    }
                }
            }
            ArgumentValue::Template { template }
        }
        Draft::Source(span) => ArgumentValue::Expression { expression: shortened(parsed.text(span)) },
        Draft::Chain(chain) => chain_argument(parsed, &chain, ids),
    }
}

/// An object whose fields are all literals is one literal.
fn literal_object(fields: Arguments) -> ArgumentValue {
    let is_literal = |(name, value): (&str, &ArgumentValue)| {
        matches!(value, ArgumentValue::Literal { .. }) && name != "..."
    };
    if !fields.iter().all(is_literal) {
        return ArgumentValue::Object { fields };
    }
    let literals = fields
        .into_iter()
        .filter_map(|(name, value)| literal_of(value).map(|json| (name.as_str().to_owned(), json)));
    ArgumentValue::Literal { value: Json::Object(literals.collect()) }
}

fn literal_array(items: Vec<ArgumentValue>) -> ArgumentValue {
    if !items.iter().all(|item| matches!(item, ArgumentValue::Literal { .. })) {
        return ArgumentValue::Array { items };
    }
    ArgumentValue::Literal { value: Json::Array(items.into_iter().filter_map(literal_of).collect()) }
}

fn literal_of(value: ArgumentValue) -> Option<Json> {
    match value {
        ArgumentValue::Literal { value } => Some(value),
        _ => None,
    }
}

fn chain_argument<'i>(
    parsed: &Parsed<'_>,
    chain: &Chain,
    ids: &impl Fn(Span) -> Option<&'i str>,
) -> ArgumentValue {
    let written = || {
        let end = chain
            .steps
            .get(chain.inherited..)
            .and_then(<[Step]>::last)
            .map_or(chain.root_span, |step| step.span);
        let span = Span::new(chain.root_span.lo.min(end.lo), chain.root_span.hi.max(end.hi));
        shortened(parsed.text(span))
    };
    if chain.steps.iter().any(|step| step.key == Key::Dynamic) {
        return ArgumentValue::Expression { expression: written() };
    }
    match &chain.root {
        Root::Call(call) => match ids(*call) {
            Some(id) => ArgumentValue::Reference { expression: path(id, &chain.steps) },
            None => ArgumentValue::Expression { expression: written() },
        },
        Root::Global(name) if *name == *"args" => {
            let mut parameter_name = path("", &chain.steps);
            if parameter_name.is_empty() {
                parameter_name.push_str("args");
            } else if parameter_name.starts_with('.') {
                parameter_name.remove(0);
            }
            ArgumentValue::Parameter { parameter_name }
        }
        Root::Global(name) if chain.steps.is_empty() => match &**name {
            "undefined" | "NaN" | "Infinity" => {
                ArgumentValue::Expression { expression: name.as_str().to_owned() }
            }
            // An undeclared name can only be an input of the capability.
            _ => ArgumentValue::Parameter { parameter_name: name.as_str().to_owned() },
        },
        Root::Global(_) | Root::Local(_) => ArgumentValue::Reference { expression: written() },
        Root::Other => ArgumentValue::Expression { expression: written() },
    }
}

/// The placeholder's content, as code.
fn push_expression(text: &mut String, value: ArgumentValue) {
    match value {
        ArgumentValue::Reference { expression } | ArgumentValue::Expression { expression } => {
            text.push_str(&expression);
        }
        ArgumentValue::Parameter { parameter_name } => {
            if parameter_name != "args" {
                text.push_str("args.");
            }
            text.push_str(&parameter_name);
        }
        ArgumentValue::Literal { value } => text.push_str(&value.to_string()),
        ArgumentValue::Template { template } => text.extend(["`", &template, "`"]),
        other => text.push_str(&serde_json::to_string(&other).unwrap_or_default()),
    }
}

fn path(root: &str, steps: &[Step]) -> String {
    let mut path = root.to_owned();
    for step in steps {
        match &step.key {
            Key::Index(index) => path.push_str(&format!("[{index}]")),
            key => match key.as_text() {
                Some(name) if crate::names::is_identifier(name) => {
                    path.push('.');
                    path.push_str(name);
                }
                name => path.push_str(&format!("[{}]", Json::from(name))),
            },
        }
    }
    path
}
