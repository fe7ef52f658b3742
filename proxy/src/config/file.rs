//! The configuration file: JSON, so that an `mcpServers` block can be pasted into it as it is.

use std::{env, fs, path::PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::ConfigError;
use crate::cli::{Layer, LogFormat};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileConfig {
    #[serde(default)]
    pub database: FileDatabase,
    #[serde(default)]
    pub scope: FileScope,
    #[serde(default)]
    pub http: FileHttp,
    #[serde(default)]
    pub worker: FileWorker,
    #[serde(default)]
    pub limits: FileLimits,
    #[serde(default)]
    pub log: FileLog,
    #[serde(rename = "mcpServers")]
    pub servers: Option<Value>,
    pub mcp_servers_file: Option<PathBuf>,
    pub passthrough: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileDatabase {
    pub url: Option<String>,
    pub listen_url: Option<String>,
    pub connections: Option<usize>,
    pub patience_seconds: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileScope {
    pub org: Option<String>,
    pub project: Option<String>,
    pub actor: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileHttp {
    pub bind: Option<std::net::SocketAddr>,
    pub require_token: Option<bool>,
    pub allowed_hosts: Option<Vec<String>>,
    pub allowed_origins: Option<Vec<String>>,
    pub max_body_bytes: Option<usize>,
    pub requests_per_second: Option<u32>,
    pub concurrency: Option<usize>,
    pub drain_seconds: Option<f64>,
    pub max_connections: Option<usize>,
    pub max_connections_per_address: Option<usize>,
    pub header_timeout: Option<f64>,
    pub body_timeout: Option<f64>,
    pub body_rate: Option<u64>,
    pub idle_timeout: Option<f64>,
    pub send_timeout: Option<f64>,
    pub trusted_proxies: Option<Vec<String>>,
    #[serde(default)]
    pub tls: FileTls,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileTls {
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileWorker {
    pub program: Option<PathBuf>,
    pub slots: Option<usize>,
    pub reserve: Option<usize>,
    pub spare: Option<usize>,
    pub queue: Option<usize>,
    pub queue_per_tenant: Option<usize>,
    pub queue_bytes: Option<usize>,
    pub queue_bytes_per_tenant: Option<usize>,
    pub runs_per_process: Option<u32>,
    pub deepest: Option<u32>,
    pub allow_missing: Option<Vec<Layer>>,
    pub run_seconds: Option<f64>,
    pub cpu_seconds: Option<f64>,
    pub memory_mib: Option<u64>,
    pub output_mib: Option<u64>,
    pub calls: Option<u64>,
    pub calls_in_flight: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileLimits {
    pub runs: Option<usize>,
    pub runs_per_minute: Option<u32>,
    pub cpu_seconds_per_minute: Option<f64>,
    pub result_mib_per_minute: Option<f64>,
    pub stored_rows: Option<u64>,
    pub questions: Option<usize>,
    pub organisation: Option<usize>,
    pub absent_seconds: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileLog {
    pub format: Option<LogFormat>,
    pub level: Option<String>,
}

/// A file of its own with servers: other programs' files have more in them, which is left alone.
#[derive(Debug, Deserialize)]
struct ServersFile {
    #[serde(rename = "mcpServers")]
    servers: Value,
}

impl FileConfig {
    /// Reads `path`, or the default file if there is one.
    pub(super) fn read(path: Option<PathBuf>) -> Result<FileConfig, ConfigError> {
        match path.or_else(|| default_path().filter(|path| path.exists())) {
            Some(path) => read_json(path),
            None => Ok(FileConfig::default()),
        }
    }
}

pub(super) fn read_servers(path: PathBuf) -> Result<Value, ConfigError> {
    Ok(read_json::<ServersFile>(path)?.servers)
}

fn default_path() -> Option<PathBuf> {
    let folder = env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(folder.join("pml/config.json"))
}

fn read_json<T: for<'de> Deserialize<'de>>(path: PathBuf) -> Result<T, ConfigError> {
    let text =
        fs::read_to_string(&path).map_err(|source| ConfigError::Unreadable { path: path.clone(), source })?;
    // Serde would take a list for the fields in their order.
    if text.trim_start().starts_with('[') {
        return Err(ConfigError::NotAnObject { path });
    }
    serde_json::from_str(&text).map_err(|source| ConfigError::Malformed { path, source })
}
