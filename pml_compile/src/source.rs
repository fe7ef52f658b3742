//! Parsed code: one parse, from which everything else is derived.

use std::collections::HashMap;

use serde_json::{Value as Json, json};

use super::bindings::Bindings;
use super::error::CompileError;
use super::link::{Links, Lookup};
use super::parameters::Called;
use super::parse::Parsed;
use super::references::References;
use super::strip::strip;
use super::{
    CompileOptions, Compiled, Lifted, early_errors, executable, interrupt, lift, output, parameters,
    positions, structure,
};
use crate::canonical::canonical_hash;

/// Code that parses. The caller keeps it while it looks up the names in [`Source::references`], so that nothing is parsed
/// twice:
///
/// ```
/// use pml_compile::{CompileOptions, Lookup, Source};
/// let source = Source::parse("return await mcp.fs.readJson({ path: args.path })")?;
/// assert_eq!(source.references().names(), ["fs:readJson", "fs:read_json"]);
/// let lookup = Lookup::from([("fs:read_json".into(), "local.default.fs.read_json.a7f3".into())]);
/// let compiled = source.compile(&CompileOptions { lookup, ..CompileOptions::default() })?;
/// assert_eq!(compiled.linked_hash, pml_compile::canonical::code_hash(&compiled.linked)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Source<'a> {
    parsed: Parsed<'a>,
    bindings: Bindings,
    references: References,
}

impl<'a> Source<'a> {
    pub fn parse(code: &'a str) -> Result<Self, CompileError> {
        let parsed = Parsed::of(code)?;
        let (bindings, references) = parsed.with_stack(|| {
            let bindings = Bindings::of(&parsed);
            interrupt::check()?;
            let references = References::of(&parsed, &bindings);
            interrupt::check()?;
            Ok((bindings, references))
        })?;
        Ok(Self { parsed, bindings, references })
    }

    /// Every reference to a possible capability or tool, and what can't be resolved statically.
    pub fn references(&self) -> &References {
        &self.references
    }

    /// The code with each reference that `lookup` contains replaced by its FQDN. Everything else stays the same to the byte.
    pub fn link(&self, lookup: &Lookup) -> String {
        Links::to_fqdns(self.parsed.code, &self.references, lookup).edits().apply(self.parsed.code)
    }

    /// The reverse of [`Source::link`]: FQDNs are replaced by their current names (`names`: FQDN → name).
    pub fn display(&self, names: &HashMap<String, String>) -> String {
        Links::to_names(self.parsed.code, &self.references, names).edits().apply(self.parsed.code)
    }

    /// The JSON Schema (2020-12) of `args`, inferred from the code.
    pub fn infer_parameters(&self) -> Json {
        let (lookup, schemas) = (Lookup::new(), HashMap::new());
        let called = Called { references: &self.references, lookup: &lookup, schemas: &schemas };
        self.parsed.with_stack(|| json!(parameters::infer(&self.parsed, &self.bindings, &called)))
    }

    /// The code with literals that look like secrets or settings turned into parameters.
    pub fn lift_literals(&self) -> Lifted {
        self.parsed.with_stack(|| lift::lift(&self.parsed, &self.bindings))
    }

    /// The canonical hash of what [`Source::link`] returns, without parsing that.
    pub fn linked_hash(&self, lookup: &Lookup) -> String {
        let links = Links::to_fqdns(self.parsed.code, &self.references, lookup);
        self.parsed.with_stack(|| canonical_hash(&self.parsed, &links))
    }

    /// The code as JavaScript, without links and probes.
    pub fn without_types(&self) -> Result<String, CompileError> {
        self.parsed.with_stack(|| Ok(strip(&self.parsed)?.edits.apply(self.parsed.code)))
    }

    pub fn compile(self, options: &CompileOptions) -> Result<Compiled, CompileError> {
        let Self { parsed, bindings, references } = self;
        parsed.with_stack(|| {
            early_errors::check(&parsed)?;
            let (mut structure, probes) = structure::build(&parsed, &bindings, &references, &options.lookup)?;
            interrupt::check()?;
            let links = Links::to_fqdns(parsed.code, &references, &options.lookup);
            let edits = links.edits();
            let linked = edits.apply(parsed.code);
            let positions = positions::positions(&parsed, &bindings);
            let executable = executable::executable(&parsed, edits, &structure, &probes, positions)?;
            interrupt::check()?;
            let linked_hash = canonical_hash(&parsed, &links);
            interrupt::check()?;
            structure.add_provides(&options.schemas);
            interrupt::check()?;
            let called =
                Called { references: &references, lookup: &options.lookup, schemas: &options.schemas };
            let parameters = parameters::infer(&parsed, &bindings, &called);
            interrupt::check()?;
            let output = output::infer(&parsed, &bindings, &references, &options.lookup, &options.schemas);
            drop(links);
            Ok(Compiled { references, linked, linked_hash, structure, parameters, output, executable })
        })
    }
}
