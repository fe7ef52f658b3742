//! Reads the typed fields of a configuration entry. Every error names the server and the field.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde_json::{Map, Value};

/// The maximum of all timeouts.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads one server's entry and collects its errors.
pub(super) struct Reader<'a> {
    pub(super) server: &'a str,
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(super) errors: &'a mut Vec<String>,
    pub(super) warnings: &'a mut Vec<String>,
}

impl Reader<'_> {
    pub(super) fn error(&mut self, field: &str, what: impl fmt::Display) {
        self.errors.push(format!("mcpServers.{}.{field}: {what}", self.server));
    }

    pub(super) fn flag(&mut self, fields: &mut Map<String, Value>, field: &str) -> Option<bool> {
        match fields.shift_remove(field)? {
            Value::Bool(flag) => Some(flag),
            other => {
                self.error(field, format!("expected true or false, found {}", kind(&other)));
                None
            }
        }
    }

    pub(super) fn seconds(&mut self, fields: &mut Map<String, Value>, names: &[&str]) -> Option<Duration> {
        let field = *names.iter().find(|name| fields.contains_key(**name))?;
        let value = fields.shift_remove(field)?;
        let seconds = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        match seconds {
            Some(seconds) if !seconds.is_zero() && seconds <= LONGEST_TIMEOUT => Some(seconds),
            Some(_) => {
                self.error(
                    field,
                    format!("expected more than 0 and at most {} seconds", LONGEST_TIMEOUT.as_secs()),
                );
                None
            }
            None => {
                self.error(field, format!("expected a number of seconds, found {}", kind(&value)));
                None
            }
        }
    }

    pub(super) fn text(&mut self, fields: &mut Map<String, Value>, field: &str) -> Option<String> {
        match fields.shift_remove(field)? {
            Value::String(text) => Some(text),
            other => {
                self.error(field, format!("expected a string, found {}", kind(&other)));
                None
            }
        }
    }

    pub(super) fn list(&mut self, fields: &mut Map<String, Value>, field: &str) -> Vec<String> {
        let items = match fields.shift_remove(field) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.error(field, format!("expected a list of strings, found {}", kind(&other)));
                return Vec::new();
            }
        };
        let mut texts = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text),
                other => self.error(
                    &format!("{field}[{index}]"),
                    format!("expected a string, found {}", kind(&other)),
                ),
            }
        }
        texts
    }

    pub(super) fn texts(&mut self, fields: &mut Map<String, Value>, field: &str) -> BTreeMap<String, String> {
        let items = match fields.shift_remove(field) {
            None => return BTreeMap::new(),
            Some(Value::Object(items)) => items,
            Some(other) => {
                self.error(field, format!("expected an object of strings, found {}", kind(&other)));
                return BTreeMap::new();
            }
        };
        let mut texts = BTreeMap::new();
        for (key, item) in items {
            match item {
                Value::String(text) => {
                    texts.insert(key, text);
                }
                other => self
                    .error(&format!("{field}.{key}"), format!("expected a string, found {}", kind(&other))),
            }
        }
        texts
    }
}

/// The type of a value, in words.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
