//! Names: the parts of an FQDN, display names, and conversion between them.

use crate::error::{Error, Result};

pub const MAX_NAME: usize = 128;
const MAX_PART: usize = 63;
/// The placeholder names of unnamed capabilities; users can't give names of this form.
const UNNAMED_PREFIX: &str = "unnamed_";
/// Names of MCP servers are `mcp:<server>`, so capabilities can't have this namespace.
pub const SERVER_NAMESPACE: &str = "mcp";

/// One of the first four parts of an FQDN: `[A-Za-z_][A-Za-z0-9_-]{0,62}`.
pub fn check_part(what: &'static str, value: &str) -> Result<()> {
    let problem = |detail: String| Err(Error::InvalidPart { what, value: value.to_owned(), detail });
    let Some(first) = value.chars().next() else { return problem("It is empty.".into()) };
    if !(first.is_ascii_alphabetic() || first == '_') {
        return problem(format!("It starts with {first:?}."));
    }
    if let Some(bad) = value.chars().find(|c| !is_part_char(*c)) {
        return problem(format!("It contains {bad:?}."));
    }
    if value.len() > MAX_PART {
        return problem(format!("It has {} characters; at most {MAX_PART} are allowed.", value.len()));
    }
    Ok(())
}

fn is_part_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// A display name: `[A-Za-z0-9_:-]{1,128}`.
pub fn check_name(name: &str) -> Result<()> {
    let problem = |detail: String| Err(Error::InvalidName { name: name.to_owned(), detail });
    if name.is_empty() {
        return problem("It is empty.".into());
    }
    if let Some(bad) = name.chars().find(|c| !(is_part_char(*c) || *c == ':')) {
        return problem(match bad {
            '.' => "It contains \".\", which separates the parts of an FQDN.".into(),
            '@' => "It contains \"@\", which starts a version specifier.".into(),
            bad => format!("It contains {bad:?}."),
        });
    }
    if name.len() > MAX_NAME {
        return problem(format!("It has {} characters; at most {MAX_NAME} are allowed.", name.len()));
    }
    Ok(())
}

/// A name that a user or agent may give to a capability: a display name that isn't reserved.
pub fn check_given_name(name: &str) -> Result<()> {
    check_name(name)?;
    let reserved =
        |detail: &str| Err(Error::InvalidName { name: name.to_owned(), detail: detail.to_owned() });
    if is_unnamed(name) {
        return reserved("Names of the form unnamed_<hash> are reserved for capabilities without a name.");
    }
    if name.split_once(':').is_some_and(|(namespace, _)| namespace == SERVER_NAMESPACE) {
        return reserved("The namespace \"mcp\" is reserved for servers (pml_register_server).");
    }
    Ok(())
}

/// Whether this is the placeholder name of an unnamed capability.
pub fn is_unnamed(name: &str) -> bool {
    name.strip_prefix(UNNAMED_PREFIX).is_some_and(|rest| {
        rest.len() >= 8 && rest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// The action part of an unnamed capability's FQDN.
pub fn unnamed_action(code_hash: &str) -> String {
    format!("exec_{}", code_hash.get(..8).unwrap_or(code_hash))
}

/// Splits a display name into namespace and action; a name without a colon has no namespace.
pub fn split_name(name: &str) -> (Option<String>, String) {
    match name.split_once(':') {
        Some((namespace, action)) if !namespace.is_empty() => (Some(slug(namespace)), slug(action)),
        Some((_, action)) => (None, slug(action)),
        None => (None, slug(name)),
    }
}

/// The nearest valid FQDN part to a piece of a display name.
fn slug(text: &str) -> String {
    let mut slug: String = text.chars().map(|c| if is_part_char(c) { c } else { '_' }).collect();
    if !slug.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        slug.insert(0, '_');
    }
    slug.truncate(MAX_PART);
    slug
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_the_documented_form_are_accepted() {
        let longest = "x".repeat(MAX_NAME);
        for name in ["read_config", "myapp:fetch", "my-tool-v2", "a:b:c", ":", "9", "-x", "A", &longest] {
            check_name(name).unwrap();
        }
    }

    #[test]
    fn other_names_are_refused_with_the_reason() {
        for (name, reason) in [
            ("", "empty"),
            ("a b", "' '"),
            ("a.b", "separates"),
            ("a@v1", "version"),
            ("naïve", "'ï'"),
            ("a\0b", "'\\0'"),
            (&"x".repeat(129), "129 characters"),
        ] {
            let error = check_name(name).unwrap_err();
            assert!(error.detail().unwrap().contains(reason), "{name:?}: {error:?}");
        }
    }

    #[test]
    fn reserved_names_cant_be_given() {
        for name in ["unnamed_0123abcd", "mcp:filesystem", "mcp:"] {
            assert!(check_given_name(name).is_err(), "{name}");
        }
        for name in ["unnamed_", "unnamed_thing", "unnamed_0123ABCD", "mcp", "mcpx:y"] {
            check_given_name(name).unwrap();
        }
    }

    #[test]
    fn namespace_and_action_follow_the_name() {
        for (name, namespace, action) in [
            ("fs:read_json", Some("fs"), "read_json"),
            ("my-reader", None, "my-reader"),
            ("a:b:c", Some("a"), "b_c"),
            ("9lives:1st", Some("_9lives"), "_1st"),
            (":x", None, "x"),
            ("x:", Some("x"), "_"),
        ] {
            assert_eq!(split_name(name), (namespace.map(str::to_owned), action.to_owned()), "{name}");
        }
    }

    proptest! {
        #[test]
        fn every_valid_name_gives_valid_parts(name in "[A-Za-z0-9_:-]{1,128}") {
            let (namespace, action) = split_name(&name);
            check_part("action", &action).unwrap();
            if let Some(namespace) = namespace {
                check_part("namespace", &namespace).unwrap();
            }
        }

        #[test]
        fn any_text_is_judged_without_panic(text in ".{0,200}") {
            let _ = check_given_name(&text);
            let _ = check_part("org", &text);
        }
    }
}
