//! Invalid names, FQDNs and versions: a message, a detail and a hint for each.

use std::fmt;

use thiserror::Error;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    #[error(
        "Invalid capability name: \"{}\". Must be alphanumeric with underscores, hyphens, and colons only.",
        Excerpt(name)
    )]
    InvalidName { name: String, detail: String },
    #[error("Invalid {what}: \"{}\"", Excerpt(value))]
    InvalidPart { what: &'static str, value: String, detail: String },
    #[error("Invalid FQDN: \"{}\"", Excerpt(value))]
    InvalidFqdn { value: String, detail: String },
    #[error("Invalid version specifier: \"@{}\"", Excerpt(value))]
    InvalidVersion { value: String },
    #[error("Invalid version tag: \"{}\"", Excerpt(value))]
    InvalidTag { value: String, detail: String },
}

impl Error {
    /// What exactly is wrong, where the message doesn't say.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Error::InvalidName { detail, .. }
            | Error::InvalidPart { detail, .. }
            | Error::InvalidFqdn { detail, .. }
            | Error::InvalidTag { detail, .. } => Some(detail),
            _ => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::InvalidName { .. } => {
                "A name is 1 to 128 characters of A-Z a-z 0-9 _ - and :, for example \"fs:read_json\"."
            }
            Error::InvalidPart { .. } => {
                "It starts with a letter or underscore and has up to 63 characters of A-Z a-z 0-9 _ and -."
            }
            Error::InvalidFqdn { .. } => {
                "An FQDN is <org>.<project>.<namespace>.<action>.<hash>, for example \"local.default.fs.read_json.a7f3\"."
            }
            Error::InvalidVersion { .. } => {
                "Use @latest, @v1, @v1.2, @v1.2.0, @2025-12-22 or @2025-12-22T14:30:00Z."
            }
            Error::InvalidTag { .. } => {
                "A tag is a semantic version, for example \"v1.2.0\" or \"v2.0.0-rc.1\"."
            }
        }
    }
}

/// User text inside a message: shortened, with control characters escaped.
struct Excerpt<'a>(&'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 160;
        for c in self.0.chars().take(SHOWN) {
            if c.is_control() { write!(f, "{}", c.escape_unicode())? } else { write!(f, "{c}")? }
        }
        if self.0.chars().nth(SHOWN).is_some() { f.write_str("…") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_the_documented_ones() {
        let error = Error::InvalidName { name: "a b".into(), detail: String::new() };
        assert_eq!(
            error.to_string(),
            "Invalid capability name: \"a b\". Must be alphanumeric with underscores, hyphens, and colons only."
        );
    }

    #[test]
    fn messages_stay_short_and_printable() {
        let error = Error::InvalidFqdn { value: "\u{7}é".repeat(500_000), detail: String::new() };
        let message = error.to_string();
        assert!(message.len() < 2_000, "{} bytes", message.len());
        assert!(!message.contains('\u{7}'));
        assert!(message.ends_with("…\""));
    }
}
