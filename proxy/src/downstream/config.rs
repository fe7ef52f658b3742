//! Parses and checks the `mcpServers` entries of the configuration, with an error for each problem.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::{
    backoff::RestartPolicy,
    expand::{Expanded, expand},
    fields::{Reader, kind},
};

/// The default timeout of a call.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
/// The default timeout of a start: long enough for `npx` to download a package.
pub const DEFAULT_STARTUP_TIMEOUT: Duration = Duration::from_secs(60);
/// The name under which calls of capabilities are counted.
const RESERVED_NAME: &str = "pml-capabilities";
/// Headers that the transport sets itself.
const TRANSPORT_HEADERS: [&str; 5] =
    ["accept", "content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id"];

/// Options of all servers.
#[derive(Clone, Debug)]
pub struct DownstreamOptions {
    pub restart: RestartPolicy,
    /// Whether calls may take the fast path, bypassing rmcp.
    pub passthrough: bool,
}

impl Default for DownstreamOptions {
    fn default() -> DownstreamOptions {
        DownstreamOptions { restart: RestartPolicy::default(), passthrough: true }
    }
}

/// One downstream server.
#[derive(Clone)]
pub struct ServerConfig {
    pub transport: TransportConfig,
    pub disabled: bool,
    /// Started with the proxy; otherwise on its first use.
    pub eager: bool,
    /// The timeout of a call; progress doesn't extend it.
    pub timeout: Duration,
    /// The timeout of its start, with handshake and first list of tools.
    pub startup_timeout: Duration,
    /// Values to redact in messages and logs.
    pub(super) secrets: Vec<String>,
}

/// How a server is reached.
#[derive(Clone)]
pub enum TransportConfig {
    /// A program that the proxy starts.
    Stdio {
        /// The program: a path, or a name in `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables, beside the few that every server gets.
        env: BTreeMap<String, String>,
        /// Its working directory.
        cwd: Option<PathBuf>,
    },
    /// A streamable HTTP endpoint.
    Http {
        /// The endpoint.
        url: url::Url,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
    },
}

/// The result of [`parse_servers`].
#[derive(Debug, Default)]
pub struct ParsedServers {
    /// All entries, including disabled ones.
    pub servers: BTreeMap<String, ServerConfig>,
    /// About ignored keys, for the log.
    pub warnings: Vec<String>,
}

/// All problems of the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<String>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigErrors {}

// Not derived, because environment and headers hold secrets.
impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ServerConfig");
        match &self.transport {
            TransportConfig::Stdio { command, .. } => debug.field("command", command),
            TransportConfig::Http { url, .. } => debug.field("host", &url.host_str()),
        };
        debug.field("disabled", &self.disabled).field("eager", &self.eager).finish_non_exhaustive()
    }
}

/// Parses the object under `mcpServers`. `variable` looks up environment variables.
pub fn parse_servers(
    entries: &Value,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<ParsedServers, ConfigErrors> {
    let Value::Object(entries) = entries else {
        return Err(ConfigErrors(vec![format!(
            "mcpServers: expected an object of servers by name, found {}",
            kind(entries)
        )]));
    };
    let mut parsed = ParsedServers::default();
    let mut errors = Vec::new();
    for (name, entry) in entries {
        let mut reader =
            Reader { server: name, variable: &variable, errors: &mut errors, warnings: &mut parsed.warnings };
        if let Some(config) = reader.server(entry) {
            parsed.servers.insert(name.clone(), config);
        }
    }
    if errors.is_empty() { Ok(parsed) } else { Err(ConfigErrors(errors)) }
}

impl Reader<'_> {
    fn server(&mut self, entry: &Value) -> Option<ServerConfig> {
        let errors_before = self.errors.len();
        if !is_name(self.server) {
            self.errors.push(format!(
                "mcpServers: invalid server name {:?}: use at most 63 letters, digits, _ and -, starting with a letter or _",
                self.server
            ));
        } else if self.server == RESERVED_NAME {
            self.errors.push(format!("mcpServers: the name {RESERVED_NAME:?} is reserved"));
        }
        let Value::Object(entry) = entry else {
            self.errors.push(format!(
                "mcpServers.{}: expected an object, found {}",
                self.server,
                kind(entry)
            ));
            return None;
        };
        let mut fields = entry.clone();
        let disabled = self.flag(&mut fields, "disabled").unwrap_or(false)
            || self.flag(&mut fields, "enabled").is_some_and(|enabled| !enabled);
        let eager = self.flag(&mut fields, "eager").unwrap_or(false);
        let timeout = self.seconds(&mut fields, &["timeout"]).unwrap_or(DEFAULT_TIMEOUT);
        let startup_timeout = self
            .seconds(&mut fields, &["startupTimeout", "startup_timeout"])
            .unwrap_or(DEFAULT_STARTUP_TIMEOUT);
        let mut secrets = Vec::new();
        let transport = self.transport(&mut fields, disabled, &mut secrets);
        for unknown in fields.keys() {
            self.warnings.push(format!("mcpServers.{}.{unknown}: unknown, ignored", self.server));
        }
        // Longest first, because one may contain another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        let transport = transport?;
        (self.errors.len() == errors_before).then_some(ServerConfig {
            transport,
            disabled,
            eager,
            timeout,
            startup_timeout,
            secrets,
        })
    }

    fn transport(
        &mut self,
        fields: &mut Map<String, Value>,
        disabled: bool,
        secrets: &mut Vec<String>,
    ) -> Option<TransportConfig> {
        let declared = self.text(fields, "type");
        let command = self.text(fields, "command");
        let url = self.text(fields, "url");
        let declared_http = match declared.as_deref() {
            None => None,
            Some("stdio") => Some(false),
            Some("http" | "streamable-http" | "streamableHttp" | "streamable_http") => Some(true),
            Some("sse") => {
                self.error(
                    "type",
                    "the SSE transport isn't supported: use \"http\" and the server's streamable HTTP URL",
                );
                return None;
            }
            Some(other) => {
                self.error("type", format!("expected \"stdio\" or \"http\", found {other:?}"));
                return None;
            }
        };
        let mut expanded = |reader: &mut Self, field: &str, text: &str, secret: bool| {
            reader.expanded(field, text, secret, disabled, secrets)
        };
        match (command, url, declared_http) {
            (Some(_), Some(_), None) => {
                self.error("command", "can't be combined with \"url\": use one of them");
                None
            }
            (None, None, None) => {
                self.errors.push(format!(
                    "mcpServers.{}: \"command\" (a program) or \"url\" (an HTTP server) is missing",
                    self.server
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
            (Some(command), _, None | Some(false)) => {
                if command.trim().is_empty() {
                    self.error("command", "is empty");
                    return None;
                }
                let command = expanded(self, "command", &command, false)?;
                let args = self.list(fields, "args");
                let args = args
                    .iter()
                    .enumerate()
                    .filter_map(|(index, arg)| expanded(self, &format!("args[{index}]"), arg, false))
                    .collect();
                let env = self.texts(fields, "env");
                let env = env
                    .into_iter()
                    .filter_map(|(key, value)| {
                        if key.is_empty() || key.contains(['=', '\0']) {
                            self.error("env", format!("invalid name of a variable: {key:?}"));
                            return None;
                        }
                        let value = expanded(self, &format!("env.{key}"), &value, sounds_secret(&key))?;
                        Some((key, value))
                    })
                    .collect();
                let cwd = self.text(fields, "cwd");
                let cwd = cwd.and_then(|cwd| expanded(self, "cwd", &cwd, false)).map(PathBuf::from);
                Some(TransportConfig::Stdio { command, args, env, cwd })
            }
            (_, Some(url), None | Some(true)) => {
                let url = expanded(self, "url", &url, false)?;
                let url = match url::Url::parse(&url) {
                    Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => url,
                    Ok(_) => {
                        self.error("url", "must start with http:// or https:// and name a host");
                        return None;
                    }
                    Err(error) => {
                        self.error("url", format!("invalid URL: {error}"));
                        return None;
                    }
                };
                let headers = self.texts(fields, "headers");
                let headers = headers
                    .into_iter()
                    .filter_map(|(name, value)| {
                        let field = format!("headers.{name}");
                        let value = expanded(self, &field, &value, true)?;
                        self.check_header(&field, &name, &value)?;
                        Some((name, value))
                    })
                    .collect();
                Some(TransportConfig::Http { url, headers })
            }
        }
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
        disabled: bool,
        secrets: &mut Vec<String>,
    ) -> Option<String> {
        match expand(text, self.variable) {
            Ok(Expanded { text, values }) => {
                // A header is often "Bearer <secret>": its last word is the secret.
                let last_word = text.rsplit(' ').next().unwrap_or_default().to_owned();
                secrets.extend(
                    values.into_iter().chain(secret.then_some(last_word)).filter(|value| value.len() >= 4),
                );
                Some(text)
            }
            // Variables of a disabled server may be missing.
            Err(_) if disabled => Some(text.to_owned()),
            Err(error) => {
                self.error(field, error);
                None
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    name.len() <= 63
        && characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|rest| rest.is_ascii_alphanumeric() || rest == '_' || rest == '-')
}

fn sounds_secret(variable: &str) -> bool {
    const WORDS: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASS", "PWD", "CREDENTIAL", "AUTH", "PRIVATE"];
    let variable = variable.to_ascii_uppercase();
    WORDS.iter().any(|word| variable.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(entries: Value) -> Result<ParsedServers, ConfigErrors> {
        parse_servers(&entries, |name| (name == "TOKEN").then(|| "s3cret-value".to_owned()))
    }

    fn errors(entries: Value) -> Vec<String> {
        parse(entries).expect_err("the entries are wrong").0
    }

    #[test]
    fn reads_both_kinds() {
        let parsed = parse(json!({
            "files": {"command": "npx", "args": ["-y", "files", "${HOME:-/root}"], "env": {"API_TOKEN": "${TOKEN}"},
                      "cwd": "/tmp", "eager": true, "timeout": 1.5, "startupTimeout": 5},
            "web": {"type": "streamable-http", "url": "https://example.org/mcp",
                    "headers": {"Authorization": "Bearer ${TOKEN}"}, "disabled": true},
        }))
        .unwrap();
        let files = &parsed.servers["files"];
        assert!(files.eager && !files.disabled);
        assert_eq!(files.timeout, Duration::from_millis(1500));
        assert_eq!(files.startup_timeout, Duration::from_secs(5));
        let TransportConfig::Stdio { args, env, .. } = &files.transport else { panic!("{files:?}") };
        assert_eq!(args, &["-y", "files", "/root"]);
        assert_eq!(env["API_TOKEN"], "s3cret-value");
        assert_eq!(files.secrets, ["s3cret-value"]);
        let TransportConfig::Http { headers, .. } = &parsed.servers["web"].transport else { panic!() };
        assert_eq!(headers["Authorization"], "Bearer s3cret-value");
        assert!(!format!("{parsed:?}").contains("s3cret"), "{parsed:?}");
    }

    #[test]
    fn tolerates_unknown_keys_with_a_warning() {
        let parsed = parse(json!({"a": {"command": "x", "autoApprove": ["y"], "gallery": true}})).unwrap();
        assert_eq!(
            parsed.warnings,
            ["mcpServers.a.autoApprove: unknown, ignored", "mcpServers.a.gallery: unknown, ignored"]
        );
    }

    #[test]
    fn names_server_and_field_of_each_error() {
        assert_eq!(
            errors(json!({
                "a": {"command": ["npx"]},
                "b": {"command": "x", "args": "y", "env": {"PORT": 80}, "disabled": "no", "timeout": "5s"},
                "c": {"url": "ftp://x", "headers": {"Accept": "x"}},
                "d": {"command": "x", "env": {"KEY": "${MISSING}"}},
                "e": {"command": "x", "url": "http://x"},
                "f": {},
                "g": {"type": "sse", "url": "http://x"},
                "h": 5,
                "i": {"command": "x", "timeout": 0},
                "1 j": {"command": "x"},
                "pml-capabilities": {"command": "x"},
                "k": {"url": "http://x", "headers": {"Accept": "x", "a b": "y"}},
            })),
            [
                "mcpServers.a.command: expected a string, found a list",
                "mcpServers.a: \"command\" (a program) or \"url\" (an HTTP server) is missing",
                "mcpServers.b.disabled: expected true or false, found a string",
                "mcpServers.b.timeout: expected a number of seconds, found a string",
                "mcpServers.b.args: expected a list of strings, found a string",
                "mcpServers.b.env.PORT: expected a string, found a number",
                "mcpServers.c.url: must start with http:// or https:// and name a host",
                "mcpServers.d.env.KEY: the environment variable MISSING isn't set: set it, or write \
                 ${MISSING:-default}",
                "mcpServers.e.command: can't be combined with \"url\": use one of them",
                "mcpServers.f: \"command\" (a program) or \"url\" (an HTTP server) is missing",
                "mcpServers.g.type: the SSE transport isn't supported: use \"http\" and the server's streamable HTTP URL",
                "mcpServers.h: expected an object, found a number",
                "mcpServers.i.timeout: expected more than 0 and at most 86400 seconds",
                "mcpServers: invalid server name \"1 j\": use at most 63 letters, digits, _ and -, starting with a letter or _",
                "mcpServers: the name \"pml-capabilities\" is reserved",
                "mcpServers.k.headers.Accept: is set by the transport itself; remove it",
                "mcpServers.k.headers.a b: invalid name of a header",
            ]
        );
    }

    #[test]
    fn a_disabled_server_may_lack_its_variables() {
        let parsed = parse(json!({"a": {"command": "x", "args": ["${MISSING}"], "disabled": true}})).unwrap();
        assert!(parsed.servers["a"].disabled);
    }

    #[test]
    fn the_whole_must_be_an_object() {
        assert_eq!(errors(json!([])), ["mcpServers: expected an object of servers by name, found a list"]);
    }
}
