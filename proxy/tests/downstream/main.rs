//! Real MCP servers behind the proxy's downstream side, no Postgres.

mod blips;
mod calls;
mod http;
mod orphans;
mod passthrough;
mod peers;
mod servers;
