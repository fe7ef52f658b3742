//! The configuration file: JSON, so that an `mcpServers` block can be pasted into it as it is.

use std::{env, fs, path::PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::{ConfigError, Settings};

/// A file of its own with servers: other programs' files have more in them, which is left alone.
#[derive(Debug, Deserialize)]
struct ServersFile {
    #[serde(rename = "mcpServers")]
    servers: Value,
}

/// Reads `path`, or the default file if there is one; what it doesn't say has its default.
pub(super) fn read(path: Option<PathBuf>) -> Result<Settings, ConfigError> {
    match path.or_else(|| default_path().filter(|path| path.exists())) {
        Some(path) => read_json(path),
        None => Ok(Settings::default()),
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
