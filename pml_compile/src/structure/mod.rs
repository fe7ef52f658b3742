//! The static structure: the calls and decisions of the code as nodes, control flow as edges.

mod arguments;
mod build;
mod by_name;
mod expressions;
mod finish;
mod frontier;
mod probe;
mod statements;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use swc_atoms::Atom;

pub(crate) use build::build;
pub use by_name::Arguments;
pub(crate) use probe::{Probe, Site};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Node {
    Task {
        id: Atom,
        tool: String,
        #[serde(default, skip_serializing_if = "Arguments::is_empty")]
        arguments: Arguments,
    },
    Capability {
        id: Atom,
        /// The FQDN, or the name if it isn't linked.
        capability_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        #[serde(default, skip_serializing_if = "Arguments::is_empty")]
        arguments: Arguments,
    },
    Decision {
        id: Atom,
        condition: String,
    },
    Fork {
        id: Atom,
    },
    Join {
        id: Atom,
    },
    Loop {
        id: Atom,
    },
}

impl Node {
    pub fn id(&self) -> &str {
        match self {
            Node::Task { id, .. }
            | Node::Capability { id, .. }
            | Node::Decision { id, .. }
            | Node::Fork { id }
            | Node::Join { id }
            | Node::Loop { id } => id,
        }
    }

    /// The tool or capability that this node calls.
    pub fn called(&self) -> Option<&str> {
        match self {
            Node::Task { tool, .. } => Some(tool),
            Node::Capability { capability_id, .. } => Some(capability_id),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum ArgumentValue {
    Literal {
        value: Json,
    },
    /// The result of another node, or a variable of the code: `n1.content`.
    Reference {
        expression: String,
    },
    /// A field of `args`: `user.name`.
    Parameter {
        parameter_name: String,
    },
    /// Text with references and parameters filled in: `Hello ${args.name}`.
    Template {
        template: String,
    },
    Object {
        fields: Arguments,
    },
    Array {
        items: Vec<ArgumentValue>,
    },
    /// Anything else, as source text.
    Expression {
        expression: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    Sequence,
    Conditional,
    Provides,
    /// From a loop to what it repeats.
    Contains,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    /// All required inputs are there.
    Strict,
    /// Some of the required inputs are there.
    Partial,
    /// Only optional inputs are there.
    Optional,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    pub from: Atom,
    pub to: Atom,
    #[serde(rename = "type")]
    pub kind: EdgeKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Atom>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Structure {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

impl Structure {
    /// The tools that the code calls, once each, in source order.
    pub fn tools(&self) -> Vec<String> {
        self.distinct(|node| match node {
            Node::Task { tool, .. } => Some(tool),
            _ => None,
        })
    }

    /// The capabilities that the code calls, once each, in source order.
    pub fn capabilities(&self) -> Vec<String> {
        self.distinct(|node| match node {
            Node::Capability { capability_id, .. } => Some(capability_id),
            _ => None,
        })
    }

    fn distinct<'a>(&'a self, pick: impl Fn(&'a Node) -> Option<&'a String>) -> Vec<String> {
        let mut seen = rustc_hash::FxHashSet::default();
        self.nodes.iter().filter_map(pick).filter(|name| seen.insert(*name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
