//! The configured servers. How an entry is read is in [`super::entry`].

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    path::PathBuf,
    time::Duration,
};

use pml_core::server_name::server_identifier;
use serde_json::Value;

use super::{
    backoff::RestartPolicy,
    fields::{Reader, kind},
    tool_filter::ToolFilter,
};

/// The default timeout of a call.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
/// The default timeout of a start: long enough for `npx` to download a package.
pub const DEFAULT_STARTUP_TIMEOUT: Duration = Duration::from_secs(60);

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
    /// Its name in the configuration, which may be any text.
    pub configured_name: String,
    pub transport: TransportConfig,
    pub disabled: bool,
    /// Started with the proxy; otherwise on its first use.
    pub eager: bool,
    /// The timeout of a call; progress doesn't extend it.
    pub timeout: Duration,
    /// The timeout of its start, with handshake and first list of tools.
    pub startup_timeout: Duration,
    /// Which of its tools are listed and may be called.
    pub tools: ToolFilter,
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
    /// By their identifiers; including disabled ones.
    pub servers: BTreeMap<String, ServerConfig>,
    /// The entries that can't be used.
    pub left_out: Vec<LeftOut>,
    /// About ignored keys, for the log.
    pub warnings: Vec<String>,
}

/// An entry that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub configured_name: String,
    /// Each names the entry and the field.
    pub problems: Vec<String>,
}

/// What is wrong with `mcpServers`.
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

impl ServerConfig {
    /// What people are shown: the name in the configuration, and the identifier if that is another.
    pub fn shown_as(&self, identifier: &str) -> String {
        if self.configured_name == identifier {
            return identifier.to_owned();
        }
        format!("{} ({identifier})", self.configured_name.replace(char::is_control, "\u{fffd}"))
    }
}

/// Parses the object under `mcpServers`. `variable` looks up environment variables. Only if it isn't an object at all is that
/// an error: an entry that can't be used is left out.
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
    for (name, entry) in entries {
        let mut problems = Vec::new();
        let mut reader = Reader {
            server: name,
            variable: &variable,
            errors: &mut problems,
            warnings: &mut parsed.warnings,
        };
        let config = reader.server(entry);
        if let Some(config) = config {
            match parsed.servers.entry(server_identifier(name).into_owned()) {
                Entry::Vacant(free) => {
                    free.insert(config);
                }
                Entry::Occupied(taken) => problems.push(format!(
                    "mcpServers: {name:?} and {:?} would both be called {}: rename one of them",
                    taken.get().configured_name,
                    taken.key(),
                )),
            }
        }
        if !problems.is_empty() {
            parsed.left_out.push(LeftOut { configured_name: name.clone(), problems });
        }
    }
    Ok(parsed)
}
