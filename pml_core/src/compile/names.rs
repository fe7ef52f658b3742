//! The names a reference in code can mean: `ns:action` as written, then in snake_case.

/// `readJson` → `read_json`, `HTTPGet` → `http_get`; what is snake_case already stays.
pub(crate) fn snake_case(name: &str) -> String {
    if !name.contains(char::is_uppercase) {
        return name.to_owned();
    }
    let chars: Vec<char> = name.chars().collect();
    let mut snake = String::with_capacity(name.len() + 4);
    for (i, &c) in chars.iter().enumerate() {
        let after_lower = i > 0 && (chars[i - 1].is_lowercase() || chars[i - 1].is_ascii_digit());
        let ends_acronym =
            i > 0 && chars[i - 1].is_uppercase() && chars.get(i + 1).is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && (after_lower || ends_acronym) {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

/// The names to look up for `mcp.<namespace>.<action>`, best first.
pub(crate) fn candidates(namespace: &str, action: &str) -> Vec<String> {
    let mut names = vec![format!("{namespace}:{action}")];
    let (snake_namespace, snake_action) = (snake_case(namespace), snake_case(action));
    if snake_action != action {
        names.push(format!("{namespace}:{snake_action}"));
    }
    if snake_namespace != namespace {
        names.push(format!("{snake_namespace}:{snake_action}"));
    }
    names
}

/// The names to look up for `capabilities.<name>`, best first.
pub(crate) fn plain_candidates(name: &str) -> Vec<String> {
    let snake = snake_case(name);
    if snake == name { vec![snake] } else { vec![name.to_owned(), snake] }
}

/// Splits `name@version`; the version keeps no `@`.
pub(crate) fn split_version(text: &str) -> (&str, Option<&str>) {
    match text.split_once('@') {
        Some((name, version)) if !name.is_empty() && !version.is_empty() => (name, Some(version)),
        _ => (text, None),
    }
}

/// Whether a name is already an FQDN: four words and a hexadecimal hash, joined by dots.
pub(crate) fn is_fqdn(name: &str) -> bool {
    let parts: Vec<&str> = name.split('.').collect();
    let [words @ .., hash] = &parts[..] else { return false };
    words.len() == 4
        && words.iter().all(|word| is_word(word))
        && hash.len() >= 4
        && hash.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn is_word(word: &str) -> bool {
    let mut bytes = word.bytes();
    word.len() <= 63
        && bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
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
    fn an_fqdn_is_told_from_a_name() {
        assert!(is_fqdn("local.default.fs.read_json.a7f3"));
        for name in [
            "fs:read",
            "local.default.fs.read_json.xyz1",
            "a.b.c.d",
            "1a.b.c.d.a7f3",
            "local.default.fs.read.a7",
        ] {
            assert!(!is_fqdn(name), "{name}");
        }
    }

    #[test]
    fn a_version_is_split_off() {
        assert_eq!(split_version("fs:read@v1.2"), ("fs:read", Some("v1.2")));
        assert_eq!(split_version("fs:read"), ("fs:read", None));
        assert_eq!(split_version("@v1"), ("@v1", None));
    }
}
