//! Estimates the cost of a validation before it starts, since it can't be interrupted: a schema of a few lines asks for 2⁴⁰
//! comparisons if each of its forty levels refers to the next one twice.

use std::collections::HashMap;

use serde_json::Value;

/// This many comparisons take some tenths of a second.
const MOST: u64 = 200_000;
/// The assumed cost of a reference that isn't a JSON pointer into the schema.
const UNKNOWN: u64 = 10_000;

/// Keywords whose subschemas apply to the same value.
const SAME_VALUE: &[&str] =
    &["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// Whether no subschema can be reached in several ways; then each value is compared with few subschemas.
pub(super) fn is_linear(schema: &Value) -> bool {
    match schema {
        Value::Object(parts) => parts.iter().all(|(keyword, part)| {
            !SAME_VALUE.contains(&keyword.as_str())
                && !REFERENCES.contains(&keyword.as_str())
                && is_linear(part)
        }),
        Value::Array(parts) => parts.iter().all(is_linear),
        _ => true,
    }
}

/// Whether the value can be validated against the schema in bounded time.
pub(super) fn is_bounded(schema: &Value, value: &Value) -> bool {
    let mut effort = Effort { root: schema, known: HashMap::new() };
    effort.of(schema, value) <= MOST
}

/// Follows the validator, but visits each pair of subschema and value once.
struct Effort<'a> {
    root: &'a Value,
    known: HashMap<(*const Value, *const Value), u64>,
}

impl<'a> Effort<'a> {
    fn of(&mut self, part: &'a Value, value: &'a Value) -> u64 {
        let Value::Object(keywords) = part else { return 1 };
        if self.known.len() as u64 > MOST {
            return MOST + 1;
        }
        let pair = (std::ptr::from_ref(part), std::ptr::from_ref(value));
        if let Some(effort) = self.known.get(&pair) {
            return *effort;
        }
        // A cyclic reference at the same value ends at once.
        self.known.insert(pair, 1);
        let mut effort = 1_u64;
        for (keyword, sub) in keywords {
            effort = effort.saturating_add(self.of_keyword(keyword, sub, value));
        }
        self.known.insert(pair, effort);
        effort
    }

    fn of_keyword(&mut self, keyword: &str, sub: &'a Value, value: &'a Value) -> u64 {
        let alternatives: Vec<&Value> = match sub {
            Value::Array(parts) => parts.iter().collect(),
            Value::Object(parts) if keyword.starts_with("depend") => parts.values().collect(),
            part => vec![part],
        };
        match (keyword, value) {
            (name, _) if REFERENCES.contains(&name) => match self.target(sub) {
                Some(target) => self.of(target, value),
                None => UNKNOWN,
            },
            (name, _) if SAME_VALUE.contains(&name) => {
                self.sum(alternatives.into_iter().map(|part| (part, value)))
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
                elements.iter().flat_map(|element| alternatives.iter().map(move |part| (*part, element))),
            ),
            _ => 0,
        }
    }

    fn sum(&mut self, pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> u64 {
        pairs.fold(0, |sum, (part, value)| sum.saturating_add(self.of(part, value)))
    }

    fn target(&self, reference: &Value) -> Option<&'a Value> {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer)
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
