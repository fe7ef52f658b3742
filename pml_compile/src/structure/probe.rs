//! Probes, by which the running code reports its path: found with the structure, written into the executable later.

use swc_common::Span;

/// The index of a node while the structure is built, and in the structure's nodes once it is.
pub(crate) type NodeIndex = usize;

#[derive(Debug, Clone)]
pub(crate) struct Probe {
    pub(crate) node: NodeIndex,
    pub(crate) site: Site,
}

#[derive(Debug, Clone)]
pub(crate) enum Site {
    /// A call of a tool or capability; `short_circuits` if its callee holds a `?.` of its own.
    Call { callee: Span, short_circuits: bool, is_optional_call: bool },
    /// A condition, or the left side of `&&` and `||`.
    Branch { test: Span },
    /// The left side of `??`.
    Nullish { test: Span },
    /// A statement that is the body of a loop.
    LoopStatement { body: Span, is_block: bool },
    /// The body of a function that is called for each item.
    LoopFunction { body: Span, is_block: bool },
    /// A `case`, from its test (or the word `default`) to the colon.
    Case { before_colon: Span, label: String },
    /// A `switch` without `default`: the position after its discriminant.
    NoDefault { discriminant: Span },
    /// The block of a `catch`.
    Catch { block: Span },
    /// The argument of `Promise.all` and the like.
    Fork { argument: Span },
    /// The call of `Promise.all` and the like.
    Join { call: Span },
}
