//! The caller of a function, and what it may do and see.

use std::{cell::OnceCell, ffi::CStr, ops::ControlFlow};

use pgrx::{FromDatum, pg_sys};

use crate::{
    error::{self, Report, Result},
    gate,
    scan::{self, Direction, Key},
    settings,
};

const ADMIN: &CStr = c"pml_admin";
const PROXY: &CStr = c"pml_proxy";

pub(crate) struct Caller {
    user: pg_sys::Oid,
    kind: Kind,
}

enum Kind {
    /// Superusers and members of pml_admin.
    Admin,
    /// Members of pml_proxy act for the scope and actor that they set.
    Proxy {
        org: String,
        project: String,
        actor: String,
    },
    Role(Grants),
}

struct Grants {
    user: pg_sys::Oid,
    role: String,
    /// Grants to the role itself.
    direct: Vec<Scope>,
    /// Grants to roles that it is a member of; read only if the direct ones don't suffice.
    inherited: OnceCell<Vec<Scope>>,
}

struct Scope {
    org: String,
    project: String,
}

impl Caller {
    pub(crate) fn current() -> Caller {
        let user = gate::asking();
        let kind = if is_admin(user) {
            Kind::Admin
        } else if has_role(user, PROXY) {
            Kind::Proxy { org: settings::org(), project: settings::project(), actor: set_actor() }
        } else {
            Kind::Role(Grants::of(user))
        };
        Caller { user, kind }
    }

    /// Whether the caller is still the same.
    pub(crate) fn is_current(&self) -> bool {
        self.user == gate::asking()
    }

    pub(crate) fn is_admin(&self) -> bool {
        matches!(self.kind, Kind::Admin)
    }

    /// Whether the caller may set its actor.
    pub(crate) fn may_speak_for_others(&self) -> bool {
        matches!(self.kind, Kind::Admin | Kind::Proxy { .. })
    }

    pub(crate) fn actor(&self) -> String {
        match &self.kind {
            Kind::Admin => set_actor(),
            Kind::Proxy { actor, .. } => actor.clone(),
            Kind::Role(grants) => grants.role.clone(),
        }
    }

    /// Whether things in this scope may be changed.
    pub(crate) fn may_act(&self, org: &str, project: &str) -> bool {
        match &self.kind {
            Kind::Admin => true,
            Kind::Proxy { org: own_org, project: own_project, .. } => {
                own_org == org && own_project == project
            }
            Kind::Role(grants) => grants.any(|scope| scope.org == org && scope.project == project),
        }
    }

    pub(crate) fn check_may_act(&self, org: &str, project: &str) -> Result<()> {
        if self.may_act(org, project) {
            return Ok(());
        }
        let actor = self.actor();
        Err(Report {
            kind: error::Kind::NotPermitted,
            message: format!("\"{actor}\" may not act in scope {org}.{project}"),
            detail: None,
            hint: Some(match self.kind {
                Kind::Role(_) => {
                    format!(
                        "Set pml.org and pml.project to a scope of yours, or have an admin run: SELECT pml_grant('{actor}', '{org}', '{project}')."
                    )
                }
                _ => "Set pml.org and pml.project to the scope for which you act.".to_owned(),
            }),
        })
    }

    /// Whether a record of this scope, visibility and creator is seen.
    pub(crate) fn sees(&self, org: &str, project: &str, visibility: &str, created_by: &str) -> bool {
        let seen = Seen { org, project, visibility, created_by };
        match &self.kind {
            Kind::Admin => true,
            Kind::Proxy { org, project, actor } => seen.by(org, project, actor),
            Kind::Role(grants) => {
                visibility == "public"
                    || grants.any(|scope| seen.by(&scope.org, &scope.project, &grants.role))
            }
        }
    }
}

/// A record whose visibility is in question.
pub(crate) struct Seen<'a> {
    pub(crate) org: &'a str,
    pub(crate) project: &'a str,
    pub(crate) visibility: &'a str,
    pub(crate) created_by: &'a str,
}

impl Seen<'_> {
    /// Whether an actor in this scope sees it: the one rule of visibility.
    pub(crate) fn by(&self, org: &str, project: &str, actor: &str) -> bool {
        match self.visibility {
            "public" => true,
            "org" => self.org == org,
            "project" => self.org == org && self.project == project,
            "private" => self.org == org && self.project == project && self.created_by == actor,
            _ => false,
        }
    }
}

impl Grants {
    fn of(user: pg_sys::Oid) -> Grants {
        let role = role_name(user);
        // SAFETY: a NameData holds any role's name with its terminating zero.
        let mut name: pg_sys::NameData = unsafe { std::mem::zeroed() };
        for (to, from) in name.data.iter_mut().zip(role.as_bytes()) {
            *to = *from as _;
        }
        let direct = read_grants(&[Key::name(&raw const name)], |_| true);
        Grants { user, role, direct, inherited: OnceCell::new() }
    }

    fn any(&self, fits: impl Fn(&Scope) -> bool) -> bool {
        self.direct.iter().any(&fits) || self.inherited().iter().any(&fits)
    }

    fn inherited(&self) -> &[Scope] {
        self.inherited.get_or_init(|| {
            read_grants(&[], |role| role.to_bytes() != self.role.as_bytes() && has_role(self.user, role))
        })
    }
}

fn read_grants(keys: &[Key], counts: impl Fn(&CStr) -> bool) -> Vec<Scope> {
    const ROLE_NAME: usize = 1;
    const ORG: usize = 2;
    const PROJECT: usize = 3;
    let mut scopes = Vec::new();
    scan::rows(c"scope_grants", c"scope_grants_pkey", keys, Direction::Forward, |row| {
        // SAFETY: the column is of type name, which a zero ends.
        let role = row.column(ROLE_NAME).and_then(|name| unsafe { <&CStr>::from_datum(name, false) });
        if role.is_some_and(&counts) {
            scopes.push(Scope { org: row.text(ORG).into_owned(), project: row.text(PROJECT).into_owned() });
        }
        ControlFlow::<()>::Continue(())
    });
    scopes
}

/// Whether the role is neither an admin nor a proxy.
pub(crate) fn is_ordinary(user: pg_sys::Oid) -> bool {
    !is_admin(user) && !has_role(user, PROXY)
}

fn is_admin(user: pg_sys::Oid) -> bool {
    // SAFETY: looks the role up in the system cache.
    unsafe { pg_sys::superuser_arg(user) || has_role(user, ADMIN) || is_keeper(user) }
}

/// Only admins write tables by hand, so triggers that run as pml_keeper count as admin too.
fn is_keeper(user: pg_sys::Oid) -> bool {
    // SAFETY: the name is a C string; a missing role is InvalidOid.
    let keeper = unsafe { pg_sys::get_role_oid(gate::KEEPER.as_ptr(), true) };
    keeper != pg_sys::InvalidOid && user == keeper
}

fn has_role(user: pg_sys::Oid, role: &CStr) -> bool {
    // SAFETY: the name is a C string; a missing role is InvalidOid.
    unsafe {
        let role = pg_sys::get_role_oid(role.as_ptr(), true);
        role != pg_sys::InvalidOid && pg_sys::has_privs_of_role(user, role)
    }
}

/// The setting pml.actor; fallback: the session user.
fn set_actor() -> String {
    // SAFETY: reads the session's state.
    settings::actor().unwrap_or_else(|| role_name(unsafe { pg_sys::GetSessionUserId() }))
}

fn role_name(role: pg_sys::Oid) -> String {
    // SAFETY: with noerr a missing role gives a null pointer, else a C string.
    unsafe {
        let name = pg_sys::GetUserNameFromId(role, true);
        if name.is_null() { String::new() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
    }
}
