//! Expands `${VAR}` in the configuration from the environment.

/// A text with its variables expanded.
pub(super) struct Expanded {
    pub(super) text: String,
    /// The values from the environment, which may be secrets.
    pub(super) values: Vec<String>,
}

/// Expands `${VAR}`, `${env:VAR}` and `${VAR:-default}`; `$${` is an escaped `${`.
pub(super) fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Expanded, String> {
    let mut expanded = Expanded { text: String::with_capacity(text.len()), values: Vec::new() };
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from_start) = rest.split_at(start);
        if let Some(escaped) = before.strip_suffix('$') {
            expanded.text.push_str(escaped);
            expanded.text.push_str("${");
            rest = &from_start[2..];
            continue;
        }
        expanded.text.push_str(before);
        let Some(end) = from_start.find('}') else {
            return Err(
                "a \"${\" is never closed with \"}\" (write $${ for the characters themselves)".to_owned()
            );
        };
        let inner = &from_start[2..end];
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!("{:?} isn't the name of an environment variable", &from_start[..=end]));
        }
        match (variable(name), default) {
            // As in a shell, an empty value counts as missing if there is a default.
            (Some(value), default) if !value.is_empty() || default.is_none() => {
                expanded.text.push_str(&value);
                expanded.values.push(value);
            }
            (_, Some(default)) => expanded.text.push_str(default),
            (_, None) => {
                return Err(format!(
                    "the environment variable {name} isn't set: set it, or write ${{{name}:-default}}"
                ));
            }
        }
        rest = &from_start[end + 1..];
    }
    expanded.text.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, String> {
        let variable = |name: &str| match name {
            "A" => Some("one".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        expand(text, &variable).map(|expanded| expanded.text)
    }

    #[test]
    fn fills_in_variables() {
        for (text, expected) in [
            ("plain $A {A}", "plain $A {A}"),
            ("${A}/${A}é", "one/oneé"),
            ("${env:A}", "one"),
            ("${B:-two}", "two"),
            ("${EMPTY:-two}", "two"),
            ("[${EMPTY}]", "[]"),
            ("${B:-}", ""),
            ("$${A} ${A}", "${A} one"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        assert!(filled("${B}").unwrap_err().contains("variable B isn't set"));
        assert!(filled("${A").unwrap_err().contains("never closed"));
        assert!(filled("${a b}").unwrap_err().contains("isn't the name"));
    }
}
