//! The frontier: the nodes that control can come from. Most have one end and some have thousands, so it is shared rather than
//! copied, and expanded into edges only when the structure is done.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::probe::NodeIndex;

/// Stands for whatever comes before the function being visited.
pub(super) const ENTRY: NodeIndex = NodeIndex::MAX;

/// How control leaves a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Way {
    On,
    Contains,
    True,
    False,
    Catch,
    Default,
    /// An index into the builder's labels.
    Case(usize),
}

/// A node that control comes from, and the way it leaves that node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct End {
    pub(super) node: NodeIndex,
    pub(super) way: Way,
}

impl End {
    pub(super) fn plain(node: NodeIndex) -> Self {
        Self { node, way: Way::On }
    }
}

/// Several ends, no two of them the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Ends {
    list: Vec<End>,
    has_entry: bool,
}

/// Up to this many comparisons are faster than a hash table.
const FEW_COMPARISONS: usize = 64;

impl Ends {
    fn push(&mut self, end: End) {
        self.has_entry |= end.node == ENTRY;
        self.list.push(end);
    }

    /// Adds the ends that aren't there yet.
    fn extend(&mut self, added: &[End]) {
        if (self.list.len() + added.len()) * added.len() <= FEW_COMPARISONS {
            for &end in added {
                if !self.list.contains(&end) {
                    self.push(end);
                }
            }
            return;
        }
        let mut seen: FxHashSet<End> = self.list.iter().copied().collect();
        for &end in added.iter().filter(|end| seen.insert(**end)) {
            self.push(end);
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) enum Frontier {
    #[default]
    Nowhere,
    One(End),
    Many(Rc<Ends>),
}

impl Frontier {
    pub(super) fn of(node: NodeIndex, way: Way) -> Self {
        Self::One(End { node, way })
    }

    fn as_slice(&self) -> &[End] {
        match self {
            Self::Nowhere => &[],
            Self::One(end) => std::slice::from_ref(end),
            Self::Many(ends) => &ends.list,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = End> {
        self.as_slice().iter().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.as_slice().len()
    }

    pub(super) fn has_entry(&self) -> bool {
        match self {
            Self::Nowhere => false,
            Self::One(end) => end.node == ENTRY,
            Self::Many(ends) => ends.has_entry,
        }
    }

    /// The identity of this list, if it is one.
    pub(super) fn address(&self) -> Option<usize> {
        match self {
            Self::Many(ends) => Some(Rc::as_ptr(ends) as usize),
            _ => None,
        }
    }

    /// Adds an end that isn't there yet.
    pub(super) fn push(&mut self, end: End) {
        match self {
            Self::Nowhere => *self = Self::One(end),
            Self::One(first) => *self = Self::from(&[*first, end][..]),
            Self::Many(ends) => Rc::make_mut(ends).push(end),
        }
    }

    /// Adds the ends that aren't there yet.
    pub(super) fn append(&mut self, other: &[End]) {
        match (&mut *self, other) {
            (_, []) => {}
            (Self::Nowhere, _) => *self = Self::from(other),
            (Self::One(end), [same]) if end == same => {}
            (Self::One(end), _) => {
                let mut ends = Ends::default();
                ends.push(*end);
                ends.extend(other);
                *self = Self::Many(Rc::new(ends));
            }
            (Self::Many(ends), _) => Rc::make_mut(ends).extend(other),
        }
    }

    pub(super) fn join(&mut self, other: Frontier) {
        match self {
            Self::Nowhere => *self = other,
            _ => self.append(other.as_slice()),
        }
    }

    pub(super) fn add_to(self, list: &mut Vec<End>) {
        list.extend_from_slice(self.as_slice());
    }

    /// The exits of a function that was entered from `before`.
    pub(super) fn entered_from(&self, before: Frontier) -> Frontier {
        if !self.has_entry() {
            return self.clone();
        }
        let exits: Vec<End> = self.iter().filter(|end| end.node != ENTRY).collect();
        let mut ends = before;
        ends.append(&exits);
        ends
    }
}

impl From<&[End]> for Frontier {
    fn from(ends: &[End]) -> Self {
        match ends {
            [] => Self::Nowhere,
            [end] => Self::One(*end),
            _ => {
                let mut several = Ends::default();
                several.extend(ends);
                Self::Many(Rc::new(several))
            }
        }
    }
}
