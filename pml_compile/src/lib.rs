//! The compiler, without I/O: from an agent's TypeScript to everything that the registry stores about it. It links SWC, so
//! the extension depends on it and the proxy doesn't.

#![forbid(unsafe_code)]

mod bindings;
mod blame;
pub mod canonical;
mod contains;
mod depth;
mod early_errors;
mod edits;
mod enums;
mod error;
mod executable;
mod generate;
mod interrupt;
mod lift;
mod link;
mod names;
mod output;
mod parameters;
mod parse;
mod pauses;
mod positions;
mod provides;
mod references;
mod source;
mod stack;
mod strip;
mod structure;
mod value;

use std::collections::HashMap;

pub use depth::MAX_DEPTH;
pub use error::{CompileError, ErrorKind, line_and_column};
pub use generate::{Dag, DagTask, GenerateError, Pipeline, PipelineSource, dag_code, pipeline, tool_code};
pub use interrupt::interruptible;
pub use lift::{Lifted, LiftedKind, LiftedLiteral};
pub use link::Lookup;
pub use names::snake_case;
pub use output::Output;
pub use parameters::Parameters;
pub use parse::{MAX_CODE_BYTES, parses};
pub use provides::{
    FieldMapping, ProvidesEdge, ToolSchema, ToolsByInput, coverage, field_mapping, provides_edge,
};
pub use references::{Reference, References, Unresolved};
pub use source::Source;
pub use structure::{ArgumentValue, Arguments, Coverage, Edge, EdgeKind, Node, Structure};

/// Every reference to a possible capability or tool, and what can't be resolved statically.
pub fn references(code: &str) -> Result<References, CompileError> {
    Ok(Source::parse(code)?.references().clone())
}

/// The code with each reference that `lookup` contains replaced by its FQDN. Everything else stays the same to the byte.
pub fn link(code: &str, lookup: &Lookup) -> Result<String, CompileError> {
    Ok(Source::parse(code)?.link(lookup))
}

/// The reverse of [`link`]: FQDNs are replaced by their current names (`names`: FQDN → name).
pub fn display(code: &str, names: &HashMap<String, String>) -> Result<String, CompileError> {
    Ok(Source::parse(code)?.display(names))
}

/// The JSON Schema (2020-12) of `args`, inferred from the code.
pub fn infer_parameters(code: &str) -> Result<serde_json::Value, CompileError> {
    Ok(Source::parse(code)?.infer_parameters())
}

/// The code with literals that look like secrets or settings turned into parameters.
pub fn lift_literals(code: &str) -> Result<Lifted, CompileError> {
    Ok(Source::parse(code)?.lift_literals())
}

/// The code as JavaScript, without links and probes.
pub fn without_types(code: &str) -> Result<String, CompileError> {
    Source::parse(code)?.without_types()
}

/// What the caller knows about the names in the code.
#[derive(Debug, Clone, Default)]
pub struct CompileOptions {
    /// The names in the code that are capabilities, and their FQDNs.
    pub lookup: Lookup,
    /// The schemas of tools and capabilities that the code may call, by name or FQDN.
    pub schemas: HashMap<String, ToolSchema>,
}

/// Everything that is derived from the code.
#[derive(Debug, Clone)]
pub struct Compiled {
    pub references: References,
    /// The code with names replaced by FQDNs.
    pub linked: String,
    /// The canonical hash of `linked`.
    pub linked_hash: String,
    pub structure: Structure,
    /// The JSON Schema of `args`, inferred from the code.
    pub parameters: Parameters,
    /// The JSON Schema of what the code returns, if it can be inferred.
    pub output: Option<Output>,
    /// JavaScript that reports its path: the body of an async function, with the same line numbers as the code.
    pub executable: String,
}

/// Compiles code, in one parse.
pub fn compile(code: &str, options: &CompileOptions) -> Result<Compiled, CompileError> {
    Source::parse(code)?.compile(options)
}

#[cfg(test)]
mod growth_tests;
#[cfg(test)]
mod link_tests;
