//! Validates the arguments of a call against a JSON Schema, after filling in the schema's defaults.
//!
//! Messages name arguments and what was expected of them, never their values.

mod allow;
mod bounds;
mod effort;
mod object_schema;
mod references;

use std::{cell::RefCell, rc::Rc};

use jsonschema::{PatternOptions, ValidationError, Validator, error::ValidationErrorKind};
use serde_json::{Map, Value};

use crate::nearest::nearest;

pub use allow::allow;

/// Why arguments or a schema were refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentsError {
    pub message: String,
    pub detail: Option<String>,
    pub hint: String,
}

/// How many problems one error reports.
const MAX_REPORTED: usize = 8;
/// Limits on the subschemas visited for defaults, since `$ref`s can be cyclic.
const MAX_SUBSCHEMAS: usize = 10_000;
const MAX_DEPTH: usize = 64;
/// Backtracking steps allowed for one match of a `pattern`.
const BACKTRACK_LIMIT: usize = 10_000;

/// The arguments with the schema's defaults filled in, if they are valid.
pub fn check(schema: &str, arguments: &str) -> Result<String, ArgumentsError> {
    let mut arguments = object(arguments)?;
    let known = KnownSchema::of(schema)?;
    Defaults { root: &known.schema, path: Vec::new(), visited: 0 }.fill(&known.schema, &mut arguments, false);
    validate_against(&known, &arguments)?;
    Ok(arguments.to_string())
}

/// Whether the arguments are valid as they are. For schemas inferred from code, which applies its defaults itself: filling them
/// in would change what `"n" in args` or a second `args.n ?? 2` gives. A null counts as not given unless it is required: most
/// code treats both alike, and a type that was read off its use says nothing about null.
pub fn validate(schema: &str, arguments: &str) -> Result<(), ArgumentsError> {
    let mut arguments = object(arguments)?;
    let known = KnownSchema::of(schema)?;
    remove_optional_nulls(&known.schema, &mut arguments);
    validate_against(&known, &arguments)
}

/// Recursive: the parser has limited the depth.
fn remove_optional_nulls(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_required = |name: &str| {
                schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
            };
            let is_known = |name: &str| schema["properties"].get(name).is_some();
            fields.retain(|name, field| !field.is_null() || is_required(name) || !is_known(name));
            for (name, field) in fields {
                remove_optional_nulls(&schema["properties"][name.as_str()], field);
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| remove_optional_nulls(&schema["items"], item));
        }
        _ => {}
    }
}

fn object(arguments: &str) -> Result<Value, ArgumentsError> {
    let arguments: Value =
        serde_json::from_str(arguments).map_err(|error| unreadable("The arguments", &error))?;
    if !arguments.is_object() {
        return Err(ArgumentsError {
            message: format!("Invalid arguments: expected a JSON object, found {}", kind_of(&arguments)),
            detail: None,
            hint: "Give {\"name\": value, …}; {} for none.".to_owned(),
        });
    }
    Ok(arguments)
}

fn validate_against(known: &KnownSchema, arguments: &Value) -> Result<(), ArgumentsError> {
    if !known.is_linear && !effort::is_bounded(&known.schema, arguments) {
        return Err(ArgumentsError {
            message: "Invalid arguments: validating them against the schema would take too long".to_owned(),
            detail: None,
            hint: "Give less at once, or give the capability a schema with fewer alternatives inside alternatives."
                .to_owned(),
        });
    }
    let mut meant = None;
    let mut problems: Vec<String> = Vec::new();
    for error in known.validator.iter_errors(arguments).take(MAX_REPORTED) {
        meant = meant.or_else(|| meant_instead(&known.schema, &error));
        problems.push(describe(&error));
    }
    match problems.split_first() {
        None => Ok(()),
        Some((first, others)) => Err(ArgumentsError {
            message: format!("Invalid arguments: {first}"),
            detail: (!others.is_empty()).then(|| format!("Also: {}.", others.join("; "))),
            hint: match meant {
                Some(name) => format!("Did you mean \"{}\"? {}", short(name), expected(&known.schema)),
                None => expected(&known.schema),
            },
        }),
    }
}

/// The known argument that is closest to an unknown one.
fn meant_instead<'s>(schema: &'s Value, error: &ValidationError<'_>) -> Option<&'s str> {
    let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() else { return None };
    let known =
        schema.get("properties").filter(|_| error.instance_path().as_str().is_empty())?.as_object()?;
    unexpected.iter().find_map(|name| nearest(name, known.keys().map(String::as_str)))
}

/// Checks that this is a JSON Schema which can be used for a capability's arguments or result; `what` is its name in errors.
pub fn check_schema(what: &str, schema: &str) -> Result<(), ArgumentsError> {
    let hint =
        "Give a JSON Schema: {\"type\": \"object\", \"properties\": {\"path\": {\"type\": \"string\"}}}.";
    compile(what, schema, hint).map(drop)
}

/// The same for the schema of a capability's parameters, which must accept objects: arguments are given by name.
pub fn check_parameters(schema: &str) -> Result<(), ArgumentsError> {
    check_schema("parameters_schema", schema)?;
    let schema: Value = serde_json::from_str(schema).map_err(|error| unreadable("The schema", &error))?;
    if schema.is_object() && object_schema::accepts_objects(&schema) {
        return Ok(());
    }
    Err(ArgumentsError {
        message: "Invalid parameters_schema: it must be the schema of an object".to_owned(),
        detail: None,
        hint: "Arguments are given by name: {\"type\": \"object\", \"properties\": {…}, \"required\": […]}."
            .to_owned(),
    })
}

/// Compiles a schema within bounded time, memory and stack.
fn compile(what: &str, text: &str, hint: &str) -> Result<(Value, Validator), ArgumentsError> {
    let schema: Value = serde_json::from_str(text).map_err(|error| unreadable("The schema", &error))?;
    let refused = |why: &str| ArgumentsError {
        message: format!("Invalid {what}: {why}"),
        detail: None,
        hint: hint.to_owned(),
    };
    let pattern_memory = bounds::check(text, &schema).map_err(|why| refused(&why))?;
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACK_LIMIT)
        .size_limit(pattern_memory)
        .dfa_size_limit(pattern_memory);
    let validator = jsonschema::options().with_pattern_options(patterns).build(&schema);
    let validator = validator.map_err(|error| refused(&describe(&error)))?;
    Ok((schema, validator))
}

struct KnownSchema {
    schema: Value,
    is_linear: bool,
    validator: Validator,
}

/// How many compiled schemas are cached: compiling one takes tens of microseconds, more than everything else here, and a
/// session uses the same few.
const CACHED: usize = 64;

thread_local! {
    static KNOWN: RefCell<Vec<(String, Rc<KnownSchema>)>> = const { RefCell::new(Vec::new()) };
}

impl KnownSchema {
    fn of(schema: &str) -> Result<Rc<KnownSchema>, ArgumentsError> {
        let cached = KNOWN.with_borrow(|known| {
            known.iter().find(|(text, _)| text == schema).map(|(_, found)| Rc::clone(found))
        });
        if let Some(found) = cached {
            return Ok(found);
        }
        let compiled = Rc::new(KnownSchema::compile(schema)?);
        KNOWN.with_borrow_mut(|known| {
            if known.len() >= CACHED {
                known.remove(0);
            }
            known.push((schema.to_owned(), Rc::clone(&compiled)));
        });
        Ok(compiled)
    }

    fn compile(text: &str) -> Result<KnownSchema, ArgumentsError> {
        let hint = "The capability's parameters_schema isn't a usable JSON Schema; replace it.";
        let (schema, validator) = compile("parameter schema", text, hint)?;
        Ok(KnownSchema { is_linear: effort::is_linear(&schema), schema, validator })
    }
}

/// Text from jsonb is always JSON, so parsing only fails on deep nesting or on a number out of range.
/// The error for JSON that can't be read.
pub fn unreadable(what: &str, error: &serde_json::Error) -> ArgumentsError {
    ArgumentsError {
        message: format!("{what} can't be read: {error}"),
        detail: None,
        hint: "JSON may be nested at most 127 levels, with numbers that fit a double.".to_owned(),
    }
}

struct Defaults<'a> {
    root: &'a Value,
    /// The subschemas that are being filled in.
    path: Vec<*const Value>,
    visited: usize,
}

impl Defaults<'_> {
    /// Adds the defaults of missing fields, in nested objects too. An object that was missing is not filled in by a subschema
    /// that it is part of: that would never end.
    fn fill(&mut self, schema: &Value, value: &mut Value, was_missing: bool) {
        let place = std::ptr::from_ref(schema);
        self.visited += 1;
        if self.visited > MAX_SUBSCHEMAS
            || self.path.len() > MAX_DEPTH
            || was_missing && self.path.contains(&place)
        {
            return;
        }
        self.path.push(place);
        self.fill_object(schema, value, was_missing);
        self.path.pop();
    }

    fn fill_object(&mut self, schema: &Value, value: &mut Value, was_missing: bool) {
        let (Some(schema), Some(object)) = (schema.as_object(), value.as_object_mut()) else { return };
        if let Some(Value::Object(defaults)) = schema.get("default") {
            for (name, default) in defaults {
                add(object, name, default);
            }
        }
        if let Some(Value::Object(properties)) = schema.get("properties") {
            for (name, property) in properties {
                if let Some(default) = property.get("default") {
                    add(object, name, default);
                }
                match object.get_mut(name) {
                    Some(nested) => self.fill(property, nested, false),
                    // Nested defaults create a missing object, unless it would still lack a required field.
                    None => {
                        let mut nested = Value::Object(Map::new());
                        self.fill(property, &mut nested, true);
                        let lacks =
                            |name: &Value| name.as_str().is_some_and(|name| nested.get(name).is_none());
                        let is_whole =
                            !property["required"].as_array().is_some_and(|names| names.iter().any(lacks));
                        if is_whole && nested.as_object().is_some_and(|nested| !nested.is_empty()) {
                            object.insert(name.clone(), nested);
                        }
                    }
                }
            }
        }
        let referenced = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| reference.strip_prefix('#'))
            .and_then(|pointer| self.root.pointer(pointer));
        let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        for part in parts.chain(referenced) {
            self.fill(part, value, was_missing);
        }
    }
}

fn add(object: &mut Map<String, Value>, name: &str, default: &Value) {
    if !object.contains_key(name) {
        object.insert(name.to_owned(), default.clone());
    }
}

fn describe(error: &ValidationError<'_>) -> String {
    let place = place(error.instance_path().as_str());
    let child = |name: &str| if place.is_empty() { short(name) } else { format!("{place}.{}", short(name)) };
    let names =
        |names: &[String]| names.iter().map(|name| format!("\"{}\"", child(name))).collect::<Vec<_>>();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("\"{}\" is missing", child(property.as_str().unwrap_or_default()))
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            format!("{} is not an argument", names(unexpected).join(", "))
        }
        ValidationErrorKind::Referencing(_) => {
            "a \"$ref\" can't be resolved; only references within the schema are supported".to_owned()
        }
        ValidationErrorKind::PropertyNames { .. } => {
            format!("{} has a key that is not allowed", quoted(&place))
        }
        _ => {
            let what = error.masked_with(quoted(&place)).to_string();
            short(&what)
        }
    }
}

/// The JSON type of a value, for a message.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn quoted(place: &str) -> String {
    if place.is_empty() { "the top-level value".to_owned() } else { format!("\"{place}\"") }
}

/// A JSON pointer as people write it: `a.b[0]`.
fn place(pointer: &str) -> String {
    let mut place = String::new();
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        if step.parse::<usize>().is_ok() && !place.is_empty() {
            place.push_str(&format!("[{step}]"));
        } else {
            if !place.is_empty() {
                place.push('.');
            }
            place.push_str(&step);
        }
    }
    short(&place)
}

/// The start of a text, without control characters.
fn short(text: &str) -> String {
    const SHOWN: usize = 200;
    let mut short: String = text.chars().take(SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    short
}

/// The arguments that the schema knows, for a hint.
fn expected(schema: &Value) -> String {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut optional: Vec<&str> = schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .filter(|name| !required.contains(name))
        .collect();
    // By name: their order in Postgres means nothing.
    optional.sort_unstable();
    let list = |names: &[&str]| short(&names.join(", "));
    match (required.is_empty(), optional.is_empty()) {
        (true, true) => "See the tool's schema for what it takes.".to_owned(),
        (true, false) => format!("Optional: {}.", list(&optional)),
        (false, true) => format!("Required: {}.", list(&required)),
        (false, false) => format!("Required: {}. Optional: {}.", list(&required), list(&optional)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn checked(schema: &Value, arguments: &Value) -> Result<Value, ArgumentsError> {
        check(&schema.to_string(), &arguments.to_string()).map(|text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn defaults_fill_what_is_missing_at_every_level() {
        let schema = json!({
            "type": "object",
            "default": {"mode": "r"},
            "properties": {
                "path": {"type": "string"},
                "encoding": {"type": "string", "default": "utf-8"},
                "options": {"type": "object", "properties": {"depth": {"default": 3}}},
                "limits": {"$ref": "#/$defs/limits"},
            },
            "$defs": {"limits": {"type": "object", "properties": {"max": {"default": 9}}}},
            "allOf": [{"properties": {"late": {"default": null}}}],
        });
        assert_eq!(
            checked(&schema, &json!({"path": "x", "options": {}, "limits": {"max": 1}})).unwrap(),
            json!({"path": "x", "encoding": "utf-8", "mode": "r", "options": {"depth": 3}, "limits": {"max": 1}, "late": null})
        );
        assert_eq!(
            checked(&schema, &json!({"encoding": "x", "late": 1, "mode": "w"})).unwrap()["encoding"],
            "x"
        );
    }

    #[test]
    fn defaults_inside_make_the_object_that_was_not_given() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "object", "properties": {"c": {"default": 1}}}}},
            "lacking": {"type": "object", "required": ["x"], "properties": {"x": {}, "y": {"default": 2}}},
            "plain": {"type": "object", "properties": {"z": {"type": "string"}}},
        }});
        assert_eq!(checked(&schema, &json!({})).unwrap(), json!({"a": {"b": {"c": 1}}}));
        assert_eq!(
            checked(&schema, &json!({"a": {"b": {"c": 5}}, "lacking": {"x": 1}})).unwrap(),
            json!({"a": {"b": {"c": 5}}, "lacking": {"x": 1, "y": 2}})
        );
    }

    #[test]
    fn arguments_can_be_validated_as_they_are() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "number"}, "b": {"type": "number", "default": "none"}}})
        .to_string();
        assert_eq!(validate(&schema, "{\"a\": 1}"), Ok(()));
        assert_eq!(
            validate(&schema, "{\"b\": 1}").unwrap_err().message,
            "Invalid arguments: \"a\" is missing"
        );
        assert!(validate(&schema, "[]").is_err());
    }

    #[test]
    fn an_unknown_argument_has_a_nearest_name() {
        let schema = json!({"type": "object", "properties": {"path": {}, "encoding": {}}, "additionalProperties": false});
        let error = checked(&schema, &json!({"pth": 1})).unwrap_err();
        assert_eq!(error.message, "Invalid arguments: \"pth\" is not an argument");
        assert_eq!(error.hint, "Did you mean \"path\"? Optional: encoding, path.");
        assert_eq!(checked(&schema, &json!({"zzzzzz": 1})).unwrap_err().hint, "Optional: encoding, path.");
    }

    #[test]
    fn a_null_counts_as_not_given_where_nothing_is_required() {
        let schema = json!({"type": "object", "required": ["path"], "additionalProperties": false, "properties": {
            "path": {"type": "string"}, "n": {"type": "number"},
            "o": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "string"}}}}}});
        let validated = |arguments: Value| validate(&schema.to_string(), &arguments.to_string());
        assert_eq!(validated(json!({"path": "x", "n": null, "o": null})), Ok(()));
        assert_eq!(validated(json!({"path": "x", "o": {"a": "", "b": null}, "list": [{"c": null}]})), Ok(()));
        for (arguments, why) in [
            (json!({"path": null}), "\"path\" is not of type"),
            (json!({"path": "x", "o": {"a": null}}), "\"o.a\" is not of type"),
            (json!({"path": "x", "pth": null}), "\"pth\" is not an argument"),
            (json!({"path": "x", "list": [null]}), "\"list[0]\" is not of type"),
        ] {
            let refused = validated(arguments).unwrap_err().message;
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn references_in_a_circle_are_refused() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}),
            json!({"$ref": "#/$defs/b", "$defs": {"b": {"$ref": "#/$defs/c"}, "c": {"$ref": "#/$defs/b"}}}),
            json!({"$dynamicRef": "#x", "$dynamicAnchor": "x"}),
        ] {
            let refused = checked(&schema, &json!({})).unwrap_err();
            let why = "Invalid parameter schema: a reference leads back to itself for the same value";
            assert_eq!(refused.message, why, "{schema}");
        }
    }

    #[test]
    fn defaults_of_a_recursive_schema_are_filled_once() {
        let schema = json!({"type": "object", "properties": {"n": {"$ref": "#"}, "d": {"default": 1}}});
        assert_eq!(checked(&schema, &json!({})).unwrap(), json!({"d": 1}));
        assert_eq!(
            checked(&schema, &json!({"n": {"n": {}}})).unwrap(),
            json!({"d": 1, "n": {"d": 1, "n": {"d": 1}}})
        );
        let schema = json!({"properties": {"o": {"$ref": "#/$defs/o"}}, "$defs": {"o": {"properties": {
            "d": {"default": 1}, "o": {"$ref": "#/$defs/o"}, "p": {"properties": {"e": {"default": 2}}}}}}});
        assert_eq!(checked(&schema, &json!({})).unwrap(), json!({"o": {"d": 1, "p": {"e": 2}}}));
    }

    #[test]
    fn a_problem_says_which_argument_and_what_was_expected() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "pattern": "^/"},
                "count": {"type": "integer", "minimum": 1},
                "list": {"type": "array", "items": {"type": "object", "required": ["id"]}},
                "mode": {"enum": ["r", "w"]},
            },
            "required": ["path"],
            "additionalProperties": false,
        });
        for (arguments, message) in [
            (json!({}), "\"path\" is missing"),
            (json!({"path": 5}), "\"path\" is not of type \"string\""),
            (json!({"path": "x"}), "\"path\" does not match \"^/\""),
            (json!({"path": "/", "count": 0}), "\"count\" is less than the minimum of 1"),
            (json!({"path": "/", "list": [{"id": 1}, {}]}), "\"list[1].id\" is missing"),
            (json!({"path": "/", "mode": "x"}), "\"mode\" is not one of \"r\" or \"w\""),
            (json!({"path": "/", "extra": 1}), "\"extra\" is not an argument"),
        ] {
            let error = checked(&schema, &arguments).unwrap_err();
            assert_eq!(error.message, format!("Invalid arguments: {message}"), "{arguments}");
            assert_eq!(error.hint, "Required: path. Optional: count, list, mode.");
        }
        let error = checked(&schema, &json!({"count": 0, "mode": 1})).unwrap_err();
        assert!(error.detail.unwrap().contains("mode"));
    }

    #[test]
    fn values_are_never_repeated() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "string", "maxLength": 2}, "b": {"const": 1}, "c": {"enum": [1]}, "d": {"not": {}},
                "e": {"anyOf": [{"type": "null"}]}, "f": {"oneOf": [{}, {}]}, "g": {"format": "email"},
                "h": {"pattern": "x"}, "i": {"minimum": 1e9}, "j": {"type": "integer"}, "k": false,
                "l": {"propertyNames": {"maxLength": 1}}, "m": {"contentEncoding": "base64"},
            },
        });
        for name in "abcdefghijklm".chars() {
            for value in [json!("hunter2"), json!({"hunter2": "hunter2"}), json!(["hunter2"])] {
                if let Err(error) = checked(&schema, &json!({name.to_string(): value})) {
                    assert!(!format!("{error:?}").contains("hunter2"), "{name}: {error:?}");
                }
            }
        }
    }

    #[test]
    fn arguments_that_are_no_object_and_invalid_schemas_are_refused() {
        for arguments in ["1", "[]", "null", "\"x\"", "{", "1e999"] {
            assert!(check("{}", arguments).is_err(), "{arguments}");
        }
        for schema in
            ["{\"type\": 5}", "3", "{\"$ref\": \"http://localhost/x\"}", "{\"pattern\": \"(\"}", "x"]
        {
            assert!(check(schema, "{}").is_err(), "{schema}");
        }
        assert_eq!(
            check("{}", "[]").unwrap_err().message,
            "Invalid arguments: expected a JSON object, found an array"
        );
        assert_eq!(check("true", "{}").unwrap(), "{}");
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(200), "]".repeat(200));
        assert!(check("{}", &deep).unwrap_err().hint.contains("nested"));
    }

    #[test]
    fn more_schemas_than_are_cached_work() {
        for number in (0..200).chain(0..200) {
            let schema = json!({"properties": {"n": {"const": number}}});
            checked(&schema, &json!({"n": number})).unwrap();
            checked(&schema, &json!({"n": -1})).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn any_text_is_judged_without_panic(schema in "[\\[\\]{}\":,a-z0-9$#/ ]{0,60}", arguments in ".{0,60}") {
            let _ = check(&schema, &arguments);
        }
    }
}
