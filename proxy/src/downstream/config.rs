//! The `mcpServers` entries of the configuration: read, checked and expanded, with an error for each thing that is wrong.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::{
    backoff::RestartPolicy,
    expand::{Expanded, expand},
    fields::{Reader, kind},
};

/// How long a call may take unless the entry says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a server may take until it is ready: long enough for `npx` to fetch a package.
pub const DEFAULT_STARTUP_TIMEOUT: Duration = Duration::from_secs(60);
/// The name under which capabilities are counted.
const RESERVED_NAME: &str = "pml-capabilities";
/// Headers that the transport writes itself.
const TRANSPORT_HEADERS: [&str; 5] =
    ["accept", "content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id"];

/// What holds for all servers.
#[derive(Clone, Debug)]
pub struct DownstreamOptions {
    /// When a server that died is started again.
    pub restart: RestartPolicy,
    /// Whether calls with raw bodies go past rmcp.
    pub passthrough: bool,
}

impl Default for DownstreamOptions {
    fn default() -> DownstreamOptions {
        DownstreamOptions { restart: RestartPolicy::default(), passthrough: true }
    }
}

/// One real server.
#[derive(Clone)]
pub struct ServerConfig {
    /// How it is reached.
    pub transport: TransportConfig,
    /// Left out of everything.
    pub disabled: bool,
    /// Started with the proxy; otherwise when it is first needed.
    pub eager: bool,
    /// The limit of one call, in total: progress doesn't extend it.
    pub timeout: Duration,
    /// The limit of starting it, the handshake and its first list of tools.
    pub startup_timeout: Duration,
    /// Values that must not appear in messages and logs.
    pub(super) secrets: Vec<String>,
}

/// How a server is reached.
#[derive(Clone)]
pub enum TransportConfig {
    /// A program of ours, spoken to over its standard input and output.
    Stdio {
        /// The program: a path, or a name in `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables added to the few that every server gets.
        env: BTreeMap<String, String>,
        /// Where it starts.
        cwd: Option<PathBuf>,
    },
    /// Somebody's streamable HTTP endpoint.
    Http {
        /// The endpoint.
        url: url::Url,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
    },
}

/// What `parse_servers` found.
#[derive(Debug, Default)]
pub struct ParsedServers {
    /// All entries, the disabled ones too.
    pub servers: BTreeMap<String, ServerConfig>,
    /// What was ignored, for the log.
    pub warnings: Vec<String>,
}

/// Everything that is wrong with the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<String>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigErrors {}

// By hand, because environment and headers hold secrets.
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

/// Reads the object under `mcpServers`. `variable` looks up environment variables.
pub fn parse_servers(
    entries: &Value,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<ParsedServers, ConfigErrors> {
    let Value::Object(entries) = entries else {
        return Err(ConfigErrors(vec![format!(
            "mcpServers must be an object of servers by name, but is {}",
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
                "mcpServers: {:?} can't be a server's name: give letters, digits, _ and -, not starting with a \
                 digit or -, at most 63",
                self.server
            ));
        } else if self.server == RESERVED_NAME {
            self.errors.push(format!("mcpServers: the name {RESERVED_NAME:?} is taken by PML itself"));
        }
        let Value::Object(entry) = entry else {
            self.errors.push(format!(
                "mcpServers.{}: must be an object, but is {}",
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
        // Long ones first, so that no rest of one is left when it contains another.
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
                self.error("type", "the old SSE transport isn't supported: give the server's streamable HTTP URL and \"http\"");
                return None;
            }
            Some(other) => {
                self.error("type", format!("{other:?} isn't known: give \"stdio\" or \"http\""));
                return None;
            }
        };
        let mut expanded = |reader: &mut Self, field: &str, text: &str, secret: bool| {
            reader.expanded(field, text, secret, disabled, secrets)
        };
        match (command, url, declared_http) {
            (Some(_), Some(_), None) => {
                self.error("command", "there is a \"url\" too: give one of them");
                None
            }
            (None, None, None) => {
                self.errors.push(format!(
                    "mcpServers.{}: give \"command\" (a program) or \"url\" (an HTTP server)",
                    self.server
                ));
                None
            }
            (None, _, Some(false)) => {
                self.error("command", "missing: the program to start");
                None
            }
            (_, None, Some(true)) => {
                self.error("url", "missing: where the server is");
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
                            self.error("env", format!("{key:?} can't be a variable's name"));
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
                        self.error("url", format!("isn't a URL: {error}"));
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
            self.error(field, "isn't a header's name");
            return None;
        };
        if TRANSPORT_HEADERS.contains(&parsed.as_str()) {
            self.error(field, "is written by the transport itself");
            return None;
        }
        if HeaderValue::try_from(value).is_err() {
            self.error(field, "has characters that a header can't hold");
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
                // A header is often "Bearer <secret>": its last word is what must not be seen.
                let last_word = text.rsplit(' ').next().unwrap_or_default().to_owned();
                secrets.extend(
                    values.into_iter().chain(secret.then_some(last_word)).filter(|value| value.len() >= 4),
                );
                Some(text)
            }
            // What a disabled server needs may be missing.
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
                "mcpServers.a.command: must be a string, but is a list",
                "mcpServers.a: give \"command\" (a program) or \"url\" (an HTTP server)",
                "mcpServers.b.disabled: must be true or false, but is a string",
                "mcpServers.b.timeout: must be a number of seconds, but is a string",
                "mcpServers.b.args: must be a list of strings, but is a string",
                "mcpServers.b.env.PORT: must be a string, but is a number",
                "mcpServers.c.url: must start with http:// or https:// and name a host",
                "mcpServers.d.env.KEY: the environment variable MISSING isn't set: set it, or give a default as \
                 ${MISSING:-default}",
                "mcpServers.e.command: there is a \"url\" too: give one of them",
                "mcpServers.f: give \"command\" (a program) or \"url\" (an HTTP server)",
                "mcpServers.g.type: the old SSE transport isn't supported: give the server's streamable HTTP URL and \
                 \"http\"",
                "mcpServers.h: must be an object, but is a number",
                "mcpServers.i.timeout: must be more than 0 and at most 86400 seconds",
                "mcpServers: \"1 j\" can't be a server's name: give letters, digits, _ and -, not starting with a digit \
                 or -, at most 63",
                "mcpServers: the name \"pml-capabilities\" is taken by PML itself",
                "mcpServers.k.headers.Accept: is written by the transport itself",
                "mcpServers.k.headers.a b: isn't a header's name",
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
        assert_eq!(errors(json!([])), ["mcpServers must be an object of servers by name, but is a list"]);
    }
}
