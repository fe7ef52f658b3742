//! The configuration file, and files of other programs with servers: JSON, also with comments and trailing commas.

use std::{env, fs, path::PathBuf};

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{ConfigError, Settings};

/// Where programs have their servers: Claude, Cursor, Windsurf, Cline, Gemini; VS Code; Zed; VS Code's settings.
const SERVER_KEYS: [&[&str]; 4] = [&["mcpServers"], &["servers"], &["context_servers"], &["mcp", "servers"]];

/// Reads `path`, or the default file if it exists. Missing settings have their defaults.
pub(super) fn read(path: Option<PathBuf>) -> Result<Settings, ConfigError> {
    match path.or_else(|| default_path().filter(|path| path.exists())) {
        Some(path) => read_json(path),
        None => Ok(Settings::default()),
    }
}

/// The servers in a file, perhaps another program's: other keys are ignored.
pub(super) fn read_servers(path: PathBuf) -> Result<Value, ConfigError> {
    let file = read_json::<Value>(path.clone())?;
    let found =
        SERVER_KEYS.iter().filter_map(|keys| keys.iter().try_fold(&file, |value, key| value.get(key)));
    let mut merged: Option<Map<String, Value>> = None;
    for servers in found {
        let Value::Object(servers) = servers else { return Ok(servers.clone()) };
        let merged = merged.get_or_insert_default();
        for (name, entry) in servers {
            merged.entry(name.clone()).or_insert_with(|| entry.clone());
        }
    }
    merged.map(Value::Object).ok_or(ConfigError::NoServers { path })
}

fn default_path() -> Option<PathBuf> {
    let folder = env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(folder.join("pml/config.json"))
}

fn read_json<T: DeserializeOwned>(path: PathBuf) -> Result<T, ConfigError> {
    let text =
        fs::read_to_string(&path).map_err(|source| ConfigError::Unreadable { path: path.clone(), source })?;
    // Editors on Windows write one.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let malformed = |what: String| ConfigError::Malformed { path: path.clone(), what };
    let value = parse_to_serde_value(text, &SYNTAX).map_err(|error| malformed(error.to_string()))?;
    // Serde would accept a list as the fields in order.
    match value {
        Value::Object(_) => {}
        Value::Array(_) => return Err(ConfigError::NotAnObject { path, found: "a list" }),
        Value::Null => return Err(ConfigError::NotAnObject { path, found: "nothing" }),
        _ => return Err(ConfigError::NotAnObject { path, found: "something else" }),
    }
    match serde_json::from_str(text) {
        Ok(read) => Ok(read),
        // With the place of a wrong field, which can only be told if there are no comments.
        Err(error) if error.is_data() => Err(malformed(error.to_string())),
        Err(_) => serde_json::from_value(value).map_err(|error| malformed(error.to_string())),
    }
}

/// JSON with what VS Code allows in its own files, and nothing else.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn servers(text: &str) -> Result<Value, ConfigError> {
        let (_folder, path) = file(text);
        read_servers(path)
    }

    #[test]
    fn servers_are_found_wherever_a_program_has_them() {
        let a = json!({"a": {"command": "x"}});
        for text in [
            r#"{"mcpServers": {"a": {"command": "x"}}, "theme": "dark"}"#,
            "\u{feff}// VS Code's\n{\"inputs\": [], /* all */ \"servers\": {\"a\": {\"command\": \"x\",},},}",
            r#"{"context_servers": {"a": {"command": "x"}}}"#,
            r#"{"mcp": {"inputs": [], "servers": {"a": {"command": "x"}}}}"#,
            r#"{"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {"command": "another"}}}"#,
        ] {
            assert_eq!(servers(text).unwrap(), a, "{text}");
        }
        assert_eq!(servers(r#"{"mcpServers": []}"#).unwrap(), json!([]), "the reader of entries tells it");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, expected) in [
            (r#"{"files": {"command": "x"}}"#, "no servers found"),
            ("[]", "expected a JSON object, found a list"),
            ("// nothing\n", "expected a JSON object, found nothing"),
            ("7", "expected a JSON object, found something else"),
            ("{\n\"mcpServers\": {'a': 1}}", "line 2"),
            ("{\"mcpServers\": {\"a\": 1 \"b\": 2}}", "Expected comma on line 1"),
            ("{\"mcpServers\": ", "line 1"),
        ] {
            let error = servers(text).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("mcp.json"), "{text}: {error}");
        }
    }

    #[test]
    fn settings_may_have_comments_and_other_names_for_servers() {
        let (_folder, path) =
            file("{ // mine\n\"org\": \"acme\", \"servers\": {\"a\": {}}, \"inputs\": [], }");
        let settings = read(Some(path)).unwrap();
        assert_eq!((settings.org.as_str(), settings.mcp_servers_block), ("acme", Some(json!({"a": {}}))));
        let (_folder, path) = file("{\n\"orgg\": \"acme\"}");
        let error = read(Some(path)).unwrap_err().to_string();
        assert!(error.contains("unknown field `orgg`") && error.contains("line 2"), "{error}");
        let (_folder, path) = file("{ // mine\n\"orgg\": \"acme\"}");
        let error = read(Some(path)).unwrap_err().to_string();
        assert!(error.contains("unknown field `orgg`"), "{error}");
    }
}
