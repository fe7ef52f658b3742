//! The compiler: from an agent's TypeScript to everything the registry keeps about it.

mod bindings;
mod depth;
mod edits;
mod error;
mod link;
mod names;
mod parse;
mod references;
mod stack;
mod value;

use std::collections::HashMap;

pub use depth::MAX_DEPTH;
pub use error::{CompileError, ErrorKind, line_and_column};
pub use link::Lookup;
pub use parse::MAX_CODE_BYTES;
pub use references::{Reference, References, Unresolved};

use bindings::Bindings;
use stack::on_own_stack;

/// Every reference to a possible capability or tool, and what can't be resolved statically.
pub fn references(code: &str) -> Result<References, CompileError> {
    on_own_stack(|| {
        let parsed = parse::parse(code)?;
        Ok(References::of(&parsed, &Bindings::of(&parsed)))
    })
}

/// The code with each reference that `lookup` knows replaced by its FQDN. Everything else keeps its bytes.
pub fn link(code: &str, lookup: &Lookup) -> Result<String, CompileError> {
    Ok(link::link_edits(code, &references(code)?, lookup).apply(code))
}

/// The reverse of [`link`]: FQDNs become the names that `names` (FQDN → name) has for them today.
pub fn display(code: &str, names: &HashMap<String, String>) -> Result<String, CompileError> {
    Ok(link::display_edits(code, &references(code)?, names).apply(code))
}

#[cfg(test)]
mod link_tests;
