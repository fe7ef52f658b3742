//! Names of MCP servers. Configurations call them anything (`brave search`, `12306-mcp`); code, wire names and FQDNs need an
//! identifier. Which one depends on the name alone, so that it stays the same whatever else is configured.

use std::borrow::Cow;

use crate::{hash::text_hash, name::check_part};

/// The name under which calls of capabilities are counted.
const CAPABILITIES: &str = "pml-capabilities";
/// Before the hash in a derived identifier.
const MARK: &str = "_x";
const HASH_DIGITS: usize = 8;
/// What a derived identifier keeps of the name; tools' wire names hold 50 characters in all.
const LONGEST_STEM: usize = 32;

/// The identifier of a server: its name, if that is one, else what is left of it and a hash. No name is equal to the
/// identifier that is derived from another.
pub fn server_identifier(name: &str) -> Cow<'_, str> {
    if check_part("server name", name).is_ok() && name != CAPABILITIES && !looks_derived(name) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("{}{MARK}{}", stem(name), &text_hash(name)[..HASH_DIGITS]))
}

/// Such names get a hash of their own, so that they can't be taken for another's identifier.
fn looks_derived(name: &str) -> bool {
    name.rsplit_once(MARK).is_some_and(|(_, hash)| {
        hash.len() == HASH_DIGITS && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// The letters and digits of a name, with one underscore for everything in between.
fn stem(name: &str) -> String {
    let mut stem = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            stem.push(c);
        } else if !stem.is_empty() && !stem.ends_with('_') {
            stem.push('_');
        }
        if stem.len() == LONGEST_STEM {
            break;
        }
    }
    let stem = stem.trim_end_matches('_');
    match stem.chars().next() {
        None => "server".to_owned(),
        Some(first) if first.is_ascii_alphabetic() => stem.to_owned(),
        Some(_) => format!("_{stem}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn identifiers_stay_and_others_are_derived() {
        for name in ["filesystem", "my-server", "_x", "a_b", "x_x1234567", "x_x1234567G", &"n".repeat(63)] {
            assert_eq!(server_identifier(name), name);
        }
        for (name, stem) in [
            ("12306-mcp", "_12306_mcp"),
            ("brave search", "brave_search"),
            ("  brave // search  ", "brave_search"),
            ("com.example.files", "com_example_files"),
            ("@scope/name", "scope_name"),
            ("mcp:files", "mcp_files"),
            ("-x", "x"),
            ("搜索", "server"),
            ("búsqueda", "b_squeda"),
            ("", "server"),
            ("pml-capabilities", "pml_capabilities"),
            ("a_x1234abcd", "a_x1234abcd"),
            (&"n".repeat(64), &"n".repeat(32)),
        ] {
            let identifier = server_identifier(name);
            let (kept, hash) = identifier.rsplit_once("_x").unwrap();
            assert_eq!((kept, hash.len()), (stem, 8), "{name}: {identifier}");
        }
    }

    #[test]
    fn identifiers_are_the_same_for_ever() {
        // They are in the names of tools that code calls.
        assert_eq!(server_identifier("brave search"), "brave_search_xe60d6e96");
        assert_eq!(server_identifier("12306-mcp"), "_12306_mcp_xa6d5ae79");
    }

    #[test]
    fn names_that_look_alike_differ() {
        let alike = [
            "brave search",
            "brave  search",
            "Brave Search",
            "brave.search",
            "brave/search",
            "brave search ",
        ];
        let mut identifiers: Vec<_> = alike.map(|name| server_identifier(name).into_owned()).into();
        identifiers.extend(["brave_search".to_owned(), "brave-search".to_owned()]);
        identifiers.sort();
        identifiers.dedup();
        assert_eq!(identifiers.len(), alike.len() + 2);
    }

    proptest! {
        #[test]
        fn every_name_has_an_identifier(name in "\\PC{0,100}") {
            let identifier = server_identifier(&name);
            prop_assert!(check_part("server name", &identifier).is_ok(), "{identifier}");
            prop_assert_eq!(&server_identifier(&name), &identifier);
        }

        #[test]
        fn two_names_never_share_one(one in "[a-b_ .x0-1-]{0,6}(_x[0-1]{8})?", other in "[a-b_ .x0-1-]{0,6}(_x[0-1]{8})?") {
            prop_assert_eq!(one == other, server_identifier(&one) == server_identifier(&other));
        }

        /// Also not with what was derived from it.
        #[test]
        fn a_derived_identifier_is_no_other_server(name in ".{0,80}") {
            let identifier = server_identifier(&name).into_owned();
            if identifier != name {
                prop_assert_ne!(server_identifier(&identifier).into_owned(), identifier);
            }
        }
    }
}
