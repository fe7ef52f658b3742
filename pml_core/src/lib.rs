//! The rules of PML, free of I/O: what a name is, what a version specifier means, what makes two pieces of code the same.

#![forbid(unsafe_code)]

pub mod canonical;
pub mod compile;
pub mod diff;
pub mod error;
pub mod fqdn;
pub mod glob;
pub mod name;
pub mod namespace;
pub mod nearest;
pub mod spec;
pub mod version;

pub use error::{Error, Result};
