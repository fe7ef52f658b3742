//! Classifies a literal by its name and text: a secret, a setting, or just a value.

use super::LiftedKind;
use crate::names::snake_case;

const SECRET_NAMES: &[&str] = &[
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "authorization",
    "credential",
    "privatekey",
    "accesskey",
    "passphrase",
];

/// Prefixes of well-known services' secrets.
const SECRET_STARTS: &[&str] = &[
    "sk-",
    "sk_live_",
    "sk_test_",
    "pk_live_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "AIza",
    "Bearer ",
    "Basic ",
    "-----BEGIN",
    "eyJhbGci",
    "npm_",
    "hf_",
];

const SETTING_NAMES: &[&str] = &[
    "url",
    "uri",
    "endpoint",
    "host",
    "hostname",
    "port",
    "path",
    "file",
    "filename",
    "directory",
    "dir",
    "folder",
    "email",
    "channel",
    "bucket",
    "region",
    "database",
    "table",
    "timeout",
    "timeoutms",
    "limit",
    "retries",
    "interval",
    "model",
    "repo",
    "repository",
    "owner",
    "branch",
];

fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

pub(super) fn is_setting_name(name: &str) -> bool {
    let words = snake_case(name);
    let last = words.rsplit(['_', '-']).next().unwrap_or_default();
    SETTING_NAMES.contains(&last) || SETTING_NAMES.contains(&plain(name).as_str())
}

/// Whether a text must not be kept as a default.
pub(crate) fn is_secret(name: &str, text: &str) -> bool {
    kind_of_text(name, text) == Some(LiftedKind::Secret)
}

pub(super) fn kind_of_text(name: &str, text: &str) -> Option<LiftedKind> {
    let plain_name = plain(name);
    let named_secret = SECRET_NAMES.iter().any(|secret| plain_name.ends_with(secret)) && text.len() >= 4;
    if named_secret
        || SECRET_STARTS.iter().any(|start| text.len() > start.len() + 3 && text.starts_with(start))
        || looks_random(text)
    {
        return Some(LiftedKind::Secret);
    }
    let is_url = text.split_once("://").is_some_and(|(scheme, rest)| {
        !rest.is_empty()
            && !scheme.is_empty()
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+')
    });
    // A password makes the whole URL a secret.
    if is_url
        && text.split_once("://").is_some_and(|(_, rest)| {
            rest.split('/')
                .next()
                .and_then(|authority| authority.rsplit_once('@'))
                .is_some_and(|(user, _)| user.contains(':'))
        })
    {
        return Some(LiftedKind::Secret);
    }
    if is_url && text.split_once('?').is_some_and(|(_, query)| query.split('&').any(is_secret_field)) {
        return Some(LiftedKind::Secret);
    }
    let is_path = text.len() > 1
        && (text.starts_with('/') || text.starts_with("~/"))
        && !text.contains(char::is_whitespace);
    let is_email = text
        .split_once('@')
        .is_some_and(|(user, host)| !user.is_empty() && host.contains('.') && !text.contains(' '));
    (is_url || is_path || is_email || (is_setting_name(name) && !text.is_empty()))
        .then_some(LiftedKind::Setting)
}

/// `token=…` in a URL.
fn is_secret_field(field: &str) -> bool {
    field.split_once('=').is_some_and(|(name, value)| {
        let name = plain(name);
        value.len() >= 4 && (name == "key" || SECRET_NAMES.iter().any(|secret| name.ends_with(secret)))
    })
}

/// Long, without spaces, and with digits, upper and lower case: not written by hand.
fn looks_random(text: &str) -> bool {
    let has = |test: fn(&char) -> bool| text.chars().any(|c| test(&c));
    text.len() >= 32
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+/=_-".contains(c))
        && has(char::is_ascii_digit)
        && ((has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase))
            || text.chars().all(|c| c.is_ascii_hexdigit()))
}

pub(super) fn parameter_name(name: &str, kind: LiftedKind) -> String {
    let mut camel = String::new();
    for (index, word) in snake_case(name)
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .enumerate()
    {
        let mut letters = word.chars();
        match (index, letters.next()) {
            (0, Some(first)) => camel.push(first),
            (_, Some(first)) => camel.extend(first.to_uppercase()),
            (_, None) => {}
        }
        camel.push_str(letters.as_str());
    }
    if !camel.starts_with(|c: char| c.is_ascii_alphabetic()) {
        camel = if kind == LiftedKind::Secret { "secret".to_owned() } else { "setting".to_owned() };
    }
    camel
}
