//! Odd arguments: a public function answers, or fails with an error of ours: no constraint, failed cast or internal table
//! shows.

use std::collections::BTreeMap;

use fastrand::Rng;
use pml_tests::{Ask, Database, Run};
use postgres::{Client, error::DbError};
use serde_json::json;

use crate::{
    functions::{Function, Parameter, functions},
    hostile::quoted,
    no_backtraces::{check_server_log, shows_a_backtrace},
};

/// Ours, or with our message; each has a hint.
const ALLOWED: [&str; 12] = [
    "PM001", "PM002", "PM003", "PM004", "PM005", "PM006", "PM007", "PM008", "22023", "22004", "2BP01",
    "42704",
];
/// What Postgres says of a function that only proxies and admins may call.
const NO_PRIVILEGE: &str = "permission denied for function";

/// Statements that failed in a way that nobody should see, by what they said.
#[derive(Default)]
pub(crate) struct Findings(BTreeMap<String, String>);

impl Findings {
    fn note(&mut self, statement: &str, error: &DbError) {
        let code = error.code().code();
        let shows_a_table = error.constraint().or(error.table()).or(error.column()).is_some();
        let is_ours = ALLOWED.contains(&code) && error.hint().is_some() && !shows_a_table;
        if is_ours && !shows_a_backtrace(error)
            || is_of_their_own_table(statement, error)
            || code == "42501" && error.message().starts_with(NO_PRIVILEGE)
        {
            return;
        }
        let said: String = error.message().chars().filter(|c| !c.is_ascii_digit()).take(200).collect();
        let place = error.where_().unwrap_or_default().lines().last().unwrap_or_default();
        let told = format!("{code}: {said}\n    {place}");
        self.0.entry(told).or_insert_with(|| statement.chars().take(300).collect());
    }

    pub(crate) fn check(&self) {
        let list: Vec<_> =
            self.0.iter().map(|(said, statement)| format!("{said}\n    {statement}")).collect();
        check_server_log();
        assert!(list.is_empty(), "{} kinds of error that aren't ours:\n{}", list.len(), list.join("\n"));
    }
}

/// Who writes a table by hand may be told that one of its columns is NULL, or that its key is there already.
fn is_of_their_own_table(statement: &str, error: &DbError) -> bool {
    let is_own = error.table().is_some_and(|table| {
        statement.starts_with(&format!("INSERT INTO pml.{table} "))
            || statement.starts_with(&format!("UPDATE pml.{table} "))
    });
    let is_key = || error.constraint().is_some_and(|name| name.ends_with("_pkey"));
    is_own && (error.code().code() == "23502" || error.code().code() == "23505" && is_key())
}

/// Runs a statement and what is checked when it is committed, then those that read what it wrote, and takes it all back.
pub(crate) fn try_out(db: &mut Client, findings: &mut Findings, statement: &str, readers: &[&str]) {
    let tried = db.batch_execute(&format!(
        "SAVEPOINT before; SET CONSTRAINTS ALL DEFERRED; {statement}; SET CONSTRAINTS ALL IMMEDIATE"
    ));
    match tried {
        Ok(()) => {
            for reader in readers {
                try_out(db, findings, reader, &[]);
            }
        }
        Err(error) => {
            findings
                .note(statement, error.as_db_error().unwrap_or_else(|| panic!("{statement:.300}: {error}")));
        }
    }
    db.batch_execute("ROLLBACK TO before; RELEASE before").unwrap();
}

/// What there is: things of one's own, of others, deleted, renamed, and a run that can be finished.
pub(crate) struct World {
    pub(crate) database: Database,
    texts: Vec<String>,
    pub(crate) workflow: String,
    role: String,
}

pub(crate) fn world() -> World {
    let database = Database::new();
    let mut db = database.connect();
    let role = database.create_role("bob", &[]);
    database.create_role("eve", &[]);
    database.create_role("gate", &["pml_proxy"]);
    db.batch_execute(&format!(
        "SET client_min_messages = error; SELECT pml_grant('{role}', 'local', 'default');
         SET pml.actor = 'alice';
         SELECT pml_register('return args.theirs', 'theirs:one');
         SELECT pml_register('return args.shared', 'shared:one', visibility => 'project');
         SET pml.org = 'other'; SELECT pml_register('return args.public', 'public:one', visibility => 'public'); RESET pml.org;
         SELECT pml_register('return args.gone', 'gone:one', visibility => 'project'), pml_delete('gone:one')"
    ))
    .unwrap();
    let mut bob = database.connect_as("bob");
    bob.batch_execute(
        r#"SET client_min_messages = error;
         SELECT pml_register('return { a: args.a }', 'known:one', 'one', version_tag => 'v1.0.0', tags => '{x}');
         SELECT pml_register('return args.b + 1', 'known:two'), pml_register('return mcp.known.two({ b: 1 })', 'known:caller');
         SELECT pml_register('return 1', 'old:one'), pml_rename('old:one', 'new:one');
         SELECT pml_register('return 7'), pml_register_server('files', 'local', 'https://x.example/files');
         SELECT pml_register_tools('files', '[{"name": "read", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}]')"#,
    )
    .unwrap();
    let plan =
        bob.begin(&json!({"code": "return await mcp.files.read({ path: args.p })", "args": {"p": "x"}}));
    let mut texts = db.texts("SELECT id FROM pml.capability_records WHERE org <> 'pml'");
    texts.extend(db.texts("SELECT display_name FROM pml.capability_records WHERE org <> 'pml'"));
    texts.extend(TEXTS.map(str::to_owned));
    texts.extend(["x".repeat(100_000), "é🦀".repeat(1000), format!("known:{}", "x".repeat(122))]);
    World { database, texts, workflow: plan["workflow_id"].as_str().unwrap().to_owned(), role }
}

const TEXTS: [&str; 57] = [
    "",
    " ",
    "x",
    "a b",
    "a\u{1}b",
    "\u{202e}",
    "..",
    "@",
    "a@@b",
    ":::",
    ":",
    "known:one@v1",
    "known:one@v1.0.0",
    "known:one@v99",
    "known:one@2999-01-01",
    "known:one@99999-99-99",
    "known:one@99999999999999999999",
    "known:one@-1",
    "known:one@latest",
    "old:one",
    "mcp:files",
    "mcp:filesystem",
    "files:read",
    "local.default:known:one",
    "other.default:public:one",
    "-1",
    "NaN",
    "1e400",
    "null",
    "{}",
    "[]",
    "{\"a\": 1}",
    "%",
    "*",
    "\\",
    "'",
    "((((a|a)*)*)*)*b",
    "[",
    "return 1",
    "return (",
    "return \"\\u0000\\ud800\"",
    "return mcp[\"known:one\"]({ a: 1 })",
    "return mcp.known.two()",
    "private",
    "public",
    "local",
    "capability",
    "mcp-server",
    "v1.0.0",
    "v2.0.0",
    "v99999999999999999999.0.0",
    "mcp__known__one",
    "mcp__files__read",
    "cap_lookup",
    "pml_discover",
    "infinity",
    "pml_admin",
];

pub(crate) const JSONS: [&str; 45] = [
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e400",
    "-1e-400",
    "2147483648",
    "99999999999999999999",
    "\"\"",
    "\"x\"",
    "\"NaN\"",
    "\"known:one\"",
    "\"mcp:files\"",
    "[]",
    "[null]",
    "[1]",
    "[[]]",
    "[\"x\", null]",
    "[\"known:one\", \"known:two\"]",
    "[\"known:one\", \"mcp:files\"]",
    "[{}]",
    "{}",
    "{\"x\": null}",
    "{\"\": {\"\": \"\"}}",
    "{\"type\": \"object\"}",
    "{\"type\": 5}",
    "{\"type\": [\"object\", \"null\"]}",
    "{\"type\": [null]}",
    "{\"type\": \"nonsense\"}",
    "{\"type\": \"object\", \"properties\": []}",
    "{\"type\": \"object\", \"properties\": {\"a\": 5}}",
    "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\", \"pattern\": \"(\"}}}",
    "{\"type\": \"object\", \"required\": \"x\"}",
    "{\"type\": \"object\", \"required\": [1, null]}",
    "{\"$ref\": \"#\"}",
    "{\"$ref\": \"https://x.example\"}",
    "{\"type\": \"code\"}",
    "{\"type\": \"code\", \"code\": 5}",
    "{\"type\": \"code\", \"code\": \"return 5\"}",
    "{\"type\": \"dag\", \"dagStructure\": 5}",
    "{\"type\": \"dag\", \"dagStructure\": {\"tasks\": [null]}}",
    "{\"type\": \"dag\", \"dagStructure\": {\"tasks\": [{\"id\": \"a\", \"tool\": \"files:read\", \"arguments\": {}, \"dependsOn\": [\"a\"]}]}}",
    "{\"type\": \"tool\", \"toolId\": \"files:read\", \"defaultArgs\": [1]}",
    "{\"type\": \"tool\", \"toolId\": \"files:read\", \"defaultArgs\": {\"path\": null}}",
];

/// Values that only the type `json` lets through.
const JSON_TEXTS: [&str; 3] = ["\"\\u0000\"", "\"\\ud800\"", "{\"a\\u0000b\": 1, \"a\": 1, \"a\": 2}"];

impl World {
    pub(crate) fn odd(&self, kind: &str) -> Vec<String> {
        let cast =
            |values: &[&str]| values.iter().map(|value| format!("{value}::{kind}")).collect::<Vec<_>>();
        let mut values = match kind {
            "text" | "name" => self.texts.iter().map(|text| format!("{}::{kind}", quoted(text))).collect(),
            "json" | "jsonb" => {
                let odd = JSONS.iter().chain(JSON_TEXTS.iter().filter(|_| kind == "json"));
                let mut odd: Vec<String> = odd.map(|value| format!("{}::{kind}", quoted(value))).collect();
                odd.push(format!("'{}{}'::{kind}", "[".repeat(1000), "]".repeat(1000)));
                odd
            }
            "uuid[]" => {
                let mut odd = cast(&["'{}'", "'{NULL}'", "ARRAY[gen_random_uuid(), gen_random_uuid()]"]);
                odd.push(format!("'{{{{{0}}}}}'::uuid[]", self.workflow));
                odd
            }
            "jsonb[]" => {
                let mut odd = cast(&["'{}'", "'{NULL}'", "'{{1}}'", "'[5:5]={1}'"]);
                odd.extend(JSONS.iter().map(|value| format!("ARRAY[{}::jsonb]", quoted(value))));
                odd
            }
            "uuid" => cast(&["gen_random_uuid()", &quoted(&self.workflow)]),
            "text[]" => cast(&[
                "'{}'",
                "'{NULL}'",
                "'{x,NULL}'",
                "'{\"\"}'",
                "'{{a,b},{c,d}}'",
                "'[5:6]={a,b}'",
                "'{known:one,known:two}'",
                "'{known:one,mcp:files}'",
                "'{known:one,theirs:one}'",
                "'{files:read}'",
                "array_fill(repeat('x', 100), ARRAY[1000])",
            ]),
            "boolean" => cast(&["true", "false"]),
            "integer" => cast(&["0", "1", "-1", "2147483647", "(-2147483648)"]),
            "bigint" => cast(&["0", "1", "-1", "9223372036854775807", "(-9223372036854775808)"]),
            "real" => cast(&["0", "-1", "'NaN'", "'Infinity'", "'-Infinity'", "'1e38'"]),
            "timestamp with time zone" => {
                cast(&["now()", "'infinity'", "'-infinity'", "'294276-12-31'", "'4713-01-01 BC'"])
            }
            other => panic!("no odd values of type {other}"),
        };
        values.push(format!("NULL::{kind}"));
        values
    }

    /// A value with which the function does what it is for.
    fn good(&self, function: &str, parameter: &Parameter) -> String {
        if parameter.kind.ends_with("[]") && function == "pml_finish_many" {
            let element = match parameter.name.as_str() {
                "workflow_ids" => "00000000-0000-7000-8000-000000000001",
                "contexts" => r#"{"hash": "x"}"#,
                "outcomes" => r#"{"success": true, "result": 1}"#,
                "args" => "{}",
                _ => "local",
            };
            return format!("ARRAY[{}]::{}", quoted(element), parameter.kind);
        }
        let value = match (function, parameter.name.as_str(), parameter.kind.as_str()) {
            ("pml_rename", "name", _) => "known:one",
            ("pml_fork", "source", _) | ("pml_callable", "name", _) => "known:one",
            ("pml_register_server", "name", _) => "files",
            ("pml_is_unnamed", _, _) => "x",
            (_, "name" | "new_name", _) => "fresh:one",
            ("pml_ask" | "pml_cap", "tool", _) => "cap_lookup",
            ("pml_check_args", "args", _) => "{}",
            ("pml_parse_fqdn", _, _) => "local.default.known.one.abcd",
            ("pml_visible", "visibility", _) => "public",
            ("pml_register_tools", "tools", _) => r#"[{"name": "read"}]"#,
            ("pml_routing", "tools", _) => "{files:read}",
            (_, "role_name", _) => &self.role,
            (_, "spec", _) => "known:one",
            (_, "sources", _) => "{known:one,known:two}",
            (_, "alias", _) => "old:one",
            (_, "code" | "old" | "new", _) => "return args.a",
            (_, "tag", _) => "v1.0.0",
            (_, "org", _) => "local",
            (_, "project", _) => "default",
            (_, "namespace" | "server", _) => "files",
            (_, "action" | "tool", _) => "read",
            (_, "actor" | "created_by" | "request_id" | "intent" | "old_label" | "new_label", _) => "bob",
            (_, "schema", _) => r#"{"type": "object"}"#,
            (_, "token_hash", _) => "abababababababababababababababababababababababababababababababab",
            (_, "workflow_id" | "report" | "id", "uuid") => &self.workflow,
            (_, "task_id", _) => "result",
            (_, "request", _) => r#"{"capability": "known:one"}"#,
            (_, "outcome", _) => r#"{"success": true, "result": 1}"#,
            (_, "calls", _) => r#"[{"server": "files", "tool": "read", "success": true}]"#,
            (_, "success", _) => "true",
            (_, "duration_ms", _) => "1",
            (_, name, _) => panic!("{function}: no good value for {name}"),
        };
        format!("{}::{}", quoted(value), parameter.kind)
    }

    /// A call with these values for some of the parameters; the others have good ones, or their defaults.
    fn call(&self, function: &Function, given: &[(&Parameter, String)]) -> String {
        let arguments: Vec<String> = function
            .parameters
            .iter()
            .filter_map(|parameter| {
                let odd =
                    given.iter().find(|(odd, _)| odd.name == parameter.name).map(|(_, value)| value.clone());
                let value = match odd {
                    Some(value) => value,
                    None if parameter.has_default => return None,
                    None => self.good(&function.name, parameter),
                };
                Some(format!("\"{}\" => {value}", parameter.name))
            })
            .collect();
        format!("SELECT * FROM {}({})", function.name, arguments.join(", "))
    }

    /// Sessions of everybody who may call, each in a transaction that is never committed.
    pub(crate) fn sessions(&self) -> Vec<Client> {
        let mut sessions = vec![self.database.connect()];
        sessions.extend(["bob", "eve", "gate"].map(|kind| self.database.connect_as(kind)));
        for db in &mut sessions {
            db.batch_execute("SET client_min_messages = error; SET statement_timeout = '60s'; BEGIN")
                .unwrap();
        }
        sessions
    }
}

/// Only what everybody sees: `pml_internal` isn't on the search path.
const PUBLIC: &str = "p.pronamespace = 'public'::regnamespace";

#[test]
fn every_public_function_refuses_odd_arguments_with_an_error_of_ours() {
    let world = world();
    let public = functions(&mut world.database.connect(), PUBLIC);
    let mut sessions = world.sessions();
    let mut findings = Findings::default();
    let mut tried = 0;
    for function in &public {
        for parameter in &function.parameters {
            for value in world.odd(&parameter.kind) {
                let statement = world.call(function, &[(parameter, value)]);
                for db in &mut sessions {
                    try_out(db, &mut findings, &statement, &[]);
                }
                tried += 1;
            }
        }
        if function.parameters.is_empty() {
            for db in &mut sessions {
                try_out(db, &mut findings, &world.call(function, &[]), &[]);
            }
        }
    }
    assert!(public.len() > 60 && tried > 4000, "{} functions, {tried} calls", public.len());
    findings.check();
}

#[test]
fn odd_arguments_together_are_refused_with_an_error_of_ours() {
    let world = world();
    let public = functions(&mut world.database.connect(), PUBLIC);
    let mut sessions = world.sessions();
    let mut findings = Findings::default();
    // Always the same ones: a test that fails now and then finds nothing.
    let mut random = Rng::with_seed(22);
    for function in public.iter().filter(|function| function.parameters.len() > 1) {
        for _ in 0..60 {
            let mut given = Vec::new();
            for parameter in &function.parameters {
                if random.u8(..3) > 0 {
                    let odd = world.odd(&parameter.kind);
                    given.push((parameter, odd[random.usize(..odd.len())].clone()));
                }
            }
            let statement = world.call(function, &given);
            for db in &mut sessions[..2] {
                try_out(db, &mut findings, &statement, &[]);
            }
        }
    }
    findings.check();
}
