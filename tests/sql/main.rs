//! Everything that the SQL surface promises, one file for each behaviour.

mod act_as;
mod arguments;
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
mod register_tools;
mod rename;
mod replication;
mod resolve;
mod routing;
mod schema;
mod servers;
mod tenancy;
mod tokens;
mod tool_names;
mod tool_schema;
mod upgrade;
mod versions;
