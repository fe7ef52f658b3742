//! Everything that the SQL surface promises, one file for each behaviour.

mod compile;
mod concurrency;
mod delete;
mod documentation;
mod dump;
mod errors;
mod fork;
mod identity;
mod list;
mod lookup;
mod notify;
mod random_walk;
mod rename;
mod replication;
mod resolve;
mod routing;
mod schema;
mod servers;
mod tenancy;
mod tool_schema;
mod upgrade;
mod versions;
