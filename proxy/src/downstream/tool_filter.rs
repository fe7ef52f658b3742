//! Which tools of a server are used (`includeTools`, `excludeTools`).

use std::collections::BTreeSet;

/// All tools, unless some are named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Only these, if given.
    pub include: Option<BTreeSet<String>>,
    /// Not these.
    pub exclude: BTreeSet<String>,
}

impl ToolFilter {
    pub fn allows(&self, tool: &str) -> bool {
        self.include.as_ref().is_none_or(|include| include.contains(tool)) && !self.exclude.contains(tool)
    }
}
