//! Rejects schemas that could exhaust the process before any value is validated: the validator follows references recursively,
//! can't be interrupted, and compiles what `unevaluatedProperties` depends on once for each way that leads to it.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{
    effort::same_value,
    references::{References, subschemas},
};

/// Compiling a schema of this size takes some tenths of a second.
const MOST_BYTES: usize = 512 * 1024;
/// Subschemas that may be compiled for `unevaluatedProperties` and `unevaluatedItems`.
const MOST_COMPILED: u64 = 20_000;
/// Subschemas that may apply to the same value one inside the other, references included.
const DEEPEST: usize = 200;
/// Patterns in a schema, and the memory for all of them together once they are compiled.
const MOST_PATTERNS: usize = 1_000;
const PATTERN_MEMORY: usize = 64 * 1024 * 1024;
const UNEVALUATED: &[&str] = &["unevaluatedProperties", "unevaluatedItems"];

/// The memory for each of its patterns, or what is wrong with the schema.
pub(super) fn check(text: &str, schema: &Value) -> Result<usize, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("it has {} bytes, and at most {MOST_BYTES} are supported", text.len()));
    }
    let references = References::of(schema)
        .ok_or("\"$id\" is only supported at its top; refer to \"#/$defs/…\" instead of an id")?;
    let mut bounds = Bounds { references, chains: HashMap::new(), compiled: HashMap::new() };
    let steps = bounds.compiled(schema)?;
    // Without these keywords each subschema is compiled once.
    if steps.saturating_sub(bounds.compiled.len() as u64) > MOST_COMPILED {
        return Err(
            "\"unevaluatedProperties\" and \"unevaluatedItems\" depend on too many subschemas".to_owned()
        );
    }
    match patterns(schema) {
        many if many > MOST_PATTERNS => {
            Err(format!("it has {many} patterns, and at most {MOST_PATTERNS} are supported"))
        }
        few => Ok(PATTERN_MEMORY / few.max(1)),
    }
}

fn patterns(part: &Value) -> usize {
    match part {
        Value::Object(keywords) => {
            let own = keywords.get("pattern").is_some_and(Value::is_string);
            let of_names = keywords.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
            keywords.values().map(patterns).sum::<usize>() + of_names + usize::from(own)
        }
        Value::Array(parts) => parts.iter().map(patterns).sum(),
        _ => 0,
    }
}

struct Bounds<'a> {
    references: References<'a>,
    /// `None` while it is being computed.
    chains: HashMap<*const Value, Option<Chain>>,
    compiled: HashMap<*const Value, u64>,
}

/// The subschemas that apply to the same value as a given one.
#[derive(Clone, Copy)]
struct Chain {
    depth: usize,
    /// How many are compiled to know what they evaluate.
    steps: u64,
}

impl<'a> Bounds<'a> {
    /// How many subschemas are compiled for this one, each reference counted as one.
    fn compiled(&mut self, part: &'a Value) -> Result<u64, String> {
        let Value::Object(keywords) = part else {
            return sum(part.as_array().into_iter().flatten().map(|part| self.compiled(part)));
        };
        if let Some(steps) = self.compiled.get(&std::ptr::from_ref(part)) {
            return Ok(*steps);
        }
        let chain = self.chain(part, 0)?;
        let own = if UNEVALUATED.iter().any(|name| keywords.contains_key(*name)) { chain.steps } else { 0 };
        let inside = sum(subschemas(keywords).map(|(_, part)| self.compiled(part)))?;
        let steps = inside.saturating_add(own).saturating_add(1);
        self.compiled.insert(part, steps);
        Ok(steps)
    }

    fn chain(&mut self, part: &'a Value, above: usize) -> Result<Chain, String> {
        let Value::Object(keywords) = part else { return Ok(Chain { depth: 0, steps: 1 }) };
        let too_deep = || Err(format!("over {DEEPEST} subschemas refer to each other for the same value"));
        if above > DEEPEST {
            return too_deep();
        }
        match self.chains.get(&std::ptr::from_ref(part)) {
            Some(Some(chain)) if above + chain.depth > DEEPEST => return too_deep(),
            Some(Some(chain)) => return Ok(*chain),
            Some(None) => return Err("a reference leads back to itself for the same value".to_owned()),
            None => self.chains.insert(part, None),
        };
        let referenced = self.references.targets(keywords);
        let inline = keywords.iter().flat_map(|(keyword, sub)| same_value(keyword, sub));
        let nexts: Vec<&Value> = inline.chain(referenced).collect();
        let mut whole = Chain { depth: 0, steps: 1 };
        for next in nexts {
            let chain = self.chain(next, above + 1)?;
            whole.depth = whole.depth.max(chain.depth + 1);
            whole.steps = whole.steps.saturating_add(chain.steps);
        }
        // Of properties only the names count.
        let compiled =
            subschemas(keywords).filter(|(name, _)| !["properties", "$defs", "definitions"].contains(name));
        let compiled = sum(compiled.map(|(_, part)| self.compiled(part)))?;
        whole.steps = whole.steps.saturating_add(compiled);
        self.chains.insert(part, Some(whole));
        Ok(whole)
    }
}

fn sum(parts: impl Iterator<Item = Result<u64, String>>) -> Result<u64, String> {
    let mut sum = 0_u64;
    for part in parts {
        sum = sum.saturating_add(part?);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(schema: &Value) -> Result<(), String> {
        check(&schema.to_string(), schema).map(drop)
    }

    /// `$defs` in which each refers to the one before as `refer` says.
    fn levels(count: usize, refer: impl Fn(Value) -> Value) -> Value {
        let level = |n: usize| match n {
            0 => json!({"properties": {"a": {}}}),
            _ => refer(json!({"$ref": format!("#/$defs/d{}", n - 1)})),
        };
        let defs: Map<String, Value> = (0..count).map(|n| (format!("d{n}"), level(n))).collect();
        json!({"$ref": format!("#/$defs/d{}", count - 1), "$defs": defs})
    }

    fn unevaluated(mut schema: Value) -> Value {
        schema["unevaluatedProperties"] = false.into();
        schema
    }

    #[test]
    fn what_would_exhaust_the_process_is_refused() {
        let twice = |next: Value| json!({"allOf": [next, next]});
        let complete = |n: usize| {
            let others = |own: usize| (0..n).filter(move |other| *other != own);
            let refer = |own| {
                others(own).map(|other| json!({"$ref": format!("#/$defs/d{other}")})).collect::<Vec<_>>()
            };
            let defs: Map<String, Value> =
                (0..n).map(|own| (format!("d{own}"), json!({"anyOf": refer(own)}))).collect();
            json!({"$ref": "#/$defs/d0", "$defs": defs})
        };
        let anchored = |n: usize| match n {
            0 => json!({"$anchor": "a0"}),
            _ => twice(json!({"$ref": format!("#a{}", n - 1)})),
        };
        let mut anchors: Map<String, Value> = (0..40).map(|n| (format!("d{n}"), anchored(n))).collect();
        anchors.iter_mut().for_each(|(name, part)| part["$anchor"] = name.replace('d', "a").into());
        let nested = |schema: Value, _| json!({"unevaluatedProperties": false, "allOf": [schema]});
        for (schema, why) in [
            (levels(5_000, |next| next), "over 200 subschemas"),
            (unevaluated(levels(26, twice)), "depend on too many subschemas"),
            (unevaluated(json!({"$ref": "#a39", "$defs": anchors})), "depend on too many subschemas"),
            ((0..30).fold(json!({}), nested), "depend on too many subschemas"),
            (complete(12), "leads back to itself"),
            (json!({"$ref": "#"}), "leads back to itself"),
            (
                json!({"properties": {"a": {"$id": "x", "$ref": "#/y"}}}),
                "\"$id\" is only supported at its top",
            ),
            (json!({"description": "x".repeat(MOST_BYTES)}), "bytes"),
            (json!({"items": vec![json!({"pattern": "a"}); MOST_PATTERNS + 1]}), "1001 patterns"),
        ] {
            let refused = checked(&schema).unwrap_err();
            assert!(refused.contains(why), "{why}: {refused}");
        }
    }

    #[test]
    fn what_people_write_is_accepted() {
        let tree = json!({"$id": "https://example.org/tree", "$ref": "#/$defs/tree", "$defs": {
            "tree": {"type": "object", "unevaluatedProperties": false, "properties": {
                "id": {"type": "string"}, "$id": {"type": "string"}, "left": {"$ref": "#/$defs/tree"},
                "right": {"$ref": "#"}, "value": {"anyOf": [{"type": "string"}, {"$ref": "#text"}]}}},
            "text": {"$anchor": "text", "type": "string", "default": {"$id": "data"}}}});
        let part = |n: usize| {
            let own =
                json!({"type": "object", "unevaluatedProperties": false, "allOf": [{"required": ["a"]}]});
            json!({"properties": {format!("p{n}"): own}, "if": {"required": ["b"]}, "then": {"required": ["c"]}})
        };
        let mixed = json!({"unevaluatedProperties": false, "allOf": (0..50).map(part).collect::<Vec<_>>()});
        let wide: Map<String, Value> =
            (0..3_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        for schema in [tree, mixed, json!({"properties": wide}), levels(90, |next| json!({"allOf": [next]}))]
        {
            assert_eq!(checked(&schema), Ok(()));
        }
    }
}
