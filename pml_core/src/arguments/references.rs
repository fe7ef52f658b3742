//! Resolves the references of a schema: JSON pointers and anchors.

use std::collections::HashMap;

use serde_json::{Map, Value};

const KEYWORDS: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords that have no subschemas.
const DATA: &[&str] = &["default", "const", "enum", "examples"];

pub(super) struct References<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
}

impl<'a> References<'a> {
    /// `None` if the schema has an `$id` below its top: references inside would not be what they look like.
    pub(super) fn of(root: &'a Value) -> Option<References<'a>> {
        let mut references = References { root, anchors: HashMap::new() };
        references.collect(root).then_some(references)
    }

    fn collect(&mut self, part: &'a Value) -> bool {
        let Value::Object(keywords) = part else {
            return part.as_array().into_iter().flatten().all(|part| self.collect(part));
        };
        for name in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(anchor)) = keywords.get(name) {
                self.anchors.insert(anchor, part);
            }
        }
        let is_top = std::ptr::eq(part, self.root);
        (is_top || !keywords.get("$id").is_some_and(Value::is_string))
            && subschemas(keywords).all(|(_, part)| self.collect(part))
    }

    /// The subschemas that this one refers to; those that are not part of the schema are left out.
    pub(super) fn targets(&self, keywords: &Map<String, Value>) -> Vec<&'a Value> {
        KEYWORDS.iter().filter_map(|name| self.target(keywords.get(*name)?)).collect()
    }

    pub(super) fn target(&self, reference: &Value) -> Option<&'a Value> {
        let local = reference.as_str()?.strip_prefix('#')?;
        self.anchors.get(local).copied().or_else(|| self.root.pointer(local))
    }
}

pub(super) fn is_reference(keyword: &str) -> bool {
    KEYWORDS.contains(&keyword)
}

/// Everything in which subschemas may be.
pub(super) fn subschemas(keywords: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    keywords
        .iter()
        .map(|(keyword, part)| (keyword.as_str(), part))
        .filter(|(keyword, _)| !DATA.contains(keyword))
}
