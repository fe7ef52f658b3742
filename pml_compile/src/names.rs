//! The names a reference in code can mean: `ns:action` as written, then in snake_case.

use std::borrow::Cow;

/// `readJson` → `read_json`, `HTTPGet` → `http_get`; snake_case is left as it is.
pub fn snake_case(name: &str) -> Cow<'_, str> {
    if !name.bytes().any(|byte| byte.is_ascii_uppercase() || byte >= 0x80) {
        return Cow::Borrowed(name);
    }
    let mut snake = String::with_capacity(name.len() + 4);
    let mut before = None;
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        let after_lower = before.is_some_and(|c: char| c.is_lowercase() || c.is_ascii_digit());
        let ends_acronym =
            before.is_some_and(char::is_uppercase) && chars.peek().is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && (after_lower || ends_acronym) {
            snake.push('_');
        }
        if c.is_ascii() {
            snake.push(c.to_ascii_lowercase());
        } else {
            snake.extend(c.to_lowercase());
        }
        before = Some(c);
    }
    Cow::Owned(snake)
}

/// The names to look up for `mcp.<namespace>.<action>`, best first.
pub(crate) fn candidates(namespace: &str, action: &str) -> Vec<String> {
    let mut names = vec![[namespace, ":", action].concat()];
    let (snake_namespace, snake_action) = (snake_case(namespace), snake_case(action));
    if snake_action != action {
        names.push([namespace, ":", &snake_action].concat());
    }
    if snake_namespace != namespace {
        names.push([&*snake_namespace, ":", &snake_action].concat());
    }
    names
}

/// The names to look up for `capabilities.<name>`, best first.
pub(crate) fn plain_candidates(name: &str) -> Vec<String> {
    let snake = snake_case(name);
    if snake == name { vec![name.to_owned()] } else { vec![name.to_owned(), snake.into_owned()] }
}

/// Splits `name@version`; the version has no `@`.
pub(crate) fn split_version(text: &str) -> (&str, Option<&str>) {
    match text.split_once('@') {
        Some((name, version)) if !name.is_empty() && !version.is_empty() => (name, Some(version)),
        _ => (text, None),
    }
}

/// Whether `x.<name>` can be written without quotes.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_' || b == b'$')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn camel_case_finds_snake_case() {
        for (camel, snake) in [
            ("readJson", "read_json"),
            ("HTTPGet", "http_get"),
            ("read_json", "read_json"),
            ("a1B", "a1_b"),
            ("", ""),
        ] {
            assert_eq!(snake_case(camel), snake);
        }
        assert_eq!(candidates("fs", "readJson"), ["fs:readJson", "fs:read_json"]);
        assert_eq!(candidates("myFs", "read"), ["myFs:read", "my_fs:read"]);
        assert_eq!(plain_candidates("sumUp"), ["sumUp", "sum_up"]);
    }

    #[test]
    fn a_version_is_split_off() {
        assert_eq!(split_version("fs:read@v1.2"), ("fs:read", Some("v1.2")));
        assert_eq!(split_version("fs:read"), ("fs:read", None));
        assert_eq!(split_version("@v1"), ("@v1", None));
    }
}
