//! What is known of a parameter, and how a JSON Schema says it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value as Json, json};

#[derive(Debug, Default)]
pub(super) struct Parameter {
    types: BTreeSet<&'static str>,
    default: Option<Json>,
    pub(super) optional: bool,
    // In a box: a table of these is large, and large tables are slow to make.
    fields: BTreeMap<String, Box<Parameter>>,
    items: Option<Box<Parameter>>,
    /// In the order they are declared.
    choices: Vec<Json>,
    is_choice: HashSet<String>,
}

impl Parameter {
    pub(super) fn field(&mut self, name: &str) -> &mut Parameter {
        self.fields.entry(name.to_owned()).or_default()
    }

    pub(super) fn item(&mut self) -> &mut Parameter {
        self.items.get_or_insert_default()
    }

    pub(super) fn add_type(&mut self, name: &'static str) {
        match name {
            "null" => self.optional = true,
            _ => {
                self.types.insert(name);
            }
        }
    }

    pub(super) fn add_choice(&mut self, text: &str) {
        self.add_type("string");
        if self.is_choice.insert(text.to_owned()) {
            self.choices.push(Json::from(text));
        }
    }

    pub(super) fn set_default(&mut self, default: Option<Json>) {
        self.optional = true;
        if let Some(default) = default.filter(|value| !value.is_null()) {
            self.add_type(json_type(&default));
            self.default.get_or_insert(default);
        }
    }

    pub(super) fn into_root_schema(mut self) -> Json {
        self.types = BTreeSet::from(["object"]);
        let mut schema = self.into_schema();
        if let Some(fields) = schema.as_object_mut() {
            fields.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
            fields.entry("properties").or_insert_with(|| json!({}));
        }
        schema
    }

    fn into_schema(mut self) -> Json {
        if !self.fields.is_empty() && self.types.is_empty() && self.items.is_none() {
            self.types.insert("object");
        }
        if self.items.is_some() && self.fields.is_empty() {
            // A string can be indexed too, but then something else says that it is one.
            if self.types.is_empty() {
                self.types.insert("array");
            }
        }
        let mut schema = Map::new();
        match self.types.iter().copied().collect::<Vec<_>>()[..] {
            [] => {}
            [only] => {
                schema.insert("type".to_owned(), json!(only));
            }
            ref several => {
                schema.insert("type".to_owned(), json!(several));
            }
        }
        if !self.choices.is_empty() {
            schema.insert("enum".to_owned(), Json::Array(self.choices));
        }
        if self.types.contains("object") && !self.fields.is_empty() {
            let required: Vec<&String> =
                self.fields.iter().filter(|(_, field)| !field.optional).map(|(name, _)| name).collect();
            if !required.is_empty() {
                schema.insert("required".to_owned(), json!(required));
            }
            let properties = self.fields.into_iter().map(|(name, field)| (name, field.into_schema()));
            schema.insert("properties".to_owned(), Json::Object(properties.collect()));
        }
        if let Some(items) = self.items.filter(|_| self.types.contains("array")) {
            schema.insert("items".to_owned(), items.into_schema());
        }
        if let Some(default) = self.default {
            schema.insert("default".to_owned(), default);
        }
        Json::Object(schema)
    }
}

/// The JSON Schema type of a value.
pub(crate) fn json_type(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}
