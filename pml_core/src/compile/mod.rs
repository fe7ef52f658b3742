//! The compiler: from an agent's TypeScript to everything the registry keeps about it.

mod bindings;
mod depth;
mod edits;
mod enums;
mod error;
mod executable;
mod link;
mod names;
mod parse;
mod references;
mod stack;
mod strip;
mod structure;
mod value;

use std::collections::HashMap;

pub use depth::MAX_DEPTH;
pub use error::{CompileError, ErrorKind, line_and_column};
pub use link::Lookup;
pub use parse::MAX_CODE_BYTES;
pub use references::{Reference, References, Unresolved};
pub use structure::{ArgumentValue, Arguments, Coverage, Edge, EdgeKind, Node, Structure};

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

/// What the caller knows when it compiles.
#[derive(Debug, Clone, Default)]
pub struct CompileOptions {
    /// The names in the code that are capabilities, and their FQDNs.
    pub lookup: Lookup,
}

/// All that one parse of the code gives.
#[derive(Debug, Clone)]
pub struct Compiled {
    pub references: References,
    /// The code with FQDNs in the place of names.
    pub linked: String,
    pub structure: Structure,
    /// JavaScript that reports its path: the body of an async function, line by line the code it was made from.
    pub executable: String,
}

/// Compiles code, in one parse.
pub fn compile(code: &str, options: &CompileOptions) -> Result<Compiled, CompileError> {
    on_own_stack(|| {
        let parsed = parse::parse(code)?;
        let bindings = Bindings::of(&parsed);
        let references = References::of(&parsed, &bindings);
        let (structure, probes) = structure::build(&parsed, &bindings, &references, &options.lookup);
        let links = link::link_edits(code, &references, &options.lookup);
        let executable = executable::executable(&parsed, &links, &structure, &probes)?;
        Ok(Compiled { linked: links.apply(code), references, structure, executable })
    })
}

#[cfg(test)]
mod link_tests;
