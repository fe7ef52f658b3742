//! Names of servers' prompts on the wire: `mcp__<server>__<prompt>`, as tools have them, but without a register of names
//! that are taken: each name follows from server and prompt alone.

use crate::hash::text_hash;

/// Clients add prefixes of their own and allow 64 in all.
const LONGEST: usize = 50;
const HASH_DIGITS: usize = 12;
const PREFIX: &str = "mcp__";

/// The prompt's name on the wire. One that would be too long or could be another prompt's ends in a hash.
pub fn prompt_name(server: &str, prompt: &str) -> String {
    let plain = format!("{PREFIX}{server}__{prompt}");
    if parse_prompt_name(&plain) == Some((server, prompt)) {
        return plain;
    }
    let allowed = |c: char| if is_allowed(c) { c } else { '_' };
    let start: String = plain.chars().map(allowed).take(LONGEST - HASH_DIGITS - 1).collect();
    // A NUL is in no name, so that the parts can't run into each other.
    format!("{start}_{}", &text_hash(&format!("{server}\0{prompt}"))[..HASH_DIGITS])
}

/// Server and prompt of a name that doesn't end in a hash.
pub fn parse_prompt_name(name: &str) -> Option<(&str, &str)> {
    let (server, prompt) = name.strip_prefix(PREFIX)?.split_once("__")?;
    let is_plain = name.len() <= LONGEST && name.chars().all(is_allowed) && !has_hash(name);
    (is_plain && !server.is_empty() && !prompt.is_empty()).then_some((server, prompt))
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn has_hash(name: &str) -> bool {
    name.rsplit_once('_').is_some_and(|(_, end)| {
        end.len() == HASH_DIGITS && end.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_usual_name_is_plain_and_reversible() {
        for (server, prompt) in [("everything", "simple-prompt"), ("a", "_b"), ("a_b", "c__d"), ("_a", "x")] {
            let name = prompt_name(server, prompt);
            assert_eq!(name, format!("mcp__{server}__{prompt}"));
            assert_eq!(parse_prompt_name(&name), Some((server, prompt)));
        }
    }

    #[test]
    fn names_that_could_be_another_prompts_end_in_a_hash() {
        let hashed = prompt_name("a", &"x".repeat(60));
        for (server, prompt) in [
            ("a__b", "c"),
            ("a_", "b"),
            ("_", "x"),
            ("a", "do it"),
            ("a", "do_it\u{e9}"),
            ("a", ""),
            ("", "a"),
            ("a", "word_0123456789ab"),
            ("a", &hashed["mcp__a__".len()..]),
        ] {
            let name = prompt_name(server, prompt);
            assert!(has_hash(&name) && parse_prompt_name(&name).is_none(), "{name}");
        }
        assert_ne!(prompt_name("a__b", "c"), prompt_name("a", "b__c"));
        assert_ne!(prompt_name("a", "do it"), prompt_name("a", "do_it"));
    }

    proptest! {
        #[test]
        fn clients_accept_every_name_and_none_is_given_twice(
            (one, other) in ("[a_]{0,5}", "[a_ ]{0,5}").prop_flat_map(|one| (Just(one), ("[a_]{0,5}", "[a_ ]{0,5}"))),
            any in (".{0,80}", ".{0,80}"),
        ) {
            let [first, second, third] = [&one, &other, &any].map(|(server, prompt)| prompt_name(server, prompt));
            prop_assert_eq!(first == second, one == other, "{} {}", first, second);
            for name in [first, third] {
                prop_assert!(name.len() <= LONGEST && name.chars().all(is_allowed), "{}", name);
            }
        }
    }
}
