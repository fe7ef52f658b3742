//! The real MCP servers and clients from npm and PyPI.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use serde_json::{Value, json};

/// Their folder; installs them if they are missing.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/peers");
        let output = Command::new(script).output().expect("scripts/peers can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim())
    })
}

/// One of our programs that use them.
pub fn program(name: &str) -> PathBuf {
    folder().join("npm/programs").join(name)
}

/// A version of Node that supports all of them.
pub fn node() -> PathBuf {
    folder().join("npm/node_modules/.bin/node")
}

/// A command of a package from npm.
pub fn npm(name: &str) -> PathBuf {
    folder().join("npm/node_modules/.bin").join(name)
}

/// The Python in which a version of the SDK is installed.
pub fn python(environment: &str) -> PathBuf {
    folder().join(environment).join("bin/python")
}

/// A port for a server that can't choose one itself. It isn't an ephemeral port: a client that polls one of those may connect
/// to itself, and then the server can't bind it.
pub fn free_port() -> u16 {
    let mut ports = std::iter::repeat_with(|| fastrand::u16(20_000..30_000));
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

/// A file in the usual `mcpServers` form.
pub fn servers_file(folder: &Path, servers: &Value) -> PathBuf {
    let path = folder.join("servers.json");
    std::fs::write(&path, json!({"mcpServers": servers}).to_string()).expect("a file");
    path
}
