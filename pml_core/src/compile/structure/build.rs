//! Builds the structure: walks the code in the order it runs and keeps the frontier, the places that control can come from.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};
use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::*;

use super::arguments::{NodeIds, arguments};
use super::probe::{NodeIndex, Site};
use super::{Edge, EdgeKind, Node, Probe, Structure};
use crate::compile::bindings::{BindingId, Bindings};
use crate::compile::link::Lookup;
use crate::compile::parse::Parsed;
use crate::compile::references::{Reference, References};
use crate::compile::value::{Draft, draft_of};

/// Stands for whatever comes before a function that is being walked.
const ENTRY: NodeIndex = NodeIndex::MAX;

/// A place that control comes from: a node, and the outcome that leads on if it is a decision.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct End {
    pub(super) node: NodeIndex,
    pub(super) kind: EdgeKind,
    pub(super) outcome: Option<Cow<'static, str>>,
}

impl End {
    pub(super) fn plain(node: NodeIndex) -> Self {
        Self { node, kind: EdgeKind::Sequence, outcome: None }
    }

    pub(super) fn outcome(node: NodeIndex, outcome: impl Into<Cow<'static, str>>) -> Self {
        Self { node, kind: EdgeKind::Conditional, outcome: Some(outcome.into()) }
    }

    pub(super) fn contains(node: NodeIndex) -> Self {
        Self { node, kind: EdgeKind::Contains, outcome: None }
    }
}

enum Content {
    Call { reference: usize, arguments: Option<Draft> },
    Decision { condition: String },
    Fork,
    Join,
    Loop,
}

struct NodeDraft {
    at: BytePos,
    content: Content,
}

/// The body of a function that the code declares.
#[derive(Clone, Copy)]
pub(super) enum Body<'a> {
    Statements(&'a [Stmt]),
    Expression(&'a Expr),
}

enum LocalFunction<'a> {
    Waiting(Body<'a>),
    Walking,
    Walked { entries: Vec<NodeIndex>, exits: Vec<End> },
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
    nodes: Vec<NodeDraft>,
    edges: Vec<(End, NodeIndex)>,
    entries: Vec<NodeIndex>,
    probes: Vec<Probe>,
    pub(super) frontier: Vec<End>,
    pub(super) returns: Vec<Vec<End>>,
    pub(super) jumps: Vec<Jump>,
    functions: FxHashMap<BindingId, LocalFunction<'a>>,
    declared: Vec<BindingId>,
    by_call: FxHashMap<Span, NodeIndex>,
}

/// How far the builder had come, to undo what turned out to hold no call.
pub(super) struct Mark {
    nodes: usize,
    edges: usize,
    entries: usize,
    probes: usize,
    frontier: Vec<End>,
}

/// The structure, and where the executable has to report; a probe's node is an index into the structure's nodes.
pub(crate) fn build(
    parsed: &Parsed<'_>,
    bindings: &Bindings,
    references: &References,
    lookup: &Lookup,
) -> (Structure, Vec<Probe>) {
    let mut builder = Builder {
        parsed,
        bindings,
        references,
        nodes: Vec::new(),
        edges: Vec::new(),
        entries: Vec::new(),
        probes: Vec::new(),
        frontier: Vec::new(),
        returns: vec![Vec::new()],
        jumps: Vec::new(),
        functions: FxHashMap::default(),
        declared: Vec::new(),
        by_call: FxHashMap::default(),
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
    pub(super) fn mark(&self) -> Mark {
        Mark {
            nodes: self.nodes.len(),
            edges: self.edges.len(),
            entries: self.entries.len(),
            probes: self.probes.len(),
            frontier: self.frontier.clone(),
        }
    }

    /// Whether nothing but `expected` nodes came since the mark.
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

    fn add(&mut self, at: BytePos, content: Content) -> NodeIndex {
        let node = self.nodes.len();
        self.nodes.push(NodeDraft { at, content });
        for end in std::mem::take(&mut self.frontier) {
            self.connect(end, node);
        }
        self.frontier = vec![End::plain(node)];
        node
    }

    pub(super) fn probe(&mut self, node: NodeIndex, site: Site) {
        self.probes.push(Probe { node, site });
    }

    fn connect(&mut self, from: End, to: NodeIndex) {
        if from.node == ENTRY {
            self.entries.push(to);
        } else {
            self.edges.push((from, to));
        }
    }

    pub(super) fn decision(&mut self, at: BytePos, condition: &str) -> NodeIndex {
        self.add(at, Content::Decision { condition: condition.trim().to_owned() })
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
        first: Option<&Expr>,
        is_optional_call: bool,
    ) -> bool {
        let Some(&reference) = self.references.by_call.get(&call) else { return false };
        let arguments = first.map(|argument| draft_of(self.bindings, argument));
        let node = self.add(call.lo, Content::Call { reference, arguments });
        self.by_call.insert(call, node);
        let short_circuits = holds_optional(callee);
        self.probe(node, Site::Call { callee: callee.span(), short_circuits, is_optional_call });
        true
    }

    pub(super) fn add_ends(&mut self, ends: Vec<End>) {
        for end in ends {
            if !self.frontier.contains(&end) {
                self.frontier.push(end);
            }
        }
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

    /// The function that a name means, if the code declares it.
    pub(super) fn local_function(&self, name: &Ident) -> Option<BindingId> {
        self.bindings.binding_at(name.span).filter(|binding| self.functions.contains_key(binding))
    }

    /// Control goes through a function of the code; its nodes stand where it is declared, whoever calls it.
    pub(super) fn call_local(&mut self, function: BindingId) {
        if let Some(LocalFunction::Waiting(body)) = self.functions.get(&function) {
            let body = *body;
            self.functions.insert(function, LocalFunction::Walking);
            let (entries, exits) = self.walk_body(body);
            self.functions.insert(function, LocalFunction::Walked { entries, exits });
        }
        let Some(LocalFunction::Walked { entries, exits }) = self.functions.get(&function) else { return };
        let (entries, exits) = (entries.clone(), exits.clone());
        self.pass_through(&entries, exits);
    }

    /// A function written in the place where it runs.
    pub(super) fn run_here(&mut self, body: Body<'a>) {
        let (entries, exits) = self.walk_body(body);
        self.pass_through(&entries, exits);
    }

    fn pass_through(&mut self, entries: &[NodeIndex], exits: Vec<End>) {
        let before = std::mem::take(&mut self.frontier);
        for &entry in entries {
            for end in &before {
                self.connect(end.clone(), entry);
            }
        }
        for end in exits {
            if end.node == ENTRY {
                self.add_ends(before.clone());
            } else {
                self.add_ends(vec![end]);
            }
        }
    }

    fn walk_body(&mut self, body: Body<'a>) -> (Vec<NodeIndex>, Vec<End>) {
        let outer_frontier = std::mem::replace(&mut self.frontier, vec![End::plain(ENTRY)]);
        let outer_entries = std::mem::take(&mut self.entries);
        let outer_jumps = std::mem::take(&mut self.jumps);
        self.returns.push(Vec::new());
        match body {
            Body::Statements(statements) => self.block(statements),
            Body::Expression(expr) => self.expr(expr),
        }
        let returned = self.returns.pop().unwrap_or_default();
        self.add_ends(returned);
        self.jumps = outer_jumps;
        let entries = std::mem::replace(&mut self.entries, outer_entries);
        let exits = std::mem::replace(&mut self.frontier, outer_frontier);
        (entries, exits)
    }

    fn walk_uncalled_functions(&mut self) {
        // Walking one can declare more.
        let mut next = 0;
        while let Some(&function) = self.declared.get(next) {
            next += 1;
            if matches!(self.functions.get(&function), Some(LocalFunction::Waiting(_))) {
                self.frontier = Vec::new();
                self.call_local(function);
            }
        }
    }

    fn finish(self, lookup: &Lookup) -> (Structure, Vec<Probe>) {
        let mut order: Vec<NodeIndex> = (0..self.nodes.len()).collect();
        order.sort_by_key(|&node| self.nodes[node].at);
        let mut place = vec![0; order.len()];
        let mut ids = vec![String::new(); order.len()];
        let mut counts: FxHashMap<char, usize> = FxHashMap::default();
        for (index, &node) in order.iter().enumerate() {
            let letter = match self.nodes[node].content {
                Content::Call { .. } => 'n',
                Content::Decision { .. } => 'd',
                Content::Fork => 'f',
                Content::Join => 'j',
                Content::Loop => 'l',
            };
            let count = counts.entry(letter).or_default();
            *count += 1;
            ids[node] = format!("{letter}{count}");
            place[node] = index;
        }
        let id_of_call: Box<NodeIds<'_>> =
            Box::new(|call: Span| self.by_call.get(&call).map(|&node| ids[node].as_str()));
        let nodes = order
            .iter()
            .map(|&node| self.finished_node(&self.nodes[node].content, &ids[node], lookup, &*id_of_call))
            .collect();
        let mut seen = FxHashSet::with_capacity_and_hasher(self.edges.len(), Default::default());
        let edges = self.edges.iter().filter(|edge| seen.insert(*edge)).map(|(from, to)| Edge {
            from: ids[from.node].clone(),
            to: ids[*to].clone(),
            kind: from.kind,
            outcome: from.outcome.as_deref().map(str::to_owned),
            coverage: None,
        });
        let edges = edges.collect();
        drop(id_of_call);
        let mut probes = self.probes;
        for probe in &mut probes {
            probe.node = place[probe.node];
        }
        (Structure { nodes, edges }, probes)
    }

    fn finished_node(&self, content: &Content, id: &str, lookup: &Lookup, ids: &NodeIds<'_>) -> Node {
        let id = id.to_owned();
        match content {
            Content::Decision { condition } => Node::Decision { id, condition: condition.clone() },
            Content::Fork => Node::Fork { id },
            Content::Join => Node::Join { id },
            Content::Loop => Node::Loop { id },
            Content::Call { reference, arguments: draft } => {
                let reference: &Reference = &self.references.found[*reference];
                let arguments =
                    draft.as_ref().map(|draft| arguments(self.parsed, draft, ids)).unwrap_or_default();
                let name = reference.candidates.first().cloned().unwrap_or_default();
                match reference.target(lookup) {
                    Some(fqdn) => {
                        let version = reference.version.clone();
                        Node::Capability { id, capability_id: fqdn.to_owned(), version, arguments }
                    }
                    None if reference.capability_only => {
                        let version = reference.version.clone();
                        Node::Capability { id, capability_id: name, version, arguments }
                    }
                    None => Node::Task { id, tool: name, arguments },
                }
            }
        }
    }
}

/// Whether a callee like `mcp.fs?.read` holds a `?.`, so that calling its value must be optional too.
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
