//! MCP in front, SQL behind: the proxy speaks MCP, runs code in the sandbox, and asks Postgres.

pub mod downstream;
