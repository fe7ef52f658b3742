//! The base of the integration tests: private clusters, a database for each test, MCP clients and servers.

mod cluster;
mod database;
pub mod mcp;
pub mod peers;
mod pooler;
mod relay;
mod run;

pub use cluster::{Cluster, as_postgres, extension_folder, program};
pub use database::{Ask, Database, Notices, failure};
pub use pooler::Pooler;
pub use relay::Relay;
pub use run::Run;
