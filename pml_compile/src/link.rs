//! Linking: names are replaced by FQDNs when code is saved, and FQDNs by current names when it is displayed.

use std::collections::HashMap;

use super::edits::{Edits, line_ends};
use super::names::is_identifier;
use super::references::{Reference, References, Written};

/// The capabilities that names in the code refer to: name → FQDN.
pub type Lookup = HashMap<String, String>;

impl Reference {
    /// The FQDN of this reference: its own, or that of the first candidate that is a capability.
    pub fn target<'a>(&'a self, lookup: &'a Lookup) -> Option<&'a str> {
        self.fqdn
            .as_deref()
            .or_else(|| self.candidates.iter().find_map(|name| lookup.get(name)).map(String::as_str))
    }
}

/// A range of the code and the reference that replaces it.
pub(crate) struct Link<'a> {
    reference: &'a Reference,
    /// The replaced text.
    old: &'a str,
    /// The object that has the name: `mcp` or `capabilities`.
    root: &'static str,
    /// `["name"]` or `.namespace.action`
    member: String,
}

/// All replacements, in source order.
#[derive(Default)]
pub(crate) struct Links<'a> {
    list: Vec<Link<'a>>,
}

impl<'a> Links<'a> {
    /// Replaces names by FQDNs.
    pub(crate) fn to_fqdns(code: &'a str, references: &'a References, lookup: &Lookup) -> Self {
        Self::of(code, references, |reference| match &reference.fqdn {
            Some(_) => None,
            None => reference.target(lookup).map(|fqdn| quoted(fqdn, reference.version.as_deref())),
        })
    }

    /// Replaces FQDNs by current names (`names`: FQDN → name).
    pub(crate) fn to_names(
        code: &'a str,
        references: &'a References,
        names: &HashMap<String, String>,
    ) -> Self {
        Self::of(code, references, |reference| {
            let name = names.get(reference.fqdn.as_ref()?)?;
            let dotted = reference.version.is_none() && reference.written != Written::ThroughCapabilities;
            Some(match name.split_once(':') {
                Some((namespace, action)) if dotted && is_identifier(namespace) && is_identifier(action) => {
                    format!(".{namespace}.{action}")
                }
                _ => quoted(name, reference.version.as_deref()),
            })
        })
    }

    fn of(code: &'a str, references: &'a References, member: impl Fn(&Reference) -> Option<String>) -> Self {
        let mut list: Vec<Link<'a>> = Vec::new();
        for reference in &references.found {
            let root = match reference.written {
                Written::Unreachable => continue,
                Written::ThroughCapabilities => "capabilities",
                Written::Expression | Written::Shorthand => "mcp",
            };
            if let Some(member) = member(reference) {
                let old = code.get(reference.start..reference.end).unwrap_or_default();
                list.push(Link { reference, old, root, member });
            }
        }
        list.sort_by_key(|link| link.reference.start);
        Self { list }
    }

    pub(crate) fn edits(&self) -> Edits {
        let mut edits = Edits::default();
        for Link { reference, old, root, member } in &self.list {
            let text = match reference.written {
                Written::Shorthand => format!("{old}: {root}{member}"),
                // A line end before the member can't end a statement.
                _ => format!("{root}{}{member}", line_ends(old)),
            };
            edits.replace(reference.start..reference.end, text);
        }
        edits
    }

    pub(crate) fn list(&self) -> &[Link<'a>] {
        &self.list
    }
}

impl Link<'_> {
    pub(crate) fn start(&self) -> usize {
        self.reference.start
    }

    pub(crate) fn end(&self) -> usize {
        self.reference.end
    }

    /// The tokens of a link to an FQDN; some are empty.
    pub(crate) fn tokens(&self) -> [&str; 6] {
        let quoted = self.member.strip_prefix('[').and_then(|member| member.strip_suffix(']'));
        let [name, colon] =
            if self.reference.written == Written::Shorthand { [self.old, ":"] } else { ["", ""] };
        [name, colon, self.root, "[", quoted.unwrap_or(&self.member), "]"]
    }
}

fn quoted(name: &str, version: Option<&str>) -> String {
    let full = version.map_or_else(|| name.to_owned(), |version| format!("{name}@{version}"));
    format!("[{}]", serde_json::Value::String(full))
}
