//! `sql/compile.sql`: the compiler, as pure functions of code and of lookup results.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use pgrx::{
    JsonB, PgBuiltInOids, Spi, iter::TableIterator, name, pg_extern, pg_sys, spi::OwnedPreparedStatement,
};
use pml_compile::{
    self as compile, CompileError, CompileOptions, Dag, ErrorKind, GenerateError, Lookup, PipelineSource,
    References, Source, Structure, ToolSchema, ToolsByInput,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value as Json, json, value::RawValue};

use crate::error::{Kind, Report, Result};

fn argument(message: String, hint: &str) -> Report {
    Report { kind: Kind::InvalidArgument, message, detail: None, hint: Some(hint.to_owned()) }
}

impl From<CompileError> for Report {
    fn from(error: CompileError) -> Self {
        let kind = match error.kind {
            ErrorKind::Interrupted => Kind::Interrupted,
            _ => Kind::InvalidCode,
        };
        Report { kind, message: error.to_string(), detail: None, hint: Some(error.hint().to_owned()) }
    }
}

impl From<GenerateError> for Report {
    fn from(error: GenerateError) -> Self {
        argument(error.to_string(), "Change what is given, or give the code itself.")
    }
}

fn invalid(what: &str, error: &serde_json::Error) -> Report {
    argument(format!("Invalid {what}: {error}"), "See docs/compiler.md for its form.")
}

fn parsed<T: DeserializeOwned>(what: &str, value: &Json) -> Result<T> {
    T::deserialize(value).map_err(|error| invalid(what, &error))
}

/// Arguments in JSON are of type text: pgrx panics where a jsonb is nested too deep.
fn read<T: DeserializeOwned>(what: &str, json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| invalid(what, &error))
}

/// The schemas of tools and capabilities, by name. One that is nested too deep for serde_json counts as unknown.
fn schemas<T: FromIterator<(String, ToolSchema)>>(json: &str) -> Result<T> {
    let schemas: HashMap<String, &RawValue> =
        serde_json::from_str(json).map_err(|error| invalid("schemas", &error))?;
    let readable =
        |(name, schema): (String, &RawValue)| Some((name, serde_json::from_str(schema.get()).ok()?));
    Ok(schemas.into_iter().filter_map(readable).collect())
}

/// Runs the compiler, interruptibly, and raises its error. The inputs are dropped first, because an ERROR is a longjmp that
/// skips destructors.
pub(crate) fn compiler<Inputs, T>(inputs: Inputs, work: impl Fn(&Inputs) -> Result<T>) -> T {
    // SAFETY: both are flags that a signal handler sets.
    let is_cancelled = || unsafe { pg_sys::QueryCancelPending != 0 || pg_sys::ProcDiePending != 0 };
    let mut result = compile::interruptible(is_cancelled, || work(&inputs));
    if matches!(&result, Err(report) if report.kind == Kind::Interrupted) {
        pgrx::check_for_interrupts!();
        // Still here: interrupts are held off.
        result = work(&inputs);
    }
    drop(inputs);
    Report::or_raise(result)
}

/// The names and FQDNs that the code refers to, each once.
#[pg_extern(sql = false)]
fn pml_code_names(code: &str) -> Vec<String> {
    compiler(code, |code| Ok(names_in(Source::parse(code)?.references())))
}

#[pg_extern(sql = false)]
fn pml_link_with(code: &str, lookup: &str) -> String {
    compiler((code, lookup), |(code, lookup)| {
        let source = Source::parse(code)?;
        let lookup = unambiguous(read("lookup", lookup)?, source.references())?;
        Ok(source.link(&lookup))
    })
}

#[pg_extern(sql = false)]
fn pml_display_with(code: &str, names: &str) -> String {
    compiler((code, names), |(code, names)| Ok(compile::display(code, &read("names", names)?)?))
}

#[pg_extern(sql = false)]
fn pml_infer_parameters(code: &str) -> JsonB {
    compiler(code, |code| Ok(JsonB(compile::infer_parameters(code)?)))
}

#[pg_extern(sql = false)]
fn pml_lift_literals(code: &str) -> JsonB {
    compiler(code, |code| {
        let lifted = compile::lift_literals(code)?;
        Ok(JsonB(json!({ "code": lifted.code, "literals": lifted.literals })))
    })
}

/// Compiles code in one parse; between parsing and linking, SQL looks up the names in it.
#[pg_extern(sql = false)]
fn pml_compile_in(org: &str, project: &str, code: &str) -> JsonB {
    JsonB(compiler((org, project, code), |(org, project, code)| {
        let source = Source::parse(code)?;
        let names = names_in(source.references());
        let options = if names.is_empty() {
            CompileOptions::default()
        } else {
            known(org, project, &names, source.references())?
        };
        compiled(source, &options)
    }))
}

/// How often this session has parsed code.
#[pg_extern(sql = false)]
fn pml_parses() -> i64 {
    i64::try_from(compile::parses()).unwrap_or(i64::MAX)
}

fn names_in(references: &References) -> Vec<String> {
    let fqdns = references.found.iter().filter_map(|reference| reference.fqdn.as_deref());
    let names: BTreeSet<&str> = references.names().into_iter().chain(fqdns).collect();
    names.into_iter().map(str::to_owned).collect()
}

thread_local! {
    /// The plan for [`known`], made once in a session.
    static KNOWN: RefCell<Option<OwnedPreparedStatement>> = const { RefCell::new(None) };
}

/// Looks names up in a scope, for the current caller. pgrx turns an ERROR of the query into a panic, so that the parsed code
/// is dropped; it loses our SQLSTATEs, so the query must not raise them.
fn known(org: &str, project: &str, names: &[String], references: &References) -> Result<CompileOptions> {
    let asked = Spi::connect(|client| {
        KNOWN.with_borrow_mut(|plan| {
            let plan = match plan {
                Some(plan) => plan,
                None => {
                    let query = "SELECT pml_internal.pml_names_known($1, $2, $3)::text";
                    let types = [PgBuiltInOids::TEXTOID, PgBuiltInOids::TEXTOID, PgBuiltInOids::TEXTARRAYOID];
                    let types = types.map(pg_sys::BuiltinOid::oid);
                    plan.insert(client.prepare(query, &types)?.keep())
                }
            };
            let arguments = [org.into(), project.into(), names.to_vec().into()];
            client.select(&*plan, Some(1), &arguments)?.first().get_one::<String>()
        })
    });
    let known = asked.map_err(|error| {
        let message = format!("The names in the code can't be looked up: {error}");
        Report { kind: Kind::Broken, message, detail: None, hint: None }
    })?;
    let Known { lookup, schemas: known } = serde_json::from_str(known.as_deref().unwrap_or("null"))
        .map_err(|error| invalid("lookup", &error))?;
    Ok(CompileOptions { lookup: unambiguous(lookup, references)?, schemas: schemas(known.get())? })
}

#[derive(Deserialize)]
struct Known<'a> {
    lookup: HashMap<String, Meaning>,
    #[serde(borrow)]
    schemas: &'a RawValue,
}

/// What a name in code may mean.
#[derive(Deserialize)]
#[serde(untagged)]
enum Meaning {
    Fqdn(String),
    /// The names of capabilities that differ in spelling only.
    Several(Vec<String>),
}

/// The lookup, or an error if a reference is ambiguous.
fn unambiguous(lookup: HashMap<String, Meaning>, references: &References) -> Result<Lookup> {
    for reference in &references.found {
        let meant = reference.candidates.iter().find_map(|name| Some((name, lookup.get(name)?)));
        if let Some((written, Meaning::Several(names))) = meant {
            return Err(ambiguous(written, names));
        }
    }
    let fqdn = |(name, meaning)| match meaning {
        Meaning::Fqdn(fqdn) => Some((name, fqdn)),
        Meaning::Several(_) => None,
    };
    Ok(lookup.into_iter().filter_map(fqdn).collect())
}

fn ambiguous(written: &str, names: &[String]) -> Report {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    Report {
        kind: Kind::InvalidCode,
        message: format!("Invalid code: \"{written}\" could be any of {}", quoted.join(", ")),
        detail: None,
        hint: quoted.first().map(|name| format!("Write the name in quotes, as it is: mcp[{name}](…).")),
    }
}

/// The same error for a name that is known only at run time.
#[pg_extern(sql = false)]
fn pml_refuse_spelling(written: &str, names: Vec<Option<String>>) {
    let names: Vec<String> = names.into_iter().flatten().collect();
    let report = ambiguous(written, &names);
    drop(names);
    Report::or_raise::<()>(Err(report));
}

fn compiled(source: Source<'_>, options: &CompileOptions) -> Result<Json> {
    let compiled = source.compile(options)?;
    let mut seen = HashSet::new();
    let (mut tools, mut capabilities) = (Vec::new(), Vec::new());
    for reference in &compiled.references.found {
        let (name, used) = match reference.target(&options.lookup) {
            Some(fqdn) => {
                let version = reference.version.as_ref().map_or_else(String::new, |tag| format!("@{tag}"));
                (format!("{fqdn}{version}"), &mut capabilities)
            }
            None if reference.capability_only => continue,
            None => match reference.candidates.first().filter(|name| name.contains(':')) {
                Some(tool) => (tool.clone(), &mut tools),
                None => continue,
            },
        };
        if seen.insert(name.clone()) {
            used.push(name);
        }
    }
    Ok(json!({
        "hash": compiled.linked_hash,
        "linked": compiled.linked,
        "executable": compiled.executable,
        "structure": compiled.structure,
        "parameters": compiled.parameters,
        "output": compiled.output,
        "tools": tools,
        "capabilities": capabilities,
        "unresolved": compiled.references.unresolved,
    }))
}

/// The structure with its provides edges recomputed; None if it is nested too deep for serde_json.
#[pg_extern(sql = false)]
fn pml_structure_with(structure: &str, known: &str) -> Option<JsonB> {
    compiler((structure, known), |(structure, known)| {
        let Ok(mut structure) = serde_json::from_str::<Structure>(structure) else { return Ok(None) };
        structure.add_provides(&schemas::<HashMap<_, _>>(known)?);
        Ok(Some(JsonB(json!(structure))))
    })
}

/// Provides edges from and to one tool or between all, computed lazily.
#[pg_extern(sql = false)]
fn pml_provides_between(
    known: Option<&str>,
    tool: Option<String>,
    at_most: Option<i64>,
) -> TableIterator<
    'static,
    (name!(from_tool, String), name!(to_tool, String), name!(coverage, String), name!(field_mapping, JsonB)),
> {
    let tools: BTreeMap<String, ToolSchema> =
        known.map(|known| compiler(known, |known| schemas(known))).unwrap_or_default();
    let edges = ToolsByInput::of(tools).edges(tool, || {
        pgrx::check_for_interrupts!();
    });
    let at_most = at_most.map_or(usize::MAX, |at_most| usize::try_from(at_most).unwrap_or(0));
    TableIterator::new(edges.take(at_most).map(|edge| {
        let coverage = json!(edge.coverage).as_str().unwrap_or_default().to_owned();
        (edge.from, edge.to, coverage, JsonB(json!(edge.field_mapping)))
    }))
}

/// The code of a capability that is given as code, as a DAG or as a tool. Takes text, like `pml_checked_args`.
#[pg_extern(sql = false)]
fn pml_code_of_source(source: &str) -> String {
    compiler(source, |source| {
        let source = serde_json::from_str(source)
            .map_err(|error| argument(format!("Invalid source: it can't be read: {error}"), SOURCE_FORMS))?;
        source_code(&source)
    })
}

const SOURCE_FORMS: &str = "Use {\"type\": \"code\", \"code\": \"…\"}, {\"type\": \"dag\", \"dagStructure\": {\"tasks\": […]}} or \
                            {\"type\": \"tool\", \"toolId\": \"server:tool\", \"defaultArgs\": {…}}.";

fn source_code(source: &Json) -> Result<String> {
    match source.get("type").and_then(Json::as_str) {
        Some("code") => match source.get("code") {
            Some(Json::String(code)) => Ok(code.clone()),
            _ => Err(argument("The source has no code".to_owned(), SOURCE_FORMS)),
        },
        Some("dag") => {
            let dag: Dag = parsed("dagStructure", &source["dagStructure"])?;
            if dag.tasks.is_empty() {
                return Err(argument("The DAG has no tasks".to_owned(), SOURCE_FORMS));
            }
            Ok(compile::dag_code(&dag)?)
        }
        Some("tool") => {
            let tool = source.get("toolId").and_then(Json::as_str).filter(|tool| tool.contains(':'));
            let tool = tool.ok_or_else(|| argument("The source names no tool".to_owned(), SOURCE_FORMS))?;
            match source.get("defaultArgs") {
                None | Some(Json::Null) => Ok(compile::tool_code(tool, &Map::new())),
                Some(Json::Object(defaults)) => Ok(compile::tool_code(tool, defaults)),
                Some(_) => Err(argument("defaultArgs is not an object".to_owned(), SOURCE_FORMS)),
            }
        }
        _ => Err(argument("The source is neither code, a DAG nor a tool".to_owned(), SOURCE_FORMS)),
    }
}

/// Code and parameters of a pipeline: `[{"name": …, "input": …, "is_inferred": …, "output": …}]`.
#[pg_extern(sql = false)]
fn pml_pipeline(sources: &str) -> JsonB {
    #[derive(Deserialize)]
    struct Step {
        name: String,
        #[serde(default)]
        is_inferred: bool,
        #[serde(flatten)]
        schema: ToolSchema,
    }
    compiler(sources, |sources| {
        let steps: Vec<Step> = serde_json::from_str(sources).map_err(|error| invalid("sources", &error))?;
        let steps = steps.into_iter().map(|Step { name, is_inferred, schema }| PipelineSource {
            name,
            schema,
            is_inferred,
        });
        let made = compile::pipeline(&steps.collect::<Vec<_>>())?;
        Ok(JsonB(json!({ "code": made.code, "parameters": made.parameters })))
    })
}
