//! A list of tools in the cache: parsed as long as it may be asked for, and later as JSON, which takes a fraction of the
//! memory and is only needed if Postgres can't be reached.

use std::sync::Arc;

use pml_worker::aside_if_large;
use rmcp::model::Tool;

/// Smaller lists stay parsed.
const WORTH_PACKING: usize = 500;

#[derive(Clone)]
pub(super) enum KeptList {
    Parsed(Arc<Vec<Tool>>),
    Packed(Arc<[u8]>),
}

impl KeptList {
    pub(super) fn packed(tools: &Arc<Vec<Tool>>) -> KeptList {
        match serde_json::to_vec(&**tools) {
            Ok(json) => KeptList::Packed(json.into()),
            Err(_) => KeptList::Parsed(tools.clone()),
        }
    }

    pub(super) fn is_worth_packing(&self) -> bool {
        matches!(self, KeptList::Parsed(tools) if tools.len() >= WORTH_PACKING)
    }

    /// None if it is packed.
    pub(super) fn parsed(&self) -> Option<Arc<Vec<Tool>>> {
        match self {
            KeptList::Parsed(tools) => Some(tools.clone()),
            KeptList::Packed(_) => None,
        }
    }

    pub(super) fn unpacked(&self) -> Option<Arc<Vec<Tool>>> {
        match self {
            KeptList::Parsed(tools) => Some(tools.clone()),
            KeptList::Packed(json) => aside_if_large(json.len(), || serde_json::from_slice(json)).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rmcp::model::Tool;
    use serde_json::json;

    use super::{KeptList, WORTH_PACKING};

    #[test]
    fn a_packed_list_is_the_same_list() {
        let tool: Tool = serde_json::from_value(json!({
            "name": "n", "title": "t", "description": "d", "inputSchema": {"type": "object", "z": 1, "a": [null, 1.5]},
            "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}, "_meta": {"pml": {"kind": "tool"}}
        }))
        .unwrap();
        let tools = Arc::new(vec![tool; WORTH_PACKING]);
        assert!(KeptList::Parsed(tools.clone()).is_worth_packing());
        let packed = KeptList::packed(&tools);
        assert!(packed.parsed().is_none() && !packed.is_worth_packing());
        assert_eq!(packed.unpacked().unwrap(), tools);
    }
}
