//! Whether any object fits a schema, as far as its types, choices and combinations tell.

use std::collections::HashMap;

use serde_json::Value;

use super::references::References;

/// `false` only if no object fits. The schema has passed `bounds`, so that references end.
pub(super) fn accepts_objects(schema: &Value) -> bool {
    References::of(schema)
        .is_some_and(|references| ObjectSchema { references, known: HashMap::new() }.accepts(schema))
}

struct ObjectSchema<'a> {
    references: References<'a>,
    known: HashMap<*const Value, bool>,
}

impl<'a> ObjectSchema<'a> {
    /// Whether some object may fit.
    fn accepts(&mut self, part: &'a Value) -> bool {
        if let Some(known) = self.known.get(&std::ptr::from_ref(part)) {
            return *known;
        }
        let accepts = self.decide(part);
        self.known.insert(part, accepts);
        accepts
    }

    fn decide(&mut self, part: &'a Value) -> bool {
        let Some(keywords) = part.as_object() else { return part != &Value::Bool(false) };
        let list = |name: &str| keywords.get(name).and_then(Value::as_array);
        let is_type = match keywords.get("type") {
            Some(Value::String(name)) => name == "object",
            Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
            _ => true,
        };
        let has_object = list("enum").is_none_or(|choices| choices.iter().any(Value::is_object))
            && keywords.get("const").is_none_or(Value::is_object)
            && keywords.get("not").is_none_or(|part| !accepts_all(part));
        if !is_type || !has_object {
            return false;
        }
        let mut all = list("allOf").into_iter().flatten().chain(self.references.targets(keywords));
        if !all.all(|part| self.accepts(part)) {
            return false;
        }
        if ["anyOf", "oneOf"]
            .iter()
            .filter_map(|name| list(name))
            .any(|parts| !parts.iter().any(|part| self.accepts(part)))
        {
            return false;
        }
        let Some(condition) = keywords.get("if") else { return true };
        let applies = self.accepts(condition);
        let mut branch = |name| keywords.get(name).is_none_or(|part| self.accepts(part));
        applies && branch("then") || !accepts_all(condition) && branch("else")
    }
}

/// Whether every object certainly fits.
fn accepts_all(part: &Value) -> bool {
    match part {
        Value::Object(keywords) => keywords.iter().all(|(keyword, value)| match keyword.as_str() {
            "type" => {
                value == "object"
                    || value.as_array().is_some_and(|names| names.iter().any(|name| name == "object"))
            }
            "title" | "description" | "$comment" => true,
            _ => false,
        }),
        _ => part == &Value::Bool(true),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_that_no_object_fits_is_found() {
        for schema in [
            json!({"type": "string"}),
            json!({"type": ["string", "null"]}),
            json!({"enum": [1, "a"]}),
            json!({"const": []}),
            json!({"oneOf": [{"type": "string"}, {"type": "array"}]}),
            json!({"$ref": "#/$defs/s", "$defs": {"s": {"type": "number"}}}),
            json!({"$ref": "#s", "$defs": {"s": {"$anchor": "s", "type": "number"}}}),
            json!({"$dynamicRef": "#s", "$defs": {"s": {"$dynamicAnchor": "s", "type": "number"}}}),
            json!({"allOf": [{"type": "object"}, {"type": "string"}]}),
            json!({"allOf": [{"$ref": "#/definitions/q"}], "definitions": {"q": {"type": "array"}}}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"oneOf": [{"type": "integer"}]}}}),
            json!({"not": {"type": "object"}}),
            json!({"not": {}}),
            json!({"if": {"type": "object"}, "then": false}),
            json!({"if": {"type": "string"}, "else": {"type": "array"}}),
        ] {
            assert!(!accepts_objects(&schema), "{schema}");
        }
    }

    #[test]
    fn a_schema_that_objects_fit_is_accepted() {
        for schema in [
            json!({}),
            json!({"type": "object"}),
            json!({"type": ["object", "null"]}),
            json!({"properties": {"a": {"type": "string"}}}),
            json!({"anyOf": [{"required": ["a"]}, {"type": "string"}]}),
            json!({"$ref": "#/$defs/s", "$defs": {"s": {"type": "object"}}}),
            json!({"not": {"required": ["a"]}}),
            json!({"if": {"required": ["a"]}, "then": false}),
            json!({"if": {"type": "object"}, "then": {"required": ["a"]}, "else": false}),
            json!({"enum": [{}, 1]}),
        ] {
            assert!(accepts_objects(&schema), "{schema}");
        }
    }
}
