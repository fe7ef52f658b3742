//! Turns what the walk found into the structure: ids in source order, edges counted out, arguments with ids in them.

use rustc_hash::FxHashSet;
use swc_common::Span;

use super::arguments::arguments;
use super::build::{Builder, Content, MAX_EDGES, STEPS_BETWEEN_QUESTIONS};
use super::frontier::{ENTRY, End, Way};
use super::probe::NodeIndex;
use super::{Arguments, Edge, EdgeKind, Node, Probe, Structure};
use crate::compile::error::CompileError;
use crate::compile::interrupt;
use crate::compile::link::Lookup;
use crate::compile::references::Reference;
use crate::compile::value::draft_of;

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
        let mut ids = vec![String::new(); order.len()];
        let mut counts = [0_u32; 5];
        for (index, &node) in order.iter().enumerate() {
            let (letter, count) = match self.nodes[node].content {
                Content::Call { .. } => ('n', &mut counts[0]),
                Content::Decision { .. } => ('d', &mut counts[1]),
                Content::Fork => ('f', &mut counts[2]),
                Content::Join => ('j', &mut counts[3]),
                Content::Loop => ('l', &mut counts[4]),
            };
            *count += 1;
            ids[node] = id(letter, *count);
            place[node] = index;
        }
        let edges = self.finished_edges(&ids)?;
        let id_of_call = |call: Span| self.by_call.get(&call).map(|&node| ids[node].as_str());
        let mut all_arguments = Vec::with_capacity(order.len());
        for (index, &node) in order.iter().enumerate() {
            if index % STEPS_BETWEEN_QUESTIONS == STEPS_BETWEEN_QUESTIONS - 1 {
                interrupt::check()?;
            }
            all_arguments.push(match self.nodes[node].content {
                Content::Call { argument: Some(argument), .. } => {
                    arguments(self.parsed, draft_of(self.bindings, argument), &id_of_call)
                }
                _ => Arguments::new(),
            });
        }
        let nodes = order.iter().zip(all_arguments).map(|(&node, arguments)| {
            self.finished_node(&self.nodes[node].content, std::mem::take(&mut ids[node]), arguments, lookup)
        });
        let nodes = nodes.collect();
        let mut probes = self.probes;
        for probe in &mut probes {
            probe.node = place[probe.node];
        }
        Ok((Structure { nodes, edges }, probes))
    }

    fn finished_edges(&self, ids: &[String]) -> Result<Vec<Edge>, CompileError> {
        let mut edges = Vec::with_capacity(self.edges.len());
        let mut seen = FxHashSet::with_capacity_and_hasher(self.edges.len(), Default::default());
        let mut shared = FxHashSet::default();
        let mut work = 0;
        for (from, to) in &self.edges {
            // A function with many exits leads to the same place however often it is called.
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

    fn finished_edge(&self, end: End, from: &str, to: &str) -> Edge {
        let (kind, outcome) = match end.way {
            Way::On => (EdgeKind::Sequence, None),
            Way::Contains => (EdgeKind::Contains, None),
            Way::True => (EdgeKind::Conditional, Some("true")),
            Way::False => (EdgeKind::Conditional, Some("false")),
            Way::Catch => (EdgeKind::Conditional, Some("catch")),
            Way::Default => (EdgeKind::Conditional, Some("default")),
            Way::Case(label) => (EdgeKind::Conditional, self.labels.get(label).map(String::as_str)),
        };
        let (from, to, outcome) = (from.to_owned(), to.to_owned(), outcome.map(str::to_owned));
        Edge { from, to, kind, outcome, coverage: None }
    }

    fn finished_node(
        &self,
        content: &Content<'_>,
        id: String,
        arguments: Arguments,
        lookup: &Lookup,
    ) -> Node {
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

fn id(letter: char, count: u32) -> String {
    let mut id = String::with_capacity(4);
    id.push(letter);
    if count < 10 {
        id.push(char::from(b'0' + count as u8));
    } else {
        id.push_str(&count.to_string());
    }
    id
}

/// The text of a piece of code as the structure shows it: pieces lie in each other, so long ones end in `…`.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) if text.len() > MAX_TEXT_CHARS => [&text[..end], "…"].concat(),
        _ => text.to_owned(),
    }
}
