//! `sql/compile.sql`: the compiler, as pure functions of code and of what the look-ups found.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use pgrx::{
    JsonB, PgBuiltInOids, Spi, iter::TableIterator, name, pg_extern, pg_sys, spi::OwnedPreparedStatement,
};
use pml_compile::{
    self as compile, CompileError, CompileOptions, Dag, ErrorKind, GenerateError, PipelineSource, References,
    Source, Structure, ToolSchema, ToolsByInput,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value as Json, json};

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

fn parsed<T: DeserializeOwned>(what: &str, value: &JsonB) -> Result<T> {
    T::deserialize(&value.0)
        .map_err(|error| argument(format!("Invalid {what}: {error}"), "See docs/compiler.md for its form."))
}

/// What the compiler makes of the inputs, or the error raised. A query cancel stops it. The inputs are dropped before an
/// error jumps over them.
pub(crate) fn compiler<Inputs, T>(inputs: Inputs, work: impl Fn(&Inputs) -> Result<T>) -> T {
    // SAFETY: both are flags that a signal handler sets.
    let is_cancelled = || unsafe { pg_sys::QueryCancelPending != 0 || pg_sys::ProcDiePending != 0 };
    let mut result = compile::interruptible(is_cancelled, || work(&inputs));
    if matches!(&result, Err(report) if report.kind == Kind::Interrupted) {
        pgrx::check_for_interrupts!();
        // Still here: whoever called has put interrupts off.
        result = work(&inputs);
    }
    drop(inputs);
    Report::or_raise(result)
}

/// How references in code find a name that is spelled otherwise.
#[pg_extern(sql = false)]
fn pml_snake_name(name: &str) -> String {
    compile::snake_case(name).into_owned()
}

/// The names and FQDNs that the code refers to, each once.
#[pg_extern(sql = false)]
fn pml_code_names(code: &str) -> Vec<String> {
    compiler(code, |code| Ok(names_in(Source::parse(code)?.references())))
}

#[pg_extern(sql = false)]
fn pml_link_with(code: &str, lookup: JsonB) -> String {
    compiler((code, lookup), |(code, lookup)| Ok(compile::link(code, &parsed("look-up", lookup)?)?))
}

#[pg_extern(sql = false)]
fn pml_display_with(code: &str, names: JsonB) -> String {
    compiler((code, names), |(code, names)| Ok(compile::display(code, &parsed("names", names)?)?))
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

/// All that one parse of the code gives: between its halves SQL is asked what the names in the code stand for.
#[pg_extern(sql = false)]
fn pml_compile_in(org: &str, project: &str, code: &str) -> JsonB {
    JsonB(compiler((org, project, code), |(org, project, code)| {
        let source = Source::parse(code)?;
        let names = names_in(source.references());
        let options = if names.is_empty() { CompileOptions::default() } else { known(org, project, &names)? };
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

/// What the names mean in a scope, for whoever is asking. An ERROR of the query is a panic until it has left this library,
/// so that what was parsed is dropped.
fn known(org: &str, project: &str, names: &[String]) -> Result<CompileOptions> {
    let asked = Spi::connect(|client| {
        KNOWN.with_borrow_mut(|plan| {
            let plan = match plan {
                Some(plan) => plan,
                None => {
                    let query = "SELECT pml_internal.pml_names_known($1, $2, $3)";
                    let types = [PgBuiltInOids::TEXTOID, PgBuiltInOids::TEXTOID, PgBuiltInOids::TEXTARRAYOID];
                    let types = types.map(pg_sys::BuiltinOid::oid);
                    plan.insert(client.prepare(query, &types)?.keep())
                }
            };
            let arguments = [org.into(), project.into(), names.to_vec().into()];
            client.select(&*plan, Some(1), &arguments)?.first().get_one::<JsonB>()
        })
    });
    let known = match asked {
        Ok(known) => known.map_or(Json::Null, |JsonB(known)| known),
        Err(error) => {
            let message = format!("The names in the code can't be looked up: {error}");
            return Err(Report { kind: Kind::Broken, message, detail: None, hint: None });
        }
    };
    Ok(CompileOptions {
        lookup: parsed("look-up", &JsonB(known["lookup"].clone()))?,
        schemas: parsed("schemas", &JsonB(known["schemas"].clone()))?,
    })
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

/// The structure with its provides edges computed anew.
#[pg_extern(sql = false)]
fn pml_structure_with(structure: JsonB, schemas: JsonB) -> JsonB {
    compiler((structure, schemas), |(structure, schemas)| {
        let mut structure: Structure = parsed("structure", structure)?;
        structure.add_provides(&parsed::<HashMap<String, ToolSchema>>("schemas", schemas)?);
        Ok(JsonB(json!(structure)))
    })
}

/// The edges between tools, from and to one of them or all, each made when it is fetched.
#[pg_extern(sql = false)]
fn pml_provides_between(
    schemas: Option<JsonB>,
    tool: Option<String>,
    at_most: Option<i64>,
) -> TableIterator<
    'static,
    (name!(from_tool, String), name!(to_tool, String), name!(coverage, String), name!(field_mapping, JsonB)),
> {
    let tools: BTreeMap<String, ToolSchema> =
        schemas.map(|schemas| compiler(schemas, |schemas| parsed("schemas", schemas))).unwrap_or_default();
    let edges = ToolsByInput::of(tools).edges(tool, || {
        pgrx::check_for_interrupts!();
    });
    let at_most = at_most.map_or(usize::MAX, |at_most| usize::try_from(at_most).unwrap_or(0));
    TableIterator::new(edges.take(at_most).map(|edge| {
        let coverage = json!(edge.coverage).as_str().unwrap_or_default().to_owned();
        (edge.from, edge.to, coverage, JsonB(json!(edge.field_mapping)))
    }))
}

/// The code of a capability that is given as code, as a DAG or as a tool.
#[pg_extern(sql = false)]
fn pml_source_code(source: JsonB) -> String {
    compiler(source, |source| source_code(&source.0))
}

fn source_code(source: &Json) -> Result<String> {
    const FORMS: &str = "Use {\"type\": \"code\", \"code\": \"…\"}, {\"type\": \"dag\", \"dagStructure\": {\"tasks\": […]}} or \
                         {\"type\": \"tool\", \"toolId\": \"server:tool\", \"defaultArgs\": {…}}.";
    match source.get("type").and_then(Json::as_str) {
        Some("code") => match source.get("code") {
            Some(Json::String(code)) => Ok(code.clone()),
            _ => Err(argument("The source has no code".to_owned(), FORMS)),
        },
        Some("dag") => {
            let dag: Dag = parsed("dagStructure", &JsonB(source["dagStructure"].clone()))?;
            if dag.tasks.is_empty() {
                return Err(argument("The DAG has no tasks".to_owned(), FORMS));
            }
            Ok(compile::dag_code(&dag)?)
        }
        Some("tool") => {
            let tool = source.get("toolId").and_then(Json::as_str).filter(|tool| tool.contains(':'));
            let tool = tool.ok_or_else(|| argument("The source names no tool".to_owned(), FORMS))?;
            match source.get("defaultArgs") {
                None | Some(Json::Null) => Ok(compile::tool_code(tool, &Map::new())),
                Some(Json::Object(defaults)) => Ok(compile::tool_code(tool, defaults)),
                Some(_) => Err(argument("defaultArgs is not an object".to_owned(), FORMS)),
            }
        }
        _ => Err(argument("The source is neither code, a DAG nor a tool".to_owned(), FORMS)),
    }
}

/// Code and parameters of what calls one after the other: `[{"name": …, "input": …, "is_inferred": …, "output": …}]`.
#[pg_extern(sql = false)]
fn pml_pipeline(sources: JsonB) -> JsonB {
    #[derive(Deserialize)]
    struct Step {
        name: String,
        #[serde(default)]
        is_inferred: bool,
        #[serde(flatten)]
        schema: ToolSchema,
    }
    compiler(sources, |sources| {
        let steps: Vec<Step> = parsed("sources", sources)?;
        let steps = steps.into_iter().map(|Step { name, is_inferred, schema }| PipelineSource {
            name,
            schema,
            is_inferred,
        });
        let made = compile::pipeline(&steps.collect::<Vec<_>>())?;
        Ok(JsonB(json!({ "code": made.code, "parameters": made.parameters })))
    })
}
