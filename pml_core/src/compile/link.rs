//! Linking: names become FQDNs where the code is saved, and names again where people and agents read it.

use std::collections::HashMap;

use super::edits::{Edits, line_ends};
use super::names::is_identifier;
use super::references::{Reference, References, Written};

/// What the names in the code were found to be: name → FQDN.
pub type Lookup = HashMap<String, String>;

impl Reference {
    /// The FQDN that this reference means: its own, or that of the first name that is a capability.
    pub fn target<'a>(&'a self, lookup: &'a Lookup) -> Option<&'a str> {
        self.fqdn
            .as_deref()
            .or_else(|| self.candidates.iter().find_map(|name| lookup.get(name)).map(String::as_str))
    }
}

/// The edits that put FQDNs in the place of names.
pub(crate) fn link_edits(code: &str, references: &References, lookup: &Lookup) -> Edits {
    let mut edits = Edits::default();
    for reference in references.found.iter().filter(|reference| reference.fqdn.is_none()) {
        if let Some(fqdn) = reference.target(lookup) {
            replace(&mut edits, code, reference, &quoted(fqdn, reference.version.as_deref()));
        }
    }
    edits
}

/// The edits that put today's names in the place of FQDNs (`names`: FQDN → name).
pub(crate) fn display_edits(code: &str, references: &References, names: &HashMap<String, String>) -> Edits {
    let mut edits = Edits::default();
    for reference in &references.found {
        let Some(name) = reference.fqdn.as_ref().and_then(|fqdn| names.get(fqdn)) else { continue };
        let dotted = reference.version.is_none() && reference.written != Written::ThroughCapabilities;
        let member = match (name.split_once(':'), &reference.version) {
            (Some((namespace, action)), _) if dotted && is_identifier(namespace) && is_identifier(action) => {
                format!(".{namespace}.{action}")
            }
            (_, version) => quoted(name, version.as_deref()),
        };
        replace(&mut edits, code, reference, &member);
    }
    edits
}

fn quoted(name: &str, version: Option<&str>) -> String {
    let full = version.map_or_else(|| name.to_owned(), |version| format!("{name}@{version}"));
    format!("[{}]", serde_json::Value::String(full))
}

fn replace(edits: &mut Edits, code: &str, reference: &Reference, member: &str) {
    let range = reference.start..reference.end;
    let old = code.get(range.clone()).unwrap_or_default();
    let root = match reference.written {
        Written::Unreachable => return,
        Written::ThroughCapabilities => "capabilities",
        Written::Expression => "mcp",
        Written::Shorthand => {
            edits.replace(range, format!("{old}: mcp{member}"));
            return;
        }
    };
    edits.replace(range, format!("{root}{member}{}", line_ends(old)));
}
