//! What the integration tests stand on: private clusters, and a database of its own for each test.

mod cluster;
mod database;
pub mod mcp;
pub mod peers;
mod pooler;
mod run;

pub use cluster::{Cluster, as_postgres, extension_folder, program};
pub use database::{Ask, Database, Notices, failure};
pub use pooler::Pooler;
pub use run::Run;
