//! A database with the proxy's role, and a folder for downstream servers: their configuration and their files.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::{Proxy, ProxySetup};
use crate::{Database, peers::servers_file};

pub struct Workbench {
    pub database: Database,
    folder: TempDir,
}

impl Workbench {
    #[expect(clippy::new_without_default, reason = "it creates a database")]
    pub fn new() -> Workbench {
        let database = Database::new();
        database.create_role("proxy", &["pml_proxy"]);
        Workbench { database, folder: tempfile::tempdir().expect("a folder") }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A proxy with these servers as `mcpServers`.
    pub fn proxy(&self, servers: &Value) -> Proxy {
        self.proxy_with(servers, &[])
    }

    /// Likewise, with further arguments.
    pub fn proxy_with(&self, servers: &Value, further: &[&str]) -> Proxy {
        let file = servers_file(self.path(), servers);
        let args = ["--mcp-servers", file.to_str().expect("a readable path")];
        let proxy = ProxySetup::new(&self.database).args(&args).args(further).start();
        proxy.is_ready();
        proxy
    }
}
