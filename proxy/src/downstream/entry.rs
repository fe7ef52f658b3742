//! Reads an entry of `mcpServers`, as MCP clients write it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::{
    config::{DEFAULT_STARTUP_TIMEOUT, DEFAULT_TIMEOUT, ServerConfig, TransportConfig},
    expand::{Expanded, expand},
    fields::{Reader, kind},
    foreign_fields::explanation,
    tool_filter::ToolFilter,
};

/// Headers that the transport sets itself.
const TRANSPORT_HEADERS: [&str; 5] =
    ["accept", "content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id"];

/// What else the fields are called: the first that is there counts.
const TYPE: [&str; 3] = ["type", "transport", "transportType"];
const URL: [&str; 4] = ["httpUrl", "url", "serverUrl", "baseUrl"];
const FOLDER: [&str; 3] = ["cwd", "workingDirectory", "working_directory"];
const STARTUP_TIMEOUT: [&str; 3] = ["startupTimeout", "startup_timeout", "initTimeout"];

/// What to do about servers that speak only the transport of 2024-11-05.
const BRIDGE: &str = "use \"http\" and the server's streamable HTTP URL, which often ends in /mcp, or a bridge: \
     \"command\": \"npx\", \"args\": [\"-y\", \"mcp-remote\", the URL, \"--transport\", \"sse-only\"]";

impl Reader<'_> {
    /// None if it can't be used; the errors say why, unless it is disabled.
    pub(super) fn server(&mut self, entry: &Value) -> Option<ServerConfig> {
        let Value::Object(entry) = entry else {
            self.errors.push(format!("{}: expected an object, found {}", self.path(), kind(entry)));
            return None;
        };
        let mut fields = entry.clone();
        fields.retain(|_, value| !value.is_null());
        self.unfold_command(&mut fields);
        let disabled = self.is_disabled(&mut fields);
        let eager = self.flag(&mut fields, "eager").unwrap_or(false);
        let timeout = self.seconds(&mut fields, &["timeout"]).unwrap_or(DEFAULT_TIMEOUT);
        let startup_timeout = self.seconds(&mut fields, &STARTUP_TIMEOUT).unwrap_or(DEFAULT_STARTUP_TIMEOUT);
        let tools = self.tool_filter(&mut fields);
        let mut secrets = Vec::new();
        let transport = self.transport(&mut fields, disabled, &mut secrets);
        if disabled {
            // Nobody misses it, whatever is wrong with it.
            self.errors.clear();
        } else {
            for field in fields.keys() {
                self.warn(field, explanation(field));
            }
        }
        // Longest first, because one may contain another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        let transport = transport?;
        self.errors.is_empty().then(|| ServerConfig {
            configured_name: self.server.to_owned(),
            transport,
            disabled,
            eager,
            timeout,
            startup_timeout,
            tools,
            secrets,
        })
    }

    fn is_disabled(&mut self, fields: &mut Map<String, Value>) -> bool {
        let disabled = self.flag(fields, "disabled").unwrap_or(false);
        let enabled = ["enabled", "isActive"].map(|field| self.flag(fields, field).unwrap_or(true));
        disabled || enabled.contains(&false)
    }

    fn tool_filter(&mut self, fields: &mut Map<String, Value>) -> ToolFilter {
        let mut include = None;
        for field in ["includeTools", "tools"] {
            if fields.contains_key(field) {
                let names = self.list(fields, field);
                // GitHub's agents say "*" for all.
                if !names.iter().any(|name| name == "*") {
                    include = Some(names.into_iter().collect());
                }
            }
        }
        let exclude = ["excludeTools", "disabledTools"].map(|field| self.list(fields, field));
        ToolFilter { include, exclude: exclude.into_iter().flatten().collect() }
    }

    fn transport(
        &mut self,
        fields: &mut Map<String, Value>,
        disabled: bool,
        secrets: &mut Vec<String>,
    ) -> Option<TransportConfig> {
        let declared = self.first_text(fields, &TYPE);
        let command = self.command(fields);
        let url = self.first_text(fields, &URL);
        let declared_http = match declared {
            None => None,
            Some((field, declared)) => Some(self.is_http(field, &declared)?),
        };
        let mut secrets = Secrets { disabled, found: secrets };
        match (command, url, declared_http) {
            (Some(_), Some((field, _)), None) => {
                self.error("command", format!("can't be combined with {field:?}: use one of them"));
                None
            }
            (None, None, None) => {
                self.errors.push(format!(
                    "{}: \"command\" (a program) or \"url\" (an HTTP server) is missing",
                    self.path()
                ));
                None
            }
            (None, _, Some(false)) => {
                self.error("command", "missing; it is the program to start");
                None
            }
            (_, None, Some(true)) => {
                self.error("url", "missing; it is the server's endpoint");
                None
            }
            (Some(command), _, None | Some(false)) => self.program(fields, command, &mut secrets),
            (_, Some((field, url)), None | Some(true)) => self.endpoint(fields, field, &url, &mut secrets),
        }
    }

    /// Whether the declared type is HTTP; None if it can't be used.
    fn is_http(&mut self, field: &str, declared: &str) -> Option<bool> {
        let normal: String = declared.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect();
        match normal.to_ascii_lowercase().as_str() {
            "stdio" | "local" => Some(false),
            "http" | "https" | "streamablehttp" | "remote" => Some(true),
            "sse" => {
                self.error(field, format!("the transport SSE of 2024 isn't supported: {BRIDGE}"));
                None
            }
            "ws" | "websocket" => {
                self.error(field, "WebSockets aren't part of MCP: use \"http\" and the server's HTTP URL");
                None
            }
            _ => {
                self.error(field, format!("expected \"stdio\" or \"http\", found {declared:?}"));
                None
            }
        }
    }

    /// Zed's entries have the program with its arguments, variables and timeout in an object.
    fn unfold_command(&mut self, fields: &mut Map<String, Value>) {
        let Some(Value::Object(parts)) = fields.get("command") else { return };
        let mut parts = parts.clone();
        parts.retain(|_, value| !value.is_null());
        fields.shift_remove("command");
        match self.text(&mut parts, "path") {
            Some(path) => drop(fields.insert("command".to_owned(), Value::String(path))),
            None => self.error("command.path", "missing; it is the program to start"),
        }
        fields.extend(parts);
    }

    /// The program with its arguments in front: a string or a list.
    fn command(&mut self, fields: &mut Map<String, Value>) -> Option<Vec<String>> {
        match fields.shift_remove("command")? {
            Value::String(command) => Some(vec![command]),
            list @ Value::Array(_) => {
                fields.insert("command".to_owned(), list);
                Some(self.list(fields, "command"))
            }
            other => {
                self.error("command", format!("expected a string, found {}", kind(&other)));
                None
            }
        }
    }

    fn program(
        &mut self,
        fields: &mut Map<String, Value>,
        command: Vec<String>,
        secrets: &mut Secrets<'_>,
    ) -> Option<TransportConfig> {
        let mut command = command.into_iter();
        let Some(program) = command.next().filter(|program| !program.trim().is_empty()) else {
            self.error("command", "is empty");
            return None;
        };
        let program = self.expanded("command", &program, false, secrets)?;
        let given = self.list(fields, "args");
        let args = command.chain(given).enumerate();
        let args = args
            .filter_map(|(index, arg)| self.expanded(&format!("args[{index}]"), &arg, false, secrets))
            .collect();
        let mut env = self.env_file(fields, secrets);
        for (key, value) in self.texts(fields, "env") {
            if key.is_empty() || key.contains(['=', '\0']) {
                self.error("env", format!("invalid name of a variable: {key:?}"));
                continue;
            }
            let value = self.expanded(&format!("env.{key}"), &value, sounds_secret(&key), secrets);
            env.extend(value.map(|value| (key, value)));
        }
        let cwd = self.first_text(fields, &FOLDER);
        let cwd = cwd.and_then(|(field, cwd)| self.expanded(field, &cwd, false, secrets)).map(PathBuf::from);
        Some(TransportConfig::Stdio { command: program, args, env, cwd })
    }

    /// The variables of the file `envFile`, which those of `env` override.
    fn env_file(
        &mut self,
        fields: &mut Map<String, Value>,
        secrets: &mut Secrets<'_>,
    ) -> BTreeMap<String, String> {
        let field = "envFile";
        let Some(path) = self.text(fields, field) else { return BTreeMap::new() };
        let Some(path) = self.expanded(field, &path, false, secrets) else { return BTreeMap::new() };
        let read = dotenvy::from_path_iter(Path::new(&path)).and_then(Iterator::collect);
        match read {
            Ok(env) => {
                let env: BTreeMap<String, String> = env;
                secrets
                    .keep(env.iter().filter(|(key, _)| sounds_secret(key)).map(|(_, value)| value.clone()));
                env
            }
            Err(dotenvy::Error::Io(error)) => {
                self.error(field, format!("{path} can't be read: {error}"));
                BTreeMap::new()
            }
            // The error quotes the line, which may hold a secret.
            Err(_) => {
                self.error(field, format!("{path} has a line that isn't NAME=value"));
                BTreeMap::new()
            }
        }
    }

    fn endpoint(
        &mut self,
        fields: &mut Map<String, Value>,
        field: &str,
        url: &str,
        secrets: &mut Secrets<'_>,
    ) -> Option<TransportConfig> {
        let url = self.expanded(field, url, false, secrets)?;
        let url = match url::Url::parse(&url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => url,
            Ok(_) => {
                self.error(field, "must start with http:// or https:// and name a host");
                return None;
            }
            Err(error) => {
                self.error(field, format!("invalid URL: {error}"));
                return None;
            }
        };
        if url.path().trim_end_matches('/').ends_with("/sse") && !secrets.disabled {
            self.warn(
                field,
                format!("looks like the transport SSE of 2024. If the server doesn't start, {BRIDGE}"),
            );
        }
        let headers = self.texts(fields, "headers");
        let headers = headers
            .into_iter()
            .filter_map(|(name, value)| {
                let field = format!("headers.{name}");
                let value = self.expanded(&field, &value, true, secrets)?;
                self.check_header(&field, &name, &value)?;
                Some((name, value))
            })
            .collect();
        Some(TransportConfig::Http { url, headers })
    }

    fn check_header(&mut self, field: &str, name: &str, value: &str) -> Option<()> {
        let Ok(parsed) = HeaderName::try_from(name) else {
            self.error(field, "invalid name of a header");
            return None;
        };
        if TRANSPORT_HEADERS.contains(&parsed.as_str()) {
            self.error(field, "is set by the transport itself; remove it");
            return None;
        }
        if HeaderValue::try_from(value).is_err() {
            self.error(field, "has characters that aren't allowed in a header");
            return None;
        }
        Some(())
    }

    fn expanded(
        &mut self,
        field: &str,
        text: &str,
        secret: bool,
        secrets: &mut Secrets<'_>,
    ) -> Option<String> {
        match expand(text, self.variable) {
            Ok(Expanded { text, values }) => {
                // A header is often "Bearer <secret>": its last word is the secret.
                let last_word = text.rsplit(' ').next().unwrap_or_default().to_owned();
                if let Some(name) = bare_variable(&last_word).filter(|_| !secrets.disabled) {
                    self.warn(
                        field,
                        format!("${name} is used as it stands; write ${{{name}}} for the variable"),
                    );
                }
                secrets.keep(values.into_iter().chain(secret.then_some(last_word)));
                Some(text)
            }
            // Variables of a disabled server may be missing.
            Err(_) if secrets.disabled => Some(text.to_owned()),
            Err(error) => {
                self.error(field, error);
                None
            }
        }
    }
}

/// The values to redact, found while an entry is read.
struct Secrets<'s> {
    disabled: bool,
    found: &'s mut Vec<String>,
}

impl Secrets<'_> {
    fn keep(&mut self, values: impl Iterator<Item = String>) {
        self.found.extend(values.filter(|value| value.len() >= 4));
    }
}

/// The name in `$NAME`, which Gemini CLI expands and others don't.
fn bare_variable(word: &str) -> Option<&str> {
    let name = word.strip_prefix('$')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
    is_name.then_some(name)
}

fn sounds_secret(variable: &str) -> bool {
    const WORDS: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASS", "PWD", "CREDENTIAL", "AUTH", "PRIVATE"];
    let variable = variable.to_ascii_uppercase();
    WORDS.iter().any(|word| variable.contains(word))
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
