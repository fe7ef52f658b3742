//! Expands `${VAR}` in the configuration from the environment, in all the ways in which MCP clients write it.

/// A text with its variables expanded.
#[derive(Debug)]
pub(super) struct Expanded {
    pub(super) text: String,
    /// The values from the environment, which may be secrets.
    pub(super) values: Vec<String>,
}

/// Expands `${VAR}`, `${env:VAR}`, `${VAR:-default}`, `${input:id}` (from `INPUT_ID`), `${userHome}` and `${pathSeparator}`;
/// `$${` is an escaped `${`.
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
        let reference = Reference::parse(&from_start[2..end])?;
        match (variable(&reference.variable), reference.default) {
            // As in a shell, an empty value counts as missing if there is a default.
            (Some(value), default) if !value.is_empty() || default.is_none() => {
                expanded.text.push_str(&value);
                expanded.values.push(value);
            }
            (_, Some(default)) => expanded.text.push_str(default),
            (_, None) => return Err(reference.missing()),
        }
        rest = &from_start[end + 1..];
    }
    expanded.text.push_str(rest);
    Ok(expanded)
}

/// What is between `${` and `}`.
struct Reference<'t> {
    /// The environment variable that has the value.
    variable: String,
    default: Option<&'t str>,
    /// Whether VS Code would ask a person for it.
    is_input: bool,
}

impl Reference<'_> {
    fn parse(inner: &str) -> Result<Reference<'_>, String> {
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if let Some(id) = name.strip_prefix("input:") {
            let id = id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
            let variable = format!("INPUT_{}", id.collect::<String>());
            return Ok(Reference { variable, default, is_input: true });
        }
        match name {
            "userHome" => return Ok(Reference { variable: "HOME".to_owned(), default, is_input: false }),
            "pathSeparator" | "/" => {
                // No variable has this name, so that the default counts.
                return Ok(Reference { variable: String::new(), default: Some("/"), is_input: false });
            }
            _ => {}
        }
        if let Some(why) = of_another_program(name) {
            return Err(format!("${{{inner}}} {why}"));
        }
        let name = name.strip_prefix("env:").unwrap_or(name);
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!("{:?} isn't the name of an environment variable", format!("${{{inner}}}")));
        }
        Ok(Reference { variable: name.to_owned(), default, is_input: false })
    }

    fn missing(&self) -> String {
        let name = &self.variable;
        if self.is_input {
            format!("VS Code asks a person for this input; here, set the environment variable {name}")
        } else {
            format!("the environment variable {name} isn't set: set it, or write ${{{name}:-default}}")
        }
    }
}

/// What to write instead of what only another program knows.
fn of_another_program(name: &str) -> Option<&'static str> {
    let prefix = name.split_once(':').map_or(name, |(prefix, _)| prefix);
    match prefix {
        "workspaceFolder"
        | "workspaceFolderBasename"
        | "workspaceRoot"
        | "workspaceRootFolderName"
        | "relativeFile"
        | "fileDirname"
        | "fileWorkspaceFolder"
        | "execPath" => Some("is known to an editor only: write the path itself"),
        "config" | "command" => Some("is known to VS Code only: write the value itself, or ${env:NAME}"),
        "file" => Some("isn't read: put the content into an environment variable and write ${env:NAME}"),
        "__dirname" => Some("is known to Claude Desktop only: write the path itself"),
        name if name.starts_with("user_config.") => {
            Some("is known to Claude Desktop only: write the value itself, or ${env:NAME}")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "A" => Some("one".to_owned()),
            "EMPTY" => Some(String::new()),
            "HOME" => Some("/home/ann".to_owned()),
            "INPUT_API_KEY" => Some("s3cret".to_owned()),
            _ => None,
        }
    }

    fn filled(text: &str) -> Result<String, String> {
        expand(text, &environment).map(|expanded| expanded.text)
    }

    #[test]
    fn fills_in_variables() {
        for (text, expected) in [
            ("plain $A {A}", "plain $A {A}"),
            ("${A}/${A}é", "one/oneé"),
            ("${env:A}", "one"),
            ("${env:B:-two}", "two"),
            ("${B:-two}", "two"),
            ("${EMPTY:-two}", "two"),
            ("[${EMPTY}]", "[]"),
            ("${B:-}", ""),
            ("$${A} ${A}", "${A} one"),
            ("Bearer ${input:api-key}", "Bearer s3cret"),
            ("${input:api key}", "s3cret"),
            ("${input:none:-two}", "two"),
            ("${userHome}${/}x${pathSeparator}y", "/home/ann/x/y"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(expand("${input:api-key}", &environment).unwrap().values, ["s3cret"]);
    }

    #[test]
    fn says_what_is_wrong_and_what_to_do() {
        for (text, expected) in [
            ("${B}", "the environment variable B isn't set: set it, or write ${B:-default}"),
            ("${A", "never closed"),
            ("${a b}", "\"${a b}\" isn't the name of an environment variable"),
            ("${}", "isn't the name"),
            ("${input:other-key}", "here, set the environment variable INPUT_OTHER_KEY"),
            ("${workspaceFolder}/x", "${workspaceFolder} is known to an editor only: write the path itself"),
            ("${workspaceFolder:api}", "write the path itself"),
            ("${config:x.y}", "known to VS Code only"),
            ("${command:x}", "known to VS Code only"),
            ("${file:/run/secret}", "put the content into an environment variable"),
            ("${user_config.key}", "known to Claude Desktop only"),
        ] {
            let error = filled(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_expanded_or_refused(text in "[$A-C{}:\\-/a-z é]{0,40}") {
            let has_reference = text.contains("${");
            match expand(&text, &environment) {
                Ok(Expanded { text: expanded, .. }) if !has_reference => prop_assert_eq!(expanded, text),
                Ok(_) => {}
                Err(error) => prop_assert!(has_reference && !error.is_empty(), "{error}"),
            }
        }

        #[test]
        fn an_escaped_text_stays_as_it_is(text in "\\PC{0,40}") {
            prop_assume!(!text.contains("$${"));
            prop_assert_eq!(filled(&text.replace("${", "$${")).unwrap(), text);
        }

        #[test]
        fn a_value_is_never_expanded_again(value in "\\PC{0,20}") {
            let expanded = expand("<${A}>", &|_| Some(value.clone())).unwrap();
            prop_assert_eq!(expanded.text, format!("<{value}>"));
            prop_assert_eq!(expanded.values, [value]);
        }
    }
}
