//! Reads the typed fields of a configuration entry. Every error names the server and the field.

use std::{collections::BTreeMap, fmt, time::Duration};

use pml_core::server_name::server_identifier;
use serde_json::{Map, Value};

/// The maximum of all timeouts.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// A multiple of 1,000 from here on is taken for milliseconds, in which several clients give timeouts.
const FEWEST_MILLISECONDS: f64 = 10_000.0;

/// Reads one server's entry and collects its errors.
pub(super) struct Reader<'a> {
    pub(super) server: &'a str,
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(super) errors: &'a mut Vec<String>,
    pub(super) warnings: &'a mut Vec<String>,
}

impl Reader<'_> {
    /// Where the entry is. A name that isn't an identifier is quoted.
    pub(super) fn path(&self) -> String {
        if server_identifier(self.server) == self.server {
            format!("mcpServers.{}", self.server)
        } else {
            format!("mcpServers.{:?}", self.server)
        }
    }

    pub(super) fn error(&mut self, field: &str, what: impl fmt::Display) {
        self.errors.push(format!("{}.{field}: {what}", self.path()));
    }

    pub(super) fn warn(&mut self, field: &str, what: impl fmt::Display) {
        self.warnings.push(format!("{}.{field}: {what}", self.path()));
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
        let mut seconds = value.as_f64();
        if let Some(number) =
            seconds.filter(|number| *number >= FEWEST_MILLISECONDS && number % 1_000.0 == 0.0)
        {
            let meant = number / 1_000.0;
            self.warn(field, format!("{number} is read as milliseconds, {meant} s; write {meant}"));
            seconds = Some(meant);
        }
        let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
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

    /// The first of these fields that is there, with its name. The others mean the same and are dropped.
    pub(super) fn first_text<'n>(
        &mut self,
        fields: &mut Map<String, Value>,
        names: &[&'n str],
    ) -> Option<(&'n str, String)> {
        let present: Vec<&str> = names.iter().copied().filter(|name| fields.contains_key(*name)).collect();
        let (first, others) = present.split_first()?;
        let text = self.text(fields, first);
        for other in others {
            fields.shift_remove(*other);
            self.warn(other, format!("ignored: {first:?} is given too"));
        }
        text.map(|text| (*first, text))
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
                value @ (Value::Number(_) | Value::Bool(_)) => {
                    texts.insert(key, value.to_string());
                }
                // VS Code's way to unset a variable, of which servers get few anyway.
                Value::Null => {}
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
