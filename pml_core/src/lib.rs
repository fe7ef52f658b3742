//! The rules of PML, free of I/O: what a name is, what a version specifier means, which arguments a schema takes.

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
pub mod spec;
pub mod tool_name;
pub mod version;

pub use error::{Error, Result};
