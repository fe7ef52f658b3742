//! Turns the builder's result into the structure: ids in source order, expanded edges, arguments with node ids.

use rustc_hash::FxHashSet;
use swc_atoms::Atom;
use swc_common::Span;

use super::arguments::arguments;
use super::build::{Builder, Content, MAX_EDGES, STEPS_BETWEEN_QUESTIONS};
use super::frontier::{ENTRY, End, Way};
use super::probe::NodeIndex;
use super::{Arguments, Edge, EdgeKind, Node, Probe, Structure};
use crate::error::CompileError;
use crate::interrupt;
use crate::link::Lookup;
use crate::references::Reference;
use crate::value::draft_of;

/// How much of a condition or expression the structure shows.
const MAX_TEXT_CHARS: usize = 1000;

impl Builder<'_> {
    pub(super) fn finish(mut self, lookup: &Lookup) -> Result<(Structure, Vec<Probe>), CompileError> {
        if let Some(error) = self.stopped.take() {
            return Err(error);
        }
        let mut order: Vec<NodeIndex> = (0..self.nodes.len()).collect();
        order.sort_by_key(|&node| self.nodes[node].at);
        let mut place = vec![0; order.len()];
        let mut ids = vec![Atom::default(); order.len()];
        let mut counts = [0_u32; 5];
        for (index, &node) in order.iter().enumerate() {
            let (letter, count) = match self.nodes[node].content {
                Content::Call { .. } => (b'n', &mut counts[0]),
                Content::Decision { .. } => (b'd', &mut counts[1]),
                Content::Fork => (b'f', &mut counts[2]),
                Content::Join => (b'j', &mut counts[3]),
                Content::Loop => (b'l', &mut counts[4]),
            };
            *count += 1;
            ids[node] = id(letter, *count);
            place[node] = index;
        }
        let edges = self.finished_edges(&ids)?;
        let id_of_call = |call: Span| self.node_of_call(call).map(|node| ids[node].as_str());
        let mut all_arguments = Vec::with_capacity(order.len());
        for (index, &node) in order.iter().enumerate() {
            if index % STEPS_BETWEEN_QUESTIONS == STEPS_BETWEEN_QUESTIONS - 1 {
                interrupt::check()?;
            }
            all_arguments.push(match self.nodes[node].content {
                Content::Call { argument: Some(argument), .. } => {
                    arguments(self.parsed, draft_of(self.bindings, argument), &id_of_call)
                }
                _ => Arguments::default(),
            });
        }
        let nodes = order.iter().zip(all_arguments).map(|(&node, arguments)| {
            self.finished_node(&self.nodes[node].content, ids[node].clone(), arguments, lookup)
        });
        let nodes = nodes.collect();
        let mut probes = self.probes;
        for probe in &mut probes {
            probe.node = place[probe.node];
        }
        Ok((Structure { nodes, edges }, probes))
    }

    fn finished_edges(&self, ids: &[Atom]) -> Result<Vec<Edge>, CompileError> {
        let mut edges = Vec::with_capacity(self.edges.len());
        let mut seen = FxHashSet::with_capacity_and_hasher(self.edges.len(), Default::default());
        let mut shared = FxHashSet::default();
        let mut work = 0;
        for (from, to) in &self.edges {
            // A function with many exits leads to the same node however often it is called.
            if from.address().is_some_and(|address| !shared.insert((address, *to))) {
                continue;
            }
            work += from.len();
            for end in from.iter().filter(|end| end.node != ENTRY && seen.insert((*end, *to))) {
                edges.push(self.finished_edge(end, &ids[end.node], &ids[*to]));
            }
            if edges.len() > MAX_EDGES || work > 16 * MAX_EDGES {
                return Err(self.too_many_ways(Some(*to)));
            }
        }
        Ok(edges)
    }

    fn finished_edge(&self, end: End, from: &Atom, to: &Atom) -> Edge {
        let (kind, outcome) = match end.way {
            Way::On => (EdgeKind::Sequence, None),
            Way::Contains => (EdgeKind::Contains, None),
            Way::True => (EdgeKind::Conditional, Some("true")),
            Way::False => (EdgeKind::Conditional, Some("false")),
            Way::Catch => (EdgeKind::Conditional, Some("catch")),
            Way::Default => (EdgeKind::Conditional, Some("default")),
            Way::Case(label) => (EdgeKind::Conditional, self.labels.get(label).map(String::as_str)),
        };
        Edge { from: from.clone(), to: to.clone(), kind, outcome: outcome.map(Atom::from), coverage: None }
    }

    fn finished_node(&self, content: &Content<'_>, id: Atom, arguments: Arguments, lookup: &Lookup) -> Node {
        match content {
            Content::Decision { condition } => Node::Decision { id, condition: shortened(condition) },
            Content::Fork => Node::Fork { id },
            Content::Join => Node::Join { id },
            Content::Loop => Node::Loop { id },
            Content::Call { reference, .. } => {
                let reference: &Reference = &self.references.found[*reference];
                let name = || reference.candidates.first().cloned().unwrap_or_default();
                match reference.target(lookup) {
                    Some(fqdn) => {
                        let version = reference.version.clone();
                        Node::Capability { id, capability_id: fqdn.to_owned(), version, arguments }
                    }
                    None if reference.capability_only => {
                        let version = reference.version.clone();
                        Node::Capability { id, capability_id: name(), version, arguments }
                    }
                    None => Node::Task { id, tool: name(), arguments },
                }
            }
        }
    }
}

/// The letter and the number; formatted by hand, as there is one for every call and `format!` takes ten times as long.
fn id(letter: u8, count: u32) -> Atom {
    let mut text = [letter; 11];
    let mut start = text.len();
    let mut rest = count;
    while rest > 0 {
        start -= 1;
        text[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text[start - 1] = letter;
    Atom::from(str::from_utf8(&text[start - 1..]).unwrap_or_default())
}

/// An excerpt of the code for the structure: excerpts can be nested, so long ones end in `…`.
pub(super) fn shortened(text: &str) -> String {
    if text.len() <= MAX_TEXT_CHARS {
        return text.to_owned();
    }
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => [&text[..end], "…"].concat(),
        None => text.to_owned(),
    }
}
