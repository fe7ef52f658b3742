//! On whose behalf a request is made: organisation, project and actor, and how the caller was identified.

use std::fmt;

use pml_worker::Tenant;
use uuid::Uuid;

/// The project in which names are looked up, and the actor who looks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    pub org: String,
    pub project: String,
    pub actor: String,
}

impl Scope {
    /// `org.project`, the payload of `NOTIFY pml_tools_changed`.
    pub fn project_key(&self) -> String {
        format!("{}.{}", self.org, self.project)
    }

    /// The unit of fair sharing: the principal, within its organisation's share.
    pub fn tenant(&self) -> Tenant {
        Tenant::new(self.org.as_str(), format!("{} as {}", self.project, self.actor))
    }
}

/// Whether this has the form of a [`Scope::project_key`]. Notification payloads may be any text.
pub fn is_project_key(text: &str) -> bool {
    let is_part = |part: &str| pml_core::name::check_part("part", part).is_ok();
    text.len() <= LONGEST_PROJECT_KEY
        && text.split_once('.').is_some_and(|(org, project)| is_part(org) && is_part(project))
}

/// Two names of 63 bytes and a dot.
const LONGEST_PROJECT_KEY: usize = 127;

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} as {}", self.org, self.project, self.actor)
    }
}

/// How a caller was identified. Sessions and limits belong to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// Without a token: the scope is the configured one.
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

/// A request of a principal, with the id under which proxy, Postgres and sandbox log it.
#[derive(Clone, Debug)]
pub struct Caller {
    pub principal: Principal,
    pub request_id: String,
}

impl Caller {
    /// The proxy itself.
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
    use super::is_project_key;

    #[test]
    fn a_project_key_is_two_names() {
        assert!(is_project_key("local.default") && is_project_key("a_1.b-2"));
        let long = format!("{0}.{0}", "a".repeat(63));
        assert!(is_project_key(&long) && !is_project_key(&format!("{long}a")));
        for wrong in ["", ".", "a", "a.", ".b", "a.b.c", "a b.c", "a.b\n", "1.2", "é.b"] {
            assert!(!is_project_key(wrong), "{wrong}");
        }
    }
}
