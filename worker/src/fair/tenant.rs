//! The unit of fair sharing: a principal, and the group (organisation) whose principals share what the group may have.

use std::{fmt, sync::Arc};

/// A principal and its group, such as an organisation. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tenant {
    group: Arc<str>,
    name: Arc<str>,
}

impl Tenant {
    /// A principal of a group. The name needs to be unique within the group only.
    pub fn new(group: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Tenant {
        Tenant { group: group.into(), name: name.into() }
    }

    /// The group that it belongs to.
    #[must_use]
    pub fn group(&self) -> &Arc<str> {
        &self.group
    }

    /// Its own name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }
}

/// A tenant that is a group by itself.
impl From<&str> for Tenant {
    fn from(name: &str) -> Tenant {
        let name: Arc<str> = name.into();
        Tenant { group: name.clone(), name }
    }
}

impl From<String> for Tenant {
    fn from(name: String) -> Tenant {
        Tenant::from(name.as_str())
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name, self.group)
    }
}
