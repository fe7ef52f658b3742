//! Estimates the cost of a validation before it starts, since it can't be interrupted: a schema of a few lines asks for 2⁴⁰
//! comparisons if each of its forty levels refers to the next one twice.

use std::collections::HashMap;

use serde_json::Value;

use super::references::{References, is_reference};

/// This many comparisons take some tenths of a second.
const MOST: u64 = 200_000;
/// The assumed cost of a reference that isn't a JSON pointer into the schema.
const UNKNOWN: u64 = 10_000;

/// How deep a validation may go: it is recursive, and the stack isn't endless.
const DEEPEST: usize = 1_000;

/// Keywords whose subschemas apply to the same value.
const SAME_VALUE: &[&str] =
    &["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// The subschemas of a keyword that apply to the same value.
pub(super) fn same_value<'a>(keyword: &str, sub: &'a Value) -> Vec<&'a Value> {
    match sub {
        _ if !SAME_VALUE.contains(&keyword) => Vec::new(),
        Value::Object(parts) if keyword.starts_with("depend") => parts.values().collect(),
        _ => alternatives(sub),
    }
}

fn alternatives(sub: &Value) -> Vec<&Value> {
    match sub {
        Value::Array(parts) => parts.iter().collect(),
        part => vec![part],
    }
}

/// Whether no subschema can be reached in several ways; then each value is compared with few subschemas.
pub(super) fn is_linear(schema: &Value) -> bool {
    match schema {
        Value::Object(parts) => parts.iter().all(|(keyword, part)| {
            !SAME_VALUE.contains(&keyword.as_str()) && !is_reference(keyword) && is_linear(part)
        }),
        Value::Array(parts) => parts.iter().all(is_linear),
        _ => true,
    }
}

/// Whether the value can be validated against the schema in bounded time.
pub(super) fn is_bounded(schema: &Value, value: &Value) -> bool {
    let Some(references) = References::of(schema) else { return false };
    let mut effort = Effort { references, known: HashMap::new(), depth: 0 };
    effort.of(schema, value) <= MOST
}

/// Follows the validator, but visits each pair of subschema and value once.
struct Effort<'a> {
    references: References<'a>,
    known: HashMap<(*const Value, *const Value), u64>,
    depth: usize,
}

impl<'a> Effort<'a> {
    fn of(&mut self, part: &'a Value, value: &'a Value) -> u64 {
        let Value::Object(keywords) = part else { return 1 };
        if self.known.len() as u64 > MOST || self.depth > DEEPEST {
            return MOST + 1;
        }
        let pair = (std::ptr::from_ref(part), std::ptr::from_ref(value));
        if let Some(effort) = self.known.get(&pair) {
            return *effort;
        }
        // A cyclic reference at the same value ends at once.
        self.known.insert(pair, 1);
        let mut effort = 1_u64;
        self.depth += 1;
        for (keyword, sub) in keywords {
            effort = effort.saturating_add(self.of_keyword(keyword, sub, value));
        }
        self.depth -= 1;
        self.known.insert(pair, effort);
        effort
    }

    fn of_keyword(&mut self, keyword: &str, sub: &'a Value, value: &'a Value) -> u64 {
        match (keyword, value) {
            (name, _) if is_reference(name) => match self.references.target(sub) {
                Some(target) => self.of(target, value),
                None => UNKNOWN,
            },
            (name, _) if SAME_VALUE.contains(&name) => {
                self.sum(same_value(keyword, sub).into_iter().map(|part| (part, value)))
            }
            ("properties", Value::Object(fields)) => {
                let named = sub.as_object().into_iter().flatten();
                self.sum(named.filter_map(|(name, part)| Some((part, fields.get(name)?))))
            }
            ("patternProperties", Value::Object(fields)) => {
                let parts = sub.as_object().into_iter().flat_map(|parts| parts.values());
                self.sum(parts.flat_map(|part| fields.values().map(move |field| (part, field))))
            }
            ("additionalProperties" | "unevaluatedProperties", Value::Object(fields)) => {
                self.sum(fields.values().map(|field| (sub, field)))
            }
            ("propertyNames", Value::Object(fields)) => fields.len() as u64,
            (
                "items" | "prefixItems" | "contains" | "additionalItems" | "unevaluatedItems",
                Value::Array(elements),
            ) => self.sum(
                elements
                    .iter()
                    .flat_map(|element| alternatives(sub).into_iter().map(move |part| (part, element))),
            ),
            _ => 0,
        }
    }

    fn sum(&mut self, pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> u64 {
        pairs.fold(0, |sum, (part, value)| sum.saturating_add(self.of(part, value)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn ways_that_multiply_are_found() {
        let level = |n: usize| {
            let next = format!("#/$defs/a{}", n + 1);
            (format!("a{n}"), json!({"anyOf": [{"$ref": next}, {"minProperties": 0, "$ref": next}]}))
        };
        let mut parts: Map<String, Value> = (0..40).map(level).collect();
        parts.insert("a40".to_owned(), json!({"required": ["missing"]}));
        let schema = json!({"$ref": "#/$defs/a0", "$defs": parts});
        assert!(!is_linear(&schema) && !is_bounded(&schema, &json!({})));

        let down = json!({"required": ["c"], "properties": {"c": {"$ref": "#/$defs/n"}}});
        let twice = json!({"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [down, {"minProperties": 0, "allOf": [down]}]}}});
        let deep = (0..60).fold(json!({}), |inner, _| json!({"c": inner}));
        assert!(!is_bounded(&twice, &deep));
        assert!(is_bounded(&twice, &json!({"c": {"c": {}}})));
    }

    #[test]
    fn what_people_write_is_bounded() {
        let tree = json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {
            "left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}, "value": {"anyOf": [{"type": "string"}, {"type": "number"}]}}}}});
        let full = (0..10)
            .fold(json!({"value": 1}), |inner, _| json!({"left": inner, "right": inner, "value": "x"}));
        assert!(is_bounded(&tree, &full));
        let list =
            json!({"properties": {"list": {"items": {"oneOf": [{"type": "string"}, {"type": "number"}]}}}});
        assert!(is_bounded(&list, &json!({"list": vec![1; 20_000]})));
        assert!(is_linear(
            &json!({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}})
        ));
    }
}
