//! What is known about a parameter, and its JSON Schema.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value as Json;

/// What the code expects in `args`; serialized it is a JSON Schema (2020-12).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parameters {
    pub(super) root: Parameter,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Parameter {
    /// From TypeScript types; from the schemas of tools that it is passed to; from its uses. The first that isn't empty counts.
    declared: Types,
    of_tools: Types,
    used: Types,
    /// The code tests its type, so its uses say nothing about it.
    is_asked: bool,
    fallback: Fallback,
    /// The code checks for it and throws, so it is required even if it is also optional elsewhere.
    pub(super) insisted: bool,
    /// The code can't work without it, unless it is also optional.
    pub(super) needed: bool,
    pub(super) optional: bool,
    /// Its type is `undefined`, which isn't the same as a type that isn't known.
    pub(super) is_undefined: bool,
    /// The code replaces it when it is missing, so a check of the replacement doesn't make it required.
    pub(super) replaced: bool,
    /// Unknown fields are allowed: the value is passed on as a whole, or read by keys known only at run time.
    pub(super) is_open: bool,
    // Boxed: a map of these is large, and slow to allocate.
    fields: BTreeMap<String, Box<Parameter>>,
    items: Option<Box<Parameter>>,
    /// The index that the code reads, and whether it reads others too, which may have other types.
    element: Option<usize>,
    has_elements: bool,
    /// In the order of declaration.
    choices: Vec<String>,
    is_choice: FxHashSet<String>,
    takes_any_string: bool,
}

/// What code reads of a field before it assigns to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// Nothing, or nothing that says what it is.
    None,
    Some,
    /// It can't work without it.
    Needed,
}

/// The value that reads of a parameter fall back to.
#[derive(Debug, Clone, PartialEq, Default)]
enum Fallback {
    #[default]
    None,
    Value(Json),
    /// Different values, or one that only the run knows.
    Unclear,
}

/// The names of types, in the order in which a schema lists them.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// A set of [`TYPES`], one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Types(u8);

impl Types {
    fn insert(&mut self, name: &str) {
        if let Some(index) = TYPES.iter().position(|known| *known == name) {
            self.0 |= 1 << index;
        }
    }

    fn contains(self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Removes "null"; true if it was there.
    fn take_null(&mut self) -> bool {
        let had = self.contains("null");
        *self = Self(self.0 & !Self::of("null").0);
        had
    }

    fn of(name: &str) -> Self {
        let mut types = Self::default();
        types.insert(name);
        types
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        (0..TYPES.len()).filter(move |index| self.0 & (1 << index) != 0).map(|index| TYPES[index])
    }
}

impl Serialize for Types {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut names = self.names();
        match (names.next(), names.next()) {
            (Some(only), None) => serializer.serialize_str(only),
            _ => serializer.collect_seq(self.names()),
        }
    }
}

impl Parameter {
    pub(super) fn field(&mut self, name: &str) -> &mut Parameter {
        self.fields.entry(name.to_owned()).or_default()
    }

    pub(super) fn item(&mut self) -> &mut Parameter {
        self.items.get_or_insert_default()
    }

    /// An element by its number.
    pub(super) fn element(&mut self, index: usize) -> &mut Parameter {
        self.has_elements |= *self.element.get_or_insert(index) != index;
        self.item()
    }

    /// A type that follows from a use.
    pub(super) fn add_type(&mut self, name: &str) {
        self.optional |= name == "null";
        self.used.insert(name);
    }

    pub(super) fn declare(&mut self, name: &str) {
        self.declared.insert(name);
    }

    pub(super) fn ask_type(&mut self) {
        self.is_asked = true;
    }

    /// What a tool's schema says about a value that is passed to it.
    pub(super) fn given_to_tool(&mut self, schema: &Json) {
        let types = match &schema["type"] {
            Json::Array(types) => types.iter().filter_map(Json::as_str).collect(),
            other => other.as_str().into_iter().collect::<Vec<_>>(),
        };
        for name in types {
            self.optional |= name == "null";
            self.of_tools.insert(name);
        }
    }

    /// Makes all known fields optional.
    pub(super) fn make_fields_optional(&mut self) {
        self.fields.values_mut().for_each(|field| field.optional = true);
    }

    /// What the code has read of a field so far.
    pub(super) fn reads_of(&self, name: &str) -> Reads {
        match self.fields.get(name) {
            None => Reads::None,
            Some(field) if field.needed && !field.optional => Reads::Needed,
            Some(field) if field.known_types().is_empty() => Reads::None,
            Some(_) => Reads::Some,
        }
    }

    /// The code assigns to this field, if it is one, after these reads of it.
    pub(super) fn replace_field(&mut self, name: &str, before: Reads) {
        if let Some(field) = self.fields.get_mut(name) {
            field.replaced = true;
            // Later reads are of what the code has assigned.
            field.optional |= before != Reads::Needed;
            field.is_asked |= before == Reads::None;
        }
    }

    fn is_required(&self) -> bool {
        (self.insisted && !self.replaced) || (self.needed && !self.optional)
    }

    pub(super) fn add_choice(&mut self, text: &str) {
        self.declare("string");
        if self.is_choice.insert(text.to_owned()) {
            self.choices.push(text.to_owned());
        }
    }

    pub(super) fn declare_any_string(&mut self) {
        self.declare("string");
        self.takes_any_string = true;
    }

    pub(super) fn set_default(&mut self, default: Option<Json>) {
        self.optional = true;
        if let Some(default) = default.as_ref().filter(|value| !value.is_null()) {
            self.add_type(json_type(default));
        }
        self.fallback = match (std::mem::take(&mut self.fallback), default) {
            (Fallback::None, Some(default)) => Fallback::Value(default),
            (Fallback::Value(before), Some(default)) if before == default => Fallback::Value(before),
            _ => Fallback::Unclear,
        };
    }

    /// The default to show: a value that every read falls back to and that the schema accepts.
    fn shown_default(&self, types: Types) -> Option<&Json> {
        match &self.fallback {
            Fallback::Value(default) if !default.is_null() => self.accepts(types, default).then_some(default),
            _ => None,
        }
    }

    /// Whether a literal, which has no parts, fits the schema.
    fn accepts(&self, types: Types, value: &Json) -> bool {
        let is_integer = value.as_f64().is_some_and(|number| number.fract() == 0.0);
        let has_type =
            types.is_empty() || types.contains(json_type(value)) || (is_integer && types.contains("integer"));
        let is_choice = !self.is_choices(types)
            || value.is_null()
            || value.as_str().is_some_and(|text| self.is_choice.contains(text));
        has_type && is_choice
    }

    /// Whether no type says anything about it.
    fn is_undeclared(&self) -> bool {
        self.declared.is_empty() && !self.is_undefined
    }

    /// The union of two types: fields that only one of them has are optional.
    pub(super) fn or(mut self, other: Self) -> Self {
        if self.is_undeclared() || other.is_undeclared() {
            return Self {
                needed: self.needed && other.needed,
                optional: self.optional || other.optional,
                is_open: self.is_open || other.is_open,
                ..Self::default()
            };
        }
        let are_objects = self.declared.contains("object") && other.declared.contains("object");
        // A field that the other type doesn't name; an open one allows anything there.
        let unnamed = |field: &mut Parameter, is_open: bool| {
            if are_objects && is_open {
                *field = Self::default();
            }
            field.optional |= are_objects;
        };
        for (name, field) in &mut self.fields {
            if !other.fields.contains_key(name) {
                unnamed(field, other.is_open);
            }
        }
        for (name, mut field) in other.fields {
            match self.fields.remove(&name) {
                Some(before) => *field = before.or(*field),
                None => unnamed(&mut field, self.is_open),
            }
            self.fields.insert(name, field);
        }
        self.items = match (self.items, other.items) {
            (Some(one), Some(two)) => Some(Box::new(one.or(*two))),
            (one, two) => one.or(two),
        };
        self.declared.0 |= other.declared.0;
        self.needed |= other.needed;
        self.optional |= other.optional;
        self.is_undefined &= other.is_undefined;
        self.is_open |= other.is_open;
        self.takes_any_string |= other.takes_any_string;
        for text in &other.choices {
            self.add_choice(text);
        }
        self
    }

    /// Adds what a type says.
    pub(super) fn take_over(&mut self, declared: Self) {
        for (name, field) in declared.fields {
            self.field(&name).take_over(*field);
        }
        if let Some(items) = declared.items {
            self.item().take_over(*items);
        }
        self.declared.0 |= declared.declared.0;
        self.needed |= declared.needed;
        self.optional |= declared.optional;
        self.is_open |= declared.is_open;
        self.takes_any_string |= declared.takes_any_string;
        for text in &declared.choices {
            self.add_choice(text);
        }
    }

    /// Its types; without any, fields make it an object and items an array.
    fn known_types(&self) -> Types {
        let sources =
            [self.declared, self.of_tools, if self.is_asked { Types::default() } else { self.used }];
        let mut types = sources.into_iter().find(|types| !types.is_empty()).unwrap_or_default();
        let null = types.take_null();
        if types.is_empty() && !self.is_asked {
            match (self.fields.is_empty(), self.items.is_some()) {
                (false, false) => types.insert("object"),
                (true, true) if !self.may_be_text() => types.insert("array"),
                _ => {}
            }
        }
        // That it may be null says nothing about what else it can be.
        if null && !types.is_empty() {
            types.insert("null");
        }
        types
    }

    /// Whether the elements that the code takes could be the characters of a string.
    fn may_be_text(&self) -> bool {
        self.items.as_ref().is_none_or(|item| {
            item.fields.is_empty()
                && item.items.is_none()
                && item.known_types().names().all(|name| name == "string")
        })
    }

    /// Whether only its choices are allowed.
    fn is_choices(&self, types: Types) -> bool {
        let only_texts = types.names().all(|name| matches!(name, "string" | "null"));
        !self.choices.is_empty() && !self.takes_any_string && only_texts
    }

    /// The `enum` of allowed strings, unless other values are allowed too.
    fn write_choices<S: SerializeMap>(&self, types: Types, schema: &mut S) -> Result<(), S::Error> {
        if !self.is_choices(types) {
            return Ok(());
        }
        let null = types.contains("null").then_some(Json::Null);
        let choices = self.choices.iter().map(|text| Json::from(text.as_str())).chain(null);
        schema.serialize_entry("enum", &choices.collect::<Vec<_>>())
    }

    fn write<S: SerializeMap>(&self, types: Types, schema: &mut S) -> Result<(), S::Error> {
        if !types.is_empty() {
            schema.serialize_entry("type", &types)?;
        }
        self.write_choices(types, schema)?;
        if types.contains("object") && !self.fields.is_empty() {
            let required: Vec<&String> =
                self.fields.iter().filter(|(_, field)| field.is_required()).map(|(name, _)| name).collect();
            if !required.is_empty() {
                schema.serialize_entry("required", &required)?;
            }
            schema.serialize_entry("properties", &self.fields)?;
        }
        let are_alike = |items: &&Parameter| !self.has_elements || !items.declared.is_empty();
        if let Some(items) = self.items.as_deref().filter(|_| types.contains("array")).filter(are_alike) {
            schema.serialize_entry("items", items)?;
        }
        if let Some(default) = self.shown_default(types) {
            schema.serialize_entry("default", default)?;
        }
        Ok(())
    }
}

impl Serialize for Parameter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut schema = serializer.serialize_map(None)?;
        self.write(self.known_types(), &mut schema)?;
        schema.end()
    }
}

impl Serialize for Parameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut schema = serializer.serialize_map(None)?;
        schema.serialize_entry("$schema", "https://json-schema.org/draft/2020-12/schema")?;
        let mut types = Types::default();
        types.insert("object");
        self.root.write(types, &mut schema)?;
        if self.root.fields.is_empty() {
            schema.serialize_entry("properties", &self.root.fields)?;
        }
        if !self.root.is_open {
            schema.serialize_entry("additionalProperties", &false)?;
        }
        schema.end()
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
