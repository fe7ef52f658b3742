//! Names of tools on the wire: `mcp__<namespace>__<action>`, with the characters and length that every client accepts.

use crate::hash::text_hash;

/// Clients add prefixes of their own and allow 64 in all.
const LONGEST: usize = 50;
const FEWEST_HASH_DIGITS: usize = 8;
const MORE_HASH_DIGITS: usize = 4;
/// How many different names `tool_name` can give one identity.
pub const ATTEMPTS: usize = 8;

/// The tool's name for a capability's display name or for `server:tool`. Attempt 0 is the plain form, shortened with a hash
/// of the name if it is too long; later ones, for when that is taken, end in more and more digits of the identity's hash.
pub fn tool_name(name: &str, birth_namespace: &str, identity: &str, attempt: usize) -> String {
    let (namespace, action) = match name.split_once(':') {
        Some((namespace, action)) if !namespace.is_empty() => (namespace, action),
        Some((_, action)) => (birth_namespace, action),
        None => (birth_namespace, name),
    };
    let plain = format!("mcp__{}__{}", allowed(namespace), allowed(action));
    let hashed = |what: &str, digits: usize| {
        let kept = plain.len().min(LONGEST - digits - 1);
        format!("{}_{}", &plain[..kept], &text_hash(what)[..digits])
    };
    match attempt.checked_sub(1) {
        None if plain.len() <= LONGEST => plain,
        None => hashed(name, FEWEST_HASH_DIGITS),
        Some(before) => hashed(identity, FEWEST_HASH_DIGITS + before.min(ATTEMPTS) * MORE_HASH_DIGITS),
    }
}

fn allowed(text: &str) -> String {
    if text.is_empty() {
        return "_".to_owned();
    }
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_plain_form_follows_the_name() {
        for (name, expected) in [
            ("fs:read_json", "mcp__fs__read_json"),
            ("Fs:Read-Json", "mcp__Fs__Read-Json"),
            ("my-reader", "mcp__util__my-reader"),
            ("a:b:c", "mcp__a__b_c"),
            (":x", "mcp__util__x"),
            ("x:", "mcp__x___"),
            ("server:do it/now é", "mcp__server__do_it_now__"),
        ] {
            assert_eq!(tool_name(name, "util", "id", 0), expected, "{name}");
        }
    }

    #[test]
    fn long_names_that_begin_alike_differ() {
        let (one, other) = (format!("ns:{}a", "x".repeat(120)), format!("ns:{}b", "x".repeat(120)));
        let (one, other) = (tool_name(&one, "", "", 0), tool_name(&other, "", "", 0));
        assert_eq!((one.len(), other.len()), (LONGEST, LONGEST));
        assert_ne!(one, other);
    }

    proptest! {
        #[test]
        fn clients_accept_every_name(name in ".{0,200}", namespace in "[a-z]{1,63}", attempt in 0usize..ATTEMPTS) {
            let wire = tool_name(&name, &namespace, &name, attempt);
            prop_assert!(wire.len() <= LONGEST && wire.starts_with("mcp__"), "{wire}");
            prop_assert!(wire.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{wire}");
        }
    }
}
