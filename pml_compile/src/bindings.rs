//! Name resolution: which declaration each name refers to, where `mcp`, `capabilities` or `args` is shadowed, and the
//! initial value of each variable that is never reassigned.

mod binder;
mod patterns;

use std::cell::Cell;

use swc_atoms::Atom;
use swc_common::{BytePos, Span};

use super::parse::Parsed;
use super::value::{Chain, Draft, Root, Step, select};
use binder::Binder;
pub(crate) use patterns::each_name;

pub(crate) type BindingId = usize;

/// Aliases of aliases are followed this far; a longer chain is a cycle or not worth it.
const MAX_ALIASES: usize = 16;
/// Longer chains of fields are not resolved through variables, since each variable could add to the one before.
const MAX_STEPS: usize = 32;
/// Larger values aren't kept: each could contain the one before it twice.
const MAX_VALUE: usize = 256;
/// Once this much was copied, variables are no longer replaced by objects, arrays and templates.
const MAX_COPIED: usize = 100_000;

#[derive(Debug, Default)]
struct Binding {
    reassigned: bool,
    value: Option<Draft>,
    /// The global that the value starts from.
    global_root: Option<Atom>,
}

#[derive(Debug, Default)]
pub(crate) struct Bindings {
    /// The binding of every resolved name, by the name's position; declarations included.
    by_position: ByPosition,
    list: Vec<Binding>,
    shadowed: Shadowed,
    /// The total size of values copied to where variables are used.
    copied: Cell<usize>,
}

/// A slot for every two bytes of the code, since a lookup happens for every name and must be cheap. No two names start at
/// neighbouring bytes.
#[derive(Debug, Default)]
struct ByPosition {
    /// The binding plus one; 0 where there is none.
    numbers: Vec<u32>,
}

impl ByPosition {
    fn of(code: &str) -> Self {
        Self { numbers: vec![0; code.len() / 2 + 1] }
    }

    fn insert(&mut self, at: BytePos, binding: BindingId) {
        if let Some(number) = self.numbers.get_mut(at.0 as usize / 2) {
            *number = binding as u32 + 1;
        }
    }

    fn get(&self, at: BytePos) -> Option<BindingId> {
        let number = *self.numbers.get(at.0 as usize / 2)?;
        (number > 0).then(|| number as usize - 1)
    }
}

/// The scopes that redeclare a name given to the code; finally sorted, without scopes nested in others.
#[derive(Debug, Default)]
struct Shadowed {
    mcp: Vec<Span>,
    capabilities: Vec<Span>,
    args: Vec<Span>,
}

impl Shadowed {
    fn scopes(&mut self, name: &str) -> Option<&mut Vec<Span>> {
        match name {
            "mcp" => Some(&mut self.mcp),
            "capabilities" => Some(&mut self.capabilities),
            "args" => Some(&mut self.args),
            _ => None,
        }
    }

    fn finish(&mut self) {
        for scopes in [&mut self.mcp, &mut self.capabilities, &mut self.args] {
            scopes.sort_unstable_by_key(|scope| (scope.lo, std::cmp::Reverse(scope.hi)));
            // Scopes are disjoint or nested.
            scopes.dedup_by(|inner, outer| inner.hi <= outer.hi);
        }
    }
}

impl Bindings {
    pub(crate) fn of(parsed: &Parsed<'_>) -> Self {
        let mut found = Binder::bind(parsed);
        found.shadowed.finish();
        for binding in 0..found.list.len() {
            found.list[binding].global_root = found.find_global_root(binding).cloned();
        }
        found
    }

    pub(crate) fn binding_at(&self, name: Span) -> Option<BindingId> {
        self.by_position.get(name.lo)
    }

    /// Whether `name` is shadowed at this position.
    pub(crate) fn is_shadowed(&self, name: &str, at: Span) -> bool {
        let scopes = match name {
            "mcp" => &self.shadowed.mcp,
            "capabilities" => &self.shadowed.capabilities,
            _ => &self.shadowed.args,
        };
        let next = scopes.partition_point(|scope| scope.lo <= at.lo);
        next > 0 && at.hi <= scopes[next - 1].hi
    }

    /// The value of a variable that is never reassigned.
    pub(crate) fn value(&self, binding: BindingId) -> Option<&Draft> {
        self.list
            .get(binding)
            .filter(|binding| !binding.reassigned)
            .and_then(|binding| binding.value.as_ref())
    }

    pub(crate) fn is_reassigned(&self, binding: BindingId) -> bool {
        self.list.get(binding).is_none_or(|binding| binding.reassigned)
    }

    /// The global that a variable's value starts from.
    pub(crate) fn global_root(&self, binding: BindingId) -> Option<&Atom> {
        self.list.get(binding)?.global_root.as_ref()
    }

    fn find_global_root(&self, binding: BindingId) -> Option<&Atom> {
        let mut binding = binding;
        for _ in 0..MAX_ALIASES {
            match self.value(binding)? {
                Draft::Chain(Chain { root: Root::Global(name), .. }) => return Some(name),
                Draft::Chain(Chain { root: Root::Local(next), .. }) => binding = *next,
                _ => return None,
            }
        }
        None
    }

    /// Replaces a chain's variable by its value, as far as that is known.
    pub(crate) fn follow(&self, chain: Chain) -> Draft {
        let mut chain = chain;
        for _ in 0..MAX_ALIASES {
            let Root::Local(binding) = chain.root else { break };
            match self.value(binding) {
                Some(Draft::Chain(given)) if given.steps.len() + chain.steps.len() > MAX_STEPS => break,
                Some(Draft::Chain(given)) => {
                    let mut steps = given.steps.clone();
                    chain.inherited += steps.len();
                    steps.append(&mut chain.steps);
                    chain = Chain { root: given.root.clone(), steps, ..chain };
                }
                Some(other) => return self.copy(other, &chain.steps).unwrap_or(Draft::Chain(chain)),
                None => break,
            }
        }
        Draft::Chain(chain)
    }

    /// The part of a value that fields select, unless too much was copied already.
    fn copy(&self, value: &Draft, steps: &[Step]) -> Option<Draft> {
        let selected = select(value, steps)?;
        let copied = self.copied.get() + selected.size();
        (copied <= MAX_COPIED).then(|| {
            self.copied.set(copied);
            selected
        })
    }

    /// Like [`Bindings::follow`], for chains only.
    pub(crate) fn follow_chain(&self, chain: Chain) -> Option<Chain> {
        match self.follow(chain) {
            Draft::Chain(chain) => Some(chain),
            _ => None,
        }
    }
}
