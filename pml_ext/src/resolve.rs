//! `sql/resolve.sql`: resolving specs to records.

use pgrx::{IntoDatum, PgTupleDesc, Spi, composite_type, heap_tuple::PgHeapTuple, pg_extern, pg_sys};
use pml_core::{
    name::SERVER_NAMESPACE,
    spec::{Spec, Target},
    version::VersionSpec,
};

use crate::{
    caller::Caller,
    error::{Kind, Report, Result},
    gate,
    records::{self, Found, Place},
    settings,
};

/// Where the base servers live.
const STANDARD_SCOPE: (&str, &str) = ("pml", "std");

struct Located<'a> {
    found: Found,
    alias: Option<&'a str>,
    spec: Spec<'a>,
}

impl Located<'_> {
    fn version(&self) -> Result<i32> {
        records::version(&self.found, &self.spec.version)
            .ok_or_else(|| version_not_found(&self.spec, &self.found))
    }
}

#[pg_extern(sql = false)]
fn pml_resolve(spec: &str) -> String {
    let resolve = || {
        let located = locate(spec)?;
        // Only whether the version exists matters here.
        if !records::surely_has_version(&located.found, &located.spec.version) {
            located.version()?;
        }
        warn_of_alias(&located);
        Ok(located.found.fqdn)
    };
    Report::or_raise(resolve())
}

/// As the composite type `pml_internal.pml_located`, whose description Postgres caches by its OID.
#[pg_extern(sql = false)]
fn pml_locate(
    spec: &str,
    call: pg_sys::FunctionCallInfo,
) -> Option<composite_type!('static, "pml_internal.pml_located")> {
    let locate = || {
        let located = locate(spec)?;
        let version = located.version()?;
        warn_of_alias(&located);
        Ok((located.found.fqdn, version, located.alias))
    };
    let (fqdn, version, alias) = Report::or_raise(locate());
    // SAFETY: Postgres calls it with the description of this function, and the values are of the type's columns in order.
    unsafe {
        let row_type = pg_sys::get_func_rettype((*(*call).flinfo).fn_oid);
        let row = PgTupleDesc::for_composite_type_by_oid(row_type)?;
        PgHeapTuple::from_datums(row, [fqdn.into_datum(), version.into_datum(), alias.into_datum()]).ok()
    }
}

/// The deprecation warning of an alias as text, for answers over MCP.
#[pg_extern(sql = false)]
fn pml_alias_warning(spec: &str) -> Option<String> {
    let located = locate(spec).ok()?;
    located.alias.map(|alias| deprecated(alias, &located.found))
}

/// Within the caller's own scope it may be revealed that a name is taken by a hidden record, but not by which.
#[pg_extern(sql = false)]
fn pml_is_taken(name: Option<&str>, own_fqdn: Option<&str>) -> bool {
    let (org, project) = (settings::org(), settings::project());
    Report::or_raise(Caller::current().check_may_act(&org, &project));
    name.is_some_and(|name| records::is_taken(&org, &project, name, own_fqdn))
}

/// The older form `cap:fs:read_json` means `fs:read_json`, unless a capability has that very name.
const TOOL_PREFIX: &str = "cap:";

fn locate(text: &str) -> Result<Located<'_>> {
    let caller = Caller::current();
    let given = Spec::parse(text);
    if let Ok(spec) = &given
        && let Some((found, alias)) = find(&caller, spec)?
    {
        return Ok(Located { found, alias, spec: given? });
    }
    let Some(spec) = text.strip_prefix(TOOL_PREFIX).and_then(|rest| Spec::parse(rest).ok()) else {
        return Err(not_found(&given?));
    };
    match find(&caller, &spec)? {
        Some((found, alias)) => Ok(Located { found, alias, spec }),
        None => Err(not_found(&spec)),
    }
}

fn warn_of_alias(located: &Located<'_>) {
    if let Some(alias) = located.alias {
        Report::warn_client(|| Report {
            kind: Kind::DeprecatedAlias,
            message: deprecated(alias, &located.found),
            detail: None,
            hint: Some("Update your code.".to_owned()),
        });
    }
}

fn deprecated(alias: &str, found: &Found) -> String {
    format!("Deprecated: using alias \"{alias}\" for capability \"{}\"", found.display_name)
}

fn find<'a>(caller: &Caller, spec: &Spec<'a>) -> Result<Option<(Found, Option<&'a str>)>> {
    let place = match spec.target {
        Target::Fqdn(_) => return Ok(records::by_fqdn(caller, spec.target_text).map(|found| (found, None))),
        Target::Unhashed { org, project, namespace, action } => {
            let mut found = records::by_parts(caller, [org, project, namespace, action]);
            return match found.len() {
                0 | 1 => Ok(found.pop().map(|found| (found, None))),
                _ => Err(ambiguous(spec, &found)),
            };
        }
        Target::Scoped { org, project, name } => Place::new(org, project, name),
        Target::Name(name) => {
            let (org, project) = (settings::org(), settings::project());
            caller.check_may_act(&org, &project)?;
            Place::new(org, project, name)
        }
    };
    if let Some(found) = records::by_name(caller, &place) {
        return Ok(Some((found, None)));
    }
    let name = place.name;
    if let Some(found) = records::by_alias(caller, &place) {
        return Ok(Some((found, Some(name))));
    }
    let is_server = name.split_once(':').is_some_and(|(namespace, _)| namespace == SERVER_NAMESPACE);
    if is_server && matches!(spec.target, Target::Name(_)) {
        let (org, project) = STANDARD_SCOPE;
        return Ok(records::by_name(caller, &Place::new(org, project, name)).map(|found| (found, None)));
    }
    Ok(None)
}

fn not_found(spec: &Spec<'_>) -> Report {
    let suggestion = match spec.target {
        Target::Name(name) => suggest(&settings::org(), &settings::project(), name),
        Target::Scoped { org, project, name } => {
            suggest(org, project, name).map(|name| format!("{org}.{project}:{name}"))
        }
        Target::Fqdn(_) | Target::Unhashed { .. } => None,
    };
    Report {
        kind: Kind::NotFound,
        message: format!("Capability not found: {}", spec.target_text),
        detail: None,
        hint: Some(suggestion.map_or_else(
            || "pml_list() shows what there is in the current scope (pml.org, pml.project).".to_owned(),
            |name| format!("Did you mean \"{name}\"?"),
        )),
    }
}

fn ambiguous(spec: &Spec<'_>, found: &[Found]) -> Report {
    let fqdns: Vec<&str> = found.iter().map(|found| found.fqdn.as_str()).collect();
    Report {
        kind: Kind::NotFound,
        message: format!("Capability not found: {}", spec.target_text),
        detail: Some(format!("Several have this FQDN without its hash: {}.", fqdns.join(", "))),
        hint: Some("Add the hash, or use its name: org.project:name.".to_owned()),
    }
}

fn version_not_found(spec: &Spec<'_>, found: &Found) -> Report {
    let written = match spec.version {
        VersionSpec::Before(_) => spec.version_text.to_owned(),
        _ => format!("v{}", spec.version_text.trim_start_matches('v')),
    };
    Report {
        kind: Kind::VersionNotFound,
        message: format!("Version {written} not found for {}", found.display_name),
        detail: None,
        hint: Some(format!("The newest is version {}; pml_history lists them all.", found.version)),
    }
}

/// Uses SQL, so that the policies decide which names may be suggested. Not in parallel workers: once the transaction has an
/// id, SPI would increment the command counter, which Postgres refuses there.
fn suggest(org: &str, project: &str, name: &str) -> Option<String> {
    // SAFETY: it reads a variable of the backend.
    if unsafe { pg_sys::IsInParallelMode() } {
        return None;
    }
    let ask = || {
        Spi::connect(|client| {
            client
                .select(
                    "SELECT pml_internal.pml_name_suggestion($1, $2, $3)",
                    Some(1),
                    &[org.into(), project.into(), name.into()],
                )
                .ok()?
                .first()
                .get_one::<String>()
                .ok()?
        })
    };
    gate::as_engine(ask)
}
