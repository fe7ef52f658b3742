//! The configuration file: JSON, so that an `mcpServers` block can be pasted into it.

use std::{env, fs, path::PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::{ConfigError, Settings};

/// A separate file with servers, perhaps another program's: other keys are ignored.
#[derive(Debug, Deserialize)]
struct ServersFile {
    #[serde(rename = "mcpServers")]
    servers: Value,
}

/// Reads `path`, or the default file if it exists. Missing settings have their defaults.
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
    // Serde accepts a list as the fields in order.
    if text.trim_start().starts_with('[') {
        return Err(ConfigError::NotAnObject { path });
    }
    serde_json::from_str(&text).map_err(|source| ConfigError::Malformed { path, source })
}
