//! The rules of PML as pure functions: names, version specifiers, arguments. No I/O.

#![forbid(unsafe_code)]

pub mod arguments;
pub mod diff;
pub mod error;
pub mod fqdn;
pub mod glob;
pub mod hash;
pub mod name;
pub mod namespace;
pub mod nearest;
pub mod outcome;
pub mod prompt_name;
pub mod server_name;
pub mod spec;
pub mod tool_name;
pub mod version;

pub use error::{Error, Result};
