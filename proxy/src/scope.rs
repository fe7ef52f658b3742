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

/// Whether this could be a scope's place: anybody's text can come where one is expected.
pub fn is_place(text: &str) -> bool {
    let is_part = |part: &str| pml_core::name::check_part("part", part).is_ok();
    text.len() <= LONGEST_PLACE
        && text.split_once('.').is_some_and(|(org, project)| is_part(org) && is_part(project))
}

/// Two names of 63 bytes and what stands between them.
const LONGEST_PLACE: usize = 127;

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
    /// The proxy itself, which acts without a token.
    pub fn proxy(scope: Scope) -> Caller {
        Caller {
            principal: Principal { identity: Identity::Configured, scope },
            request_id: new_request_id(),
        }
    }

    pub fn scope(&self) -> &Scope {
        &self.principal.scope
    }
}

/// An id that sorts by time.
pub fn new_request_id() -> String {
    Uuid::now_v7().simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::is_place;

    #[test]
    fn a_place_is_two_names() {
        assert!(is_place("local.default") && is_place("a_1.b-2"));
        let long = format!("{0}.{0}", "a".repeat(63));
        assert!(is_place(&long) && !is_place(&format!("{long}a")));
        for wrong in ["", ".", "a", "a.", ".b", "a.b.c", "a b.c", "a.b\n", "1.2", "é.b"] {
            assert!(!is_place(wrong), "{wrong}");
        }
    }
}
