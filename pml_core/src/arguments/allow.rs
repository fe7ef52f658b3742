//! Loosens an inferred schema so that it accepts arguments with which the code has worked.

use serde_json::{Map, Value};

use super::{ArgumentsError, MAX_DEPTH, unreadable};

/// The schema without the constraints that these arguments violate.
pub fn allow(schema: &str, arguments: &str) -> Result<String, ArgumentsError> {
    let mut schema: Value = serde_json::from_str(schema).map_err(|error| unreadable("The schema", &error))?;
    let arguments: Value =
        serde_json::from_str(arguments).map_err(|error| unreadable("The arguments", &error))?;
    loosen(&mut schema, &arguments, 0);
    Ok(schema.to_string())
}

fn loosen(schema: &mut Value, given: &Value, depth: usize) {
    let Some(schema) = schema.as_object_mut().filter(|_| depth <= MAX_DEPTH) else { return };
    let kind = match given {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() && number.as_f64().is_some_and(|n| n.fract() != 0.0) => {
            "number"
        }
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = |name: &str| name == kind || (name == "number" && kind == "integer");
    let has_type = match schema.get("type") {
        Some(Value::String(name)) => fits(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(fits),
        _ => true,
    };
    let is_choice =
        schema.get("enum").and_then(Value::as_array).is_none_or(|choices| choices.contains(given));
    if !has_type || !is_choice {
        schema.retain(|key, _| matches!(key.as_str(), "default" | "description" | "title"));
        return;
    }
    match given {
        Value::Object(given) => {
            if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
                required.retain(|name| name.as_str().is_some_and(|name| given.contains_key(name)));
                if required.is_empty() {
                    schema.remove("required");
                }
            }
            let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
            let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
                return;
            };
            for (name, value) in given {
                match properties.get_mut(name) {
                    Some(property) => loosen(property, value, depth + 1),
                    None if is_closed => drop(properties.insert(name.clone(), Value::Object(Map::new()))),
                    None => {}
                }
            }
        }
        Value::Array(given) => {
            if let Some(items) = schema.get_mut("items") {
                given.iter().for_each(|item| loosen(items, item, depth + 1));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::check;
    use serde_json::json;

    #[test]
    fn what_has_worked_is_allowed() {
        let schema = json!({"type": "object", "required": ["a", "b", "o"], "additionalProperties": false, "properties": {
            "a": {"type": "string"}, "b": {"type": "number", "default": 1}, "c": {"enum": ["x"]},
            "o": {"type": "object", "required": ["p", "q"], "properties": {"p": {}, "q": {}}},
            "l": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "number"}}}},
        }});
        for arguments in [
            json!({}),
            json!({"a": 5}),
            json!({"b": 1}),
            json!({"b": 1.5, "c": "y"}),
            json!({"o": {"p": 1}}),
            json!({"unknown": 1}),
            json!({"l": [{}, {"id": "x"}]}),
            json!({"o": 1, "l": {}}),
        ] {
            let loosened = allow(&schema.to_string(), &arguments.to_string()).unwrap();
            check(&loosened, &arguments.to_string()).unwrap_or_else(|error| panic!("{arguments}: {error:?}"));
        }
        let loosened: Value =
            serde_json::from_str(&allow(&schema.to_string(), "{\"a\": \"x\"}").unwrap()).unwrap();
        assert_eq!(loosened["required"], json!(["a"]), "what was given stays required");
    }
}
