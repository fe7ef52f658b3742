//! The `pml` program: an MCP server for agents, with a sandbox for their code, and a client of downstream MCP servers.
//!
//! It has no rules and no state of its own; both are in Postgres.

pub mod app;
mod backoff;
mod changes;
pub mod cli;
pub mod clients;
pub mod config;
pub mod database;
pub mod doctor;
pub mod downstream;
mod expiry;
pub mod handler;
pub mod http;
mod lifecycle;
pub mod limits;
mod lines;
mod links;
mod list_changes;
pub mod logging;
pub mod manual;
mod memory;
pub mod metrics;
#[cfg(test)]
mod module_cycles;
mod notifications;
mod output;
mod passed_on;
pub mod plan;
mod presence;
mod rebinding;
mod recorder;
mod request_state;
pub mod run;
pub mod scope;
pub mod serve;
mod stdio;
pub mod token_command;
pub mod tokens;
pub mod tools;
mod usage;
mod weight;
