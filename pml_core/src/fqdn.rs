//! The FQDN, `<org>.<project>.<namespace>.<action>.<hash>`: a capability's identity, which never changes.

use std::fmt;

use crate::{
    error::{Error, Result},
    name::check_part,
};

/// Characters of the code's hash in an FQDN, unless collisions make it longer.
pub const SHORTEST_HASH: usize = 4;
/// The limit after collisions; BLAKE3 output can be of any length.
pub const LONGEST_HASH: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fqdn<'a> {
    pub org: &'a str,
    pub project: &'a str,
    pub namespace: &'a str,
    pub action: &'a str,
    pub hash: &'a str,
}

impl<'a> Fqdn<'a> {
    pub fn parse(text: &'a str) -> Result<Self> {
        let problem = |detail: String| Error::InvalidFqdn { value: text.to_owned(), detail };
        let mut parts = text.split('.');
        let mut next = || parts.next().ok_or(());
        let (Ok(org), Ok(project), Ok(namespace), Ok(action), Ok(hash)) =
            (next(), next(), next(), next(), next())
        else {
            return Err(problem(format!("It has {} parts; an FQDN has 5.", text.split('.').count())));
        };
        if parts.next().is_some() {
            return Err(problem(format!("It has {} parts; an FQDN has 5.", text.split('.').count())));
        }
        Fqdn { org, project, namespace, action, hash }.check().map_err(|error| match error {
            Error::InvalidPart { what, detail, .. } => problem(format!("The {what} is wrong. {detail}")),
            other => other,
        })
    }

    /// Returns the FQDN if all its parts are valid.
    pub fn check(self) -> Result<Self> {
        check_part("org", self.org)?;
        check_part("project", self.project)?;
        check_part("namespace", self.namespace)?;
        check_part("action", self.action)?;
        check_hash(self.hash)?;
        Ok(self)
    }
}

impl fmt::Display for Fqdn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}.{}.{}", self.org, self.project, self.namespace, self.action, self.hash)
    }
}

fn check_hash(hash: &str) -> Result<()> {
    let problem = |detail: String| Err(Error::InvalidPart { what: "hash", value: hash.to_owned(), detail });
    if let Some(bad) = hash.chars().find(|c| !(c.is_ascii_digit() || ('a'..='f').contains(c))) {
        return problem(format!("It contains {bad:?}; it is lower-case hex."));
    }
    if !(SHORTEST_HASH..=LONGEST_HASH).contains(&hash.len()) {
        return problem(format!(
            "It has {} characters; it has {SHORTEST_HASH} to {LONGEST_HASH}.",
            hash.len()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_are_named() {
        let fqdn = Fqdn::parse("acme.webapp.fs.read_json.a7f3").unwrap();
        assert_eq!(
            fqdn,
            Fqdn { org: "acme", project: "webapp", namespace: "fs", action: "read_json", hash: "a7f3" }
        );
    }

    #[test]
    fn errors_say_which_part_is_wrong() {
        for (text, reason) in [
            ("", "1 parts"),
            ("a.b.c.d", "4 parts"),
            ("a.b.c.d.abcd.e", "6 parts"),
            ("a.b.c..abcd", "The action is wrong"),
            ("9.b.c.d.abcd", "The org is wrong"),
            ("a.b.c.d.A7F3", "lower-case"),
            ("a.b.c.d.abc", "3 characters"),
            ("marketplace.public.fs.read_json.x9z1", "The hash is wrong"),
        ] {
            let error = Fqdn::parse(text).unwrap_err();
            assert!(error.detail().unwrap().contains(reason), "{text}: {error:?}");
        }
    }

    proptest! {
        #[test]
        fn text_survives_parsing(text in "[A-Za-z_][A-Za-z0-9_-]{0,62}(\\.[A-Za-z_][A-Za-z0-9_-]{0,62}){3}\\.[0-9a-f]{4,1024}") {
            prop_assert_eq!(Fqdn::parse(&text).unwrap().to_string(), text);
        }

        #[test]
        fn any_text_is_judged_without_panic(text in ".{0,200}") {
            let _ = Fqdn::parse(&text);
        }
    }
}
