//! Builds the structure: visits the code in execution order and keeps the frontier, the nodes that control can come from.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::*;

use super::frontier::{ENTRY, End, Frontier};
use super::probe::{NodeIndex, Site};
use super::{Probe, Structure};
use crate::bindings::{BindingId, Bindings};
use crate::error::{CompileError, ErrorKind};
use crate::interrupt;
use crate::link::Lookup;
use crate::parse::{Parsed, offset};
use crate::references::References;

/// Code with more edges than this is refused: their number can be quadratic.
pub(super) const MAX_EDGES: usize = 200_000;
/// How many steps there are between two checks for an interrupt.
pub(super) const STEPS_BETWEEN_QUESTIONS: usize = 4096;

pub(super) enum Content<'a> {
    Call { reference: usize, argument: Option<&'a Expr> },
    Decision { condition: &'a str },
    Fork,
    Join,
    Loop,
}

pub(super) struct NodeDraft<'a> {
    pub(super) at: BytePos,
    pub(super) content: Content<'a>,
}

/// The body of a function that the code declares.
#[derive(Clone, Copy)]
pub(super) enum Body<'a> {
    Statements(&'a [Stmt]),
    Expression(&'a Expr),
}

/// Where control enters a visited function, and where it leaves it.
struct Walked {
    entries: Vec<NodeIndex>,
    exits: Frontier,
}

enum LocalFunction<'a> {
    Waiting(Body<'a>),
    Walking,
    Walked(Rc<Walked>),
}

/// Where a `break` or `continue` leads.
pub(super) struct Jump {
    pub(super) label: Option<swc_atoms::Atom>,
    pub(super) is_loop: bool,
    pub(super) breaks: Vec<End>,
}

pub(super) struct Builder<'a> {
    pub(super) parsed: &'a Parsed<'a>,
    pub(super) bindings: &'a Bindings,
    pub(super) references: &'a References,
    pub(super) nodes: Vec<NodeDraft<'a>>,
    pub(super) edges: Vec<(Frontier, NodeIndex)>,
    entries: Vec<NodeIndex>,
    pub(super) probes: Vec<Probe>,
    pub(super) frontier: Frontier,
    pub(super) returns: Vec<Vec<End>>,
    pub(super) jumps: Vec<Jump>,
    /// The labels of `switch` cases.
    pub(super) labels: Vec<String>,
    functions: FxHashMap<BindingId, LocalFunction<'a>>,
    declared: Vec<BindingId>,
    /// The node of a reference's call, by the reference's index.
    node_of_reference: Vec<NodeIndex>,
    steps: usize,
    pub(super) stopped: Option<CompileError>,
}

/// A snapshot of the builder, to undo what turned out to contain no call.
pub(super) struct Mark {
    nodes: usize,
    edges: usize,
    entries: usize,
    probes: usize,
    frontier: Frontier,
}

/// The structure, and the probes for the executable; a probe's node is an index into the structure's nodes.
pub(crate) fn build(
    parsed: &Parsed<'_>,
    bindings: &Bindings,
    references: &References,
    lookup: &Lookup,
) -> Result<(Structure, Vec<Probe>), CompileError> {
    let mut builder = Builder {
        parsed,
        bindings,
        references,
        nodes: Vec::with_capacity(32),
        edges: Vec::with_capacity(32),
        entries: Vec::new(),
        probes: Vec::with_capacity(32),
        frontier: Frontier::Nowhere,
        returns: vec![Vec::new()],
        jumps: Vec::new(),
        labels: Vec::new(),
        functions: FxHashMap::default(),
        declared: Vec::new(),
        node_of_reference: vec![ENTRY; references.found.len()],
        steps: 0,
        stopped: None,
    };
    for statement in parsed.statements() {
        builder.declare_function(statement);
    }
    for statement in parsed.statements() {
        builder.statement(statement);
    }
    builder.walk_uncalled_functions();
    builder.finish(lookup)
}

impl<'a> Builder<'a> {
    /// Counts work; true if the visitor should stop.
    pub(super) fn is_stopped(&mut self, work: usize) -> bool {
        let before = self.steps;
        self.steps += work;
        if before / STEPS_BETWEEN_QUESTIONS != self.steps / STEPS_BETWEEN_QUESTIONS && self.stopped.is_none()
        {
            self.stopped = interrupt::check().err();
        }
        self.stopped.is_some()
    }

    /// The code has too many edges.
    pub(super) fn too_many_ways(&self, node: Option<NodeIndex>) -> CompileError {
        let at = node.and_then(|node| self.nodes.get(node)).map_or(0, |node| offset(node.at));
        let message = format!("there are too many paths between the calls (more than {MAX_EDGES})");
        let hint = Some("split it into several capabilities, or into functions with fewer returns");
        CompileError::at(self.parsed.code, at, ErrorKind::TooComplex, message, hint)
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            nodes: self.nodes.len(),
            edges: self.edges.len(),
            entries: self.entries.len(),
            probes: self.probes.len(),
            frontier: self.frontier.clone(),
        }
    }

    /// Whether only `expected` nodes were added since the mark.
    pub(super) fn has_only(&self, mark: &Mark, expected: usize) -> bool {
        self.nodes.len() == mark.nodes + expected
    }

    pub(super) fn undo(&mut self, mark: Mark) {
        self.nodes.truncate(mark.nodes);
        self.edges.truncate(mark.edges);
        self.entries.truncate(mark.entries);
        self.probes.truncate(mark.probes);
        self.frontier = mark.frontier;
    }

    fn add(&mut self, at: BytePos, content: Content<'a>) -> NodeIndex {
        let node = self.nodes.len();
        self.nodes.push(NodeDraft { at, content });
        let before = std::mem::replace(&mut self.frontier, Frontier::One(End::plain(node)));
        self.connect(before, node);
        node
    }

    pub(super) fn probe(&mut self, node: NodeIndex, site: Site) {
        self.probes.push(Probe { node, site });
    }

    fn connect(&mut self, from: Frontier, to: NodeIndex) {
        if from.has_entry() {
            self.entries.push(to);
        }
        if !matches!(from, Frontier::Nowhere | Frontier::One(End { node: ENTRY, .. })) {
            self.edges.push((from, to));
        }
    }

    pub(super) fn decision(&mut self, at: BytePos, condition: &'a str) -> NodeIndex {
        self.add(at, Content::Decision { condition: condition.trim() })
    }

    pub(super) fn fork(&mut self, at: BytePos) -> NodeIndex {
        self.add(at, Content::Fork)
    }

    pub(super) fn join(&mut self, at: BytePos) -> NodeIndex {
        self.add(at, Content::Join)
    }

    pub(super) fn loop_node(&mut self, at: BytePos) -> NodeIndex {
        self.add(at, Content::Loop)
    }

    /// A call of a tool or capability; true if the call is one.
    pub(super) fn reference_call(
        &mut self,
        call: Span,
        callee: &Expr,
        argument: Option<&'a Expr>,
        is_optional_call: bool,
    ) -> bool {
        let Some(&reference) = self.references.by_call.get(&call) else { return false };
        let node = self.add(call.lo, Content::Call { reference, argument });
        self.node_of_reference[reference] = node;
        let short_circuits = holds_optional(callee);
        self.probe(node, Site::Call { callee: callee.span(), short_circuits, is_optional_call });
        true
    }

    /// The node of a call of a tool or capability.
    pub(super) fn node_of_call(&self, call: Span) -> Option<NodeIndex> {
        let reference = *self.references.by_call.get(&call)?;
        Some(self.node_of_reference[reference]).filter(|node| *node != ENTRY)
    }

    pub(super) fn add_ends(&mut self, ends: &[End]) {
        self.frontier.append(ends);
        self.is_stopped(ends.len());
    }

    pub(super) fn declare_function(&mut self, statement: &'a Stmt) {
        if let Stmt::Decl(Decl::Fn(declaration)) = statement
            && let Some(body) = &declaration.function.body
        {
            self.register(&declaration.ident, Body::Statements(&body.stmts));
        }
    }

    pub(super) fn register(&mut self, name: &Ident, body: Body<'a>) {
        if let Some(binding) = self.bindings.binding_at(name.span) {
            self.functions.insert(binding, LocalFunction::Waiting(body));
            self.declared.push(binding);
        }
    }

    /// The function that a name refers to, if the code declares it.
    pub(super) fn local_function(&self, name: &Ident) -> Option<BindingId> {
        self.bindings.binding_at(name.span).filter(|binding| self.functions.contains_key(binding))
    }

    /// Control passes through a function of the code; its nodes belong to the declaration, whoever calls it.
    pub(super) fn call_local(&mut self, function: BindingId) {
        if let Some(LocalFunction::Waiting(body)) = self.functions.get(&function) {
            let body = *body;
            self.functions.insert(function, LocalFunction::Walking);
            let walked = Rc::new(self.walk_body(body));
            self.functions.insert(function, LocalFunction::Walked(walked));
        }
        if let Some(LocalFunction::Walked(walked)) = self.functions.get(&function) {
            let walked = Rc::clone(walked);
            self.pass_through(&walked);
        }
    }

    /// A function expression that runs where it is written.
    pub(super) fn run_here(&mut self, body: Body<'a>) {
        let walked = self.walk_body(body);
        self.pass_through(&walked);
    }

    fn pass_through(&mut self, function: &Walked) {
        let before = std::mem::take(&mut self.frontier);
        for &entry in &function.entries {
            self.connect(before.clone(), entry);
        }
        let work = if function.exits.has_entry() { before.len() + function.exits.len() } else { 0 };
        self.frontier = function.exits.entered_from(before);
        self.is_stopped(work);
    }

    fn walk_body(&mut self, body: Body<'a>) -> Walked {
        let outer_frontier = std::mem::replace(&mut self.frontier, Frontier::One(End::plain(ENTRY)));
        let outer_entries = std::mem::take(&mut self.entries);
        let outer_jumps = std::mem::take(&mut self.jumps);
        self.returns.push(Vec::new());
        // Functions that call each other nest, however shallow each is.
        let parsed = self.parsed;
        parsed.with_stack(|| match body {
            Body::Statements(statements) => self.block(statements),
            Body::Expression(expr) => self.expr(expr),
        });
        let returned = self.returns.pop().unwrap_or_default();
        self.add_ends(&returned);
        self.jumps = outer_jumps;
        let entries = std::mem::replace(&mut self.entries, outer_entries);
        let exits = std::mem::replace(&mut self.frontier, outer_frontier);
        Walked { entries, exits }
    }

    fn walk_uncalled_functions(&mut self) {
        // Visiting one can declare more.
        let mut next = 0;
        while let Some(&function) = self.declared.get(next) {
            next += 1;
            if matches!(self.functions.get(&function), Some(LocalFunction::Waiting(_))) {
                self.frontier = Frontier::Nowhere;
                self.call_local(function);
            }
        }
    }
}

/// Whether a callee like `mcp.fs?.read` contains a `?.`, so that calling its value must be optional too.
fn holds_optional(callee: &Expr) -> bool {
    let mut expr = callee;
    loop {
        expr = match expr {
            Expr::OptChain(chain) => match &*chain.base {
                _ if chain.optional => return true,
                OptChainBase::Member(member) => &member.obj,
                OptChainBase::Call(call) => &call.callee,
            },
            Expr::Member(member) => &member.obj,
            _ => return false,
        };
    }
}
