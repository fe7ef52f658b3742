//! For whom a request is made: the organisation, the project and the actor, and how that was established.

use std::fmt;

use pml_worker::Tenant;
use uuid::Uuid;

/// Where names are looked up and who looks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    pub org: String,
    pub project: String,
    pub actor: String,
}

impl Scope {
    /// The scope without its actor, as `NOTIFY pml_tools_changed` names it.
    pub fn place(&self) -> String {
        format!("{}.{}", self.org, self.project)
    }

    /// Who shares with others: the principal, and its organisation, whose principals share what it has.
    pub fn tenant(&self) -> Tenant {
        Tenant::new(self.org.as_str(), format!("{} as {}", self.project, self.actor))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} as {}", self.org, self.project, self.actor)
    }
}

/// Who stands behind a connection; sessions and limits belong to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// No token: the scope of the configuration.
    Configured,
    /// The token with this id.
    Token(Uuid),
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identity::Configured => f.write_str("configured"),
            Identity::Token(id) => write!(f, "token {id}"),
        }
    }
}

/// An identity and the scope that it fixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub identity: Identity,
    pub scope: Scope,
}

/// A principal's one request, with the id that follows it through proxy, SQL and worker.
#[derive(Clone, Debug)]
pub struct Caller {
    pub principal: Principal,
    pub request_id: String,
}

impl Caller {
    pub fn scope(&self) -> &Scope {
        &self.principal.scope
    }
}

/// An id that sorts by time.
pub fn new_request_id() -> String {
    Uuid::now_v7().simple().to_string()
}
