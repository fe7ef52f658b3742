//! A generator of hostile statements: every function, view, table, lock and shadow that a role can reach, by a role without
//! a grant, one with a grant to a single scope, and a proxy that acts for somebody else. What others keep secret holds
//! canaries, which the attackers never write: no answer, error, notice, plan or notification may hold one. Nothing of the
//! others may change, and meanwhile they go on working.
//!
//! `PML_HOSTILE_SECONDS` is how long it runs (a minute), `PML_HOSTILE_SEED` repeats a run.

use std::{
    env,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use pml_tests::{Ask, Database, Run};
use postgres::{
    Client, SimpleQueryMessage,
    error::{Error, SqlState},
};
use serde_json::{Map, Value, json};

use crate::functions::{Function, functions};

const CANARY: &str = "CaNaRy";
/// A statement of the others that takes longer was held up.
const BOUND: &str = "20s";

/// What the victims have: things whose names attackers know, and things of which they know nothing.
fn keep_secrets(db: &mut Client) {
    for (org, project, visibility) in [
        ("other", "webapp", "private"),
        ("other", "webapp", "org"),
        ("acme", "mobile", "project"),
        ("acme", "webapp", "private"),
    ] {
        let mark = format!("{CANARY}_{org}_{project}_{visibility}");
        db.batch_execute(&format!(
            "SET pml.org = '{org}'; SET pml.project = '{project}'; SET pml.actor = 'alice';
             SELECT pml_register('return mcp.vault.open({{ key: \"{mark}\" }})', 'known:{visibility}', '{mark}', tags => ARRAY['{mark}'], visibility => '{visibility}', version_tag => 'v1.0.0');
             SELECT pml_update('known:{visibility}', 'return \"{mark} two\"', change_summary => '{mark}');
             SELECT pml_register('return \"{mark} unknown\"', '{mark}:name', visibility => '{visibility}'), pml_rename('{mark}:name', '{mark}:other');
             SELECT pml_tool_used('vault', '{mark}', false, 3, '{mark}')"
        ))
        .unwrap();
        // The tools of a scope are seen by all who act in it.
        if (org, project) != ("acme", "webapp") {
            db.batch_execute(&format!(
                "SELECT pml_register_tools('vault', '[{{\"name\": \"open\", \"description\": \"{mark}\", \"inputSchema\": {{\"type\": \"object\", \"properties\": {{\"{mark}\": {{}}}}}}}}, {{\"name\": \"{mark}\"}}]')"
            ))
            .unwrap();
        }
        let outcome = json!({"success": true, "result": mark, "duration_ms": 1, "tasks": [
            {"kind": "tool", "target": "vault:open", "args": {"key": mark}, "success": true, "result": mark}]});
        let plan = db.begin(&json!({"capability": format!("known:{visibility}"), "intent": mark}));
        db.finish(&plan, &outcome);
        db.begin(&json!({"code": format!("return \"{mark} begun\""), "intent": mark}));
    }
    db.batch_execute(&format!(
        "SELECT pml_token_add(repeat('ab', 32), 'other', 'webapp', '{CANARY}', '{CANARY}');
         SET pml.org = 'other'; SET pml.project = 'webapp'; SET pml.actor = 'victor'; SELECT pml_register('return 1', 'shared:one', visibility => 'public')"
    ))
    .unwrap();
}

/// All rows of those who only watch; victor goes on working.
const OTHERS: &str = "
SELECT x FROM (
  SELECT r::text FROM pml.capability_records r WHERE created_by = 'alice' OR created_by = 'pml'
  UNION ALL SELECT v::text FROM pml.capability_versions v WHERE updated_by = 'alice' OR updated_by = 'pml'
  UNION ALL SELECT a::text FROM pml.capability_aliases a WHERE (org, project) <> ('acme', 'webapp')
  UNION ALL SELECT h::text FROM pml.capability_rename_history h WHERE renamed_by = 'alice'
  UNION ALL SELECT t::text FROM pml.tool_schema t WHERE (org, project) <> ('acme', 'webapp') AND server_id <> 'busy'
  UNION ALL SELECT n::text FROM pml.tool_names n WHERE (org, project) <> ('acme', 'webapp') AND name NOT LIKE 'busy:%'
  UNION ALL SELECT c::text FROM pml.name_claims c WHERE (org, project) <> ('acme', 'webapp') AND name NOT LIKE 'unnamed%'
  UNION ALL SELECT t::text FROM pml.tokens t UNION ALL SELECT g::text FROM pml.scope_grants g
  UNION ALL SELECT w::text FROM pml.workflow_state w WHERE actor = 'alice'
  UNION ALL SELECT e::text FROM pml.execution_trace e WHERE user_id = 'alice'
  UNION ALL SELECT t::text FROM pml.task_results t WHERE actor = 'alice'
  UNION ALL SELECT u::text FROM pml.tool_usage u WHERE actor = 'alice'
  UNION ALL SELECT d::text FROM pml.capability_dependencies d WHERE from_fqdn NOT LIKE 'acme.webapp.%' AND from_fqdn NOT LIKE '%.exec_%'
  UNION ALL SELECT proname || proowner::text || coalesce(proacl::text, '') || coalesce(prosrc, '') FROM pg_proc WHERE proname LIKE 'pml\\_%' AND pronamespace IN ('public'::regnamespace, 'pml_internal'::regnamespace)
  UNION ALL SELECT rolname || rolsuper || rolcanlogin FROM pg_roles WHERE rolname LIKE 'pml\\_%'
  UNION ALL SELECT relname || coalesce(relacl::text, '') || relrowsecurity FROM pg_class WHERE relnamespace = 'pml'::regnamespace
) AS rows (x) ORDER BY 1";

/// What attackers know of: everything but the canaries.
struct Known {
    functions: Vec<Function>,
    relations: Vec<String>,
    catalog: Vec<String>,
    specs: Vec<String>,
    uuids: Vec<String>,
    trigger_functions: Vec<String>,
}

fn reconnoitre(db: &mut Client) -> Known {
    // With these a proxy's role works as anybody, which is what it is for.
    let functions = functions(db, "p.proname NOT IN ('pml_act_as', 'pml_finish_many')");
    let mut specs =
        db.texts(&format!("SELECT id FROM pml.capability_records WHERE id NOT LIKE '%{CANARY}%'"));
    for scope in ["other.webapp", "acme.mobile", "acme.webapp", "pml.std"] {
        for name in ["known:private", "known:org", "known:project", "shared:one", "mcp:filesystem"] {
            specs.push(format!("{scope}:{name}"));
            specs.push(format!("{name}@v1.0.0"));
        }
    }
    Known {
        functions,
        relations: db.texts("SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'pml'::regnamespace AND relkind IN ('r', 'p', 'v', 'S', 'i')"),
        catalog: db.texts("SELECT oid::regclass::text FROM pg_class WHERE relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) AND relkind IN ('r', 'v')"),
        uuids: db.texts("SELECT workflow_id::text FROM pml.workflow_state UNION SELECT id::text FROM pml.execution_trace UNION SELECT id::text FROM pml.tokens"),
        trigger_functions: db.texts("SELECT p.oid::regproc::text FROM pg_proc p WHERE p.proname LIKE 'pml\\_%' AND p.prorettype = 'trigger'::regtype"),
        specs,
    }
}

pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Writes statements that nobody should write.
struct Author {
    known: Arc<Known>,
    random: Rng,
}

impl Author {
    fn pick<'a>(&mut self, from: &'a [String]) -> &'a str {
        &from[self.random.usize(..from.len())]
    }

    fn one_of<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.random.usize(..from.len())]
    }

    fn spec(&mut self) -> String {
        let known = self.known.clone();
        let spec = self.pick(&known.specs).to_owned();
        match self.random.u8(..6) {
            0 => format!("{spec}@v1"),
            1 => format!("{spec}@2999-01-01"),
            _ => spec,
        }
    }

    fn text(&mut self) -> String {
        match self.random.u8(..14) {
            0..6 => self.spec(),
            6 => format!("return mcp[\"{}\"]({{}})", self.spec()),
            7 => format!("const a = capabilities[\"{}\"]; return a(args)", self.spec()),
            8 => "x".repeat(self.random.usize(..70_000)),
            9 => ["%", "*", "_", "\\", "'; DROP EXTENSION pml; --", "\u{202e}é\u{1F600}", "", "$1", "public"]
                [self.random.usize(..9)]
            .to_owned(),
            10 => self
                .one_of(&[
                    "acme", "other", "webapp", "alice", "pml", "std", "private", "public", "name", "vault",
                    "open",
                ])
                .to_owned(),
            11 => "((((a|a)*)*)*)*b".to_owned(),
            12 => "open the vault, known thing".to_owned(),
            _ => format!("mine:{}", self.random.u16(..)),
        }
    }

    fn json(&mut self) -> String {
        let (spec, text) = (self.spec(), self.text());
        let value = match self.random.u8(..14) {
            0 => json!({"capability": spec}),
            1 => json!({"code": format!("return mcp[\"{spec}\"]()"), "name": text}),
            2 => json!({"code": text, "intent": spec}),
            3 => json!({"tool": "mcp__vault__open", "args": {"x": text}}),
            4 => json!({"intent": "open the vault"}),
            5 => {
                json!({"success": true, "result": 1, "tasks": [{"kind": "capability", "target": spec, "success": true, "run": {"success": true, "fqdn": spec}}]})
            }
            6 => json!({"success": true, "fqdn": spec, "duration_ms": 1e300}),
            7 => {
                json!([{"name": "open", "inputSchema": {"type": "object", "properties": {"a": {}}}}, {"name": text}])
            }
            8 => json!({"type": "tool", "toolId": "vault:open", "defaultArgs": {"a": 1}}),
            9 => {
                json!({"name": spec, "new_name": text, "visibility": "public", "source": spec, "sources": [spec, text]})
            }
            10 => json!([{"server": "vault", "tool": "open", "success": true, "duration_ms": -1}]),
            11 => json!({"nodes": [{"id": "n1", "type": "capability", "capabilityId": spec}], "edges": []}),
            12 => self.schema(),
            _ => return ["[".repeat(3000), "]".repeat(3000)].concat(),
        };
        value.to_string()
    }

    /// A schema of few bytes that takes a validator long: each level refers to the next, once or twice.
    fn schema(&mut self) -> Value {
        let (times, levels) = (self.random.usize(1..3), self.random.usize(20..2_000));
        let level = |n: usize| {
            let next = json!({"$ref": format!("#/$defs/d{}", (n + 1) % (levels + 1))});
            (
                format!("d{n}"),
                if n == levels { json!({"type": "object"}) } else { json!({"allOf": vec![next; times]}) },
            )
        };
        let keyword = self.one_of(&["unevaluatedProperties", "unevaluatedItems", "additionalProperties"]);
        let defs: Map<String, Value> = (0..=levels).map(level).collect();
        json!({"$ref": "#/$defs/d0", keyword: false, "$defs": defs})
    }

    fn argument(&mut self, kind: &str) -> String {
        if self.random.u8(..20) == 0 {
            return format!("NULL::{kind}");
        }
        match kind {
            "text" | "name" => format!("{}::{kind}", quoted(&self.text())),
            "jsonb" => format!("{}::jsonb", quoted(&self.json())),
            "uuid" => {
                let known = self.known.clone();
                format!("{}::uuid", quoted(self.pick(&known.uuids)))
            }
            "text[]" => format!("ARRAY[{}, {}]::text[]", quoted(&self.text()), quoted(&self.spec())),
            "boolean" => self.one_of(&["true", "false"]).to_owned(),
            "integer" | "bigint" | "real" => {
                format!("{}::{kind}", self.one_of(&["0", "1", "-1", "100", "2147483647", "-2147483648"]))
            }
            "timestamp with time zone" => {
                format!("{}::timestamptz", self.one_of(&["'infinity'", "'-infinity'", "now()"]))
            }
            "oid" => "10::oid".to_owned(),
            other => format!("NULL::{other}"),
        }
    }

    fn call(&mut self) -> String {
        let known = self.known.clone();
        let Function { name, parameters } = &known.functions[self.random.usize(..known.functions.len())];
        let arguments: Vec<String> =
            parameters.iter().map(|parameter| self.argument(&parameter.kind)).collect();
        format!("{name}({})", arguments.join(", "))
    }

    fn query(&mut self) -> String {
        let known = self.known.clone();
        let condition = match self.random.u8(..4) {
            0 => format!(" WHERE x::text LIKE {}", quoted(&format!("%{}%", self.spec()))),
            1 => " ORDER BY x::text DESC LIMIT 3".to_owned(),
            _ => String::new(),
        };
        let call = self.call();
        match self.random.u8(..8) {
            0 => format!("SELECT x FROM {} AS x{condition}", self.pick(&known.relations)),
            1 => format!("SELECT {call}, pml_actor()"),
            2 => format!("SELECT row_to_json(x) FROM {call} AS x{condition}"),
            3 => format!("SELECT count(*) FROM {call} AS x, {} AS y", self.call()),
            _ => format!("SELECT x::text FROM {call} AS x{condition}"),
        }
    }

    fn statement(&mut self) -> String {
        let known = self.known.clone();
        match self.random.u8(..40) {
            0..18 => self.query(),
            18..22 => {
                let options = self.one_of(&["", "VERBOSE", "ANALYZE", "(ANALYZE, BUFFERS, WAL, VERBOSE, SETTINGS)", "(ANALYZE, FORMAT JSON)", "(ANALYZE, FORMAT XML, TIMING OFF)"]).to_owned();
                format!("EXPLAIN {options} {}", self.query())
            }
            22..24 => format!("SELECT x::text FROM {} AS x", self.pick(&known.catalog)),
            24 => format!("COPY (SELECT * FROM {}) TO STDOUT", self.pick(&known.relations)),
            25 => format!("LOCK TABLE {} IN {} MODE", self.pick(&known.relations), self.one_of(&["ACCESS SHARE", "ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"])),
            26 => format!("SELECT pg_advisory_xact_lock(hashtext({}))", quoted(self.one_of(&["pml.capability_dependencies", "pml.tools.other.webapp", "pml"]))),
            27 => {
                let relation = self.pick(&known.relations).to_owned();
                let form = self.one_of(&["DELETE FROM X", "UPDATE X SET org = 'acme'", "INSERT INTO X DEFAULT VALUES", "TRUNCATE X", "SELECT * FROM X FOR UPDATE", "ALTER TABLE X DISABLE ROW LEVEL SECURITY", "DROP TABLE X", "CREATE POLICY p ON X USING (true)", "GRANT ALL ON X TO PUBLIC", "CREATE INDEX ON X ((1))", "ANALYZE X", "VACUUM X", "CREATE RULE r AS ON INSERT TO X DO ALSO SELECT 1", "COMMENT ON TABLE X IS 'mine'"]);
                form.replace('X', &relation)
            }
            28 => format!("SET {}", self.one_of(&["client_min_messages = debug5", "client_min_messages = notice", "debug_print_plan = on", "debug_print_rewritten = on", "row_security = off", "row_security = on", "enable_indexscan = off", "enable_seqscan = off", "plan_cache_mode = force_custom_plan", "force_parallel_mode = on", "force_parallel_mode = off", "work_mem = '64kB'", "search_path = mine, pg_catalog, public", "search_path = public", "jit = on", "jit_above_cost = 0", "trace_sort = on", "session_replication_role = replica", "pml.force_delete = on", "pml.restore_version = on", "pml.name_reservation = 0", "default_transaction_isolation = 'serializable'", "transform_null_equals = on", "array_nulls = off", "role = pml_engine", "role = pml_keeper", "role = pml_admin", "session_authorization = postgres", "local_preload_libraries = 'pml'"])),
            29 => format!("SET pml.{} = {}", self.one_of(&["org", "project", "actor"]), quoted(self.one_of(&["acme", "other", "webapp", "mobile", "alice", "pml", "std", "postgres", "a.b", ""]))),
            30 => format!("CREATE TRIGGER t{} BEFORE INSERT ON trap FOR EACH ROW EXECUTE FUNCTION {}()", self.random.u16(..), self.pick(&known.trigger_functions)),
            31 => self.one_of(&["INSERT INTO trap VALUES ('a', 'b', 'c', 'd')", "UPDATE trap SET org = 'x'", "DELETE FROM trap"]).to_owned(),
            32 => self.one_of(&[
                "CREATE OR REPLACE FUNCTION mine.pml_visible(text, text, text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
                "CREATE OR REPLACE FUNCTION pml_internal.pml_visible(text, text, text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
                "CREATE OR REPLACE FUNCTION mine.jsonb_build_object(VARIADIC text[]) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', current_user; RETURN '{}'; END $$",
                "CREATE OPERATOR mine.= (LEFTARG = text, RIGHTARG = text, FUNCTION = mine.same)",
                "CREATE TEMP TABLE IF NOT EXISTS capability_records (id text, display_name text, org text)",
                "CREATE EVENT TRIGGER watch ON ddl_command_end EXECUTE FUNCTION mine.watch()",
                "CREATE CAST (text AS mine.d) WITH FUNCTION mine.same(text)",
                "CREATE SCHEMA pml_internal2", "CREATE EXTENSION pml", "DROP EXTENSION pml", "ALTER EXTENSION pml UPDATE",
                "ALTER ROLE pml_keeper LOGIN", "GRANT pml_admin TO CURRENT_USER", "CREATE ROLE x IN ROLE pml_admin",
                "LOAD 'pml'", "CREATE FUNCTION mine.gate() RETURNS text LANGUAGE c AS '$libdir/pml', 'pml_gate'",
                "CREATE PUBLICATION p FOR ALL TABLES", "SELECT pg_read_file('postgresql.conf')", "SELECT lo_import('/etc/passwd')",
                "CREATE VIEW mine.v AS SELECT * FROM pml.capabilities", "SELECT * FROM mine.v",
                "CREATE OR REPLACE FUNCTION mine.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RAISE NOTICE 'saw %', $1; RETURN true; END $$",
                "SELECT count(*) FROM pml.capabilities WHERE mine.leak(code)", "SELECT count(*) FROM pml.runs WHERE mine.leak(args::text)",
            ]).to_owned(),
            33 => format!("DO $$ BEGIN PERFORM {}; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLERRM, pml_actor(); END $$", self.call().replace("$$", "")),
            34 => format!("PREPARE s{} AS {}", self.random.u16(..), self.query()),
            35 => format!("DECLARE c{} CURSOR WITH HOLD FOR {}", self.random.u16(..), self.query()),
            36 => format!("CREATE TEMP TABLE t{} AS {}", self.random.u16(..), self.query()),
            37 => format!("NOTIFY {}, {}", self.one_of(&["pml_tools_changed", "pml_tokens_changed"]), quoted(self.one_of(&["other.webapp", "x", ""]))),
            // In a serializable transaction these locks would tell which hidden rows there are.
            38 if self.random.bool() => format!("SELECT 'CaNa' || 'Ry' FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'SIReadLock' AND page IS NOT NULL AND relation = ANY ({}::regclass[])", quoted(&format!("{{{}}}", known.relations.join(",")))),
            38 => format!("SELECT {}", self.one_of(&["pg_stat_get_xact_tuples_fetched('pml.capability_records'::regclass)", "pg_get_functiondef('pml_internal.pml_register'::regproc)", "pg_relation_size('pml.tokens')", "pg_stat_reset()", "pg_terminate_backend(pid) FROM pg_stat_activity", "pg_cancel_backend(pid) FROM pg_stat_activity", "current_setting('pml.actor')", "txid_current()", "pg_ls_dir('.')", "has_table_privilege('pml.tokens', 'SELECT')"])),
            _ => self.one_of(&["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "DISCARD ALL", "FETCH ALL FROM c1", "RESET ALL"]).to_owned(),
        }
    }
}

/// Everything that the server says to a statement.
fn answer_of(result: Result<Vec<SimpleQueryMessage>, Error>) -> String {
    match result {
        Ok(messages) => messages
            .iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => {
                    Some((0..row.len()).filter_map(|column| row.get(column)).collect::<Vec<_>>().join(" "))
                }
                _ => None,
            })
            .collect(),
        Err(error) => error.as_db_error().map_or_else(|| error.to_string(), |said| format!("{said:?}")),
    }
}

struct Attacker {
    kind: &'static str,
    setting: &'static str,
}

const ATTACKERS: [Attacker; 3] = [
    Attacker {
        kind: "eve",
        setting: "SET pml.org = 'other'; SET pml.project = 'webapp'; SET pml.actor = 'alice'",
    },
    Attacker {
        kind: "bob",
        setting: "SET pml.org = 'acme'; SET pml.project = 'webapp'; SET pml.actor = 'alice'",
    },
    Attacker {
        kind: "gate",
        setting: "SET pml.org = 'acme'; SET pml.project = 'webapp'; SET pml.actor = 'mallory'",
    },
];

/// What an attacker's session begins with: objects of its own that shadow ours, and an ear for notifications.
fn prepare(db: &mut Client, attacker: &Attacker) {
    db.batch_execute(
        "SET statement_timeout = '2s'; SET idle_in_transaction_session_timeout = 0; LISTEN pml_tools_changed; LISTEN pml_tokens_changed;
         CREATE FUNCTION pg_temp.evil(v text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING MESSAGE = 'ran' || ' as ' || current_user; END $$;
         CREATE DOMAIN pg_temp.d AS text CHECK (pg_temp.evil(VALUE));
         CREATE TEMP TABLE trap (org text, project text, tool_id text, tool_name pg_temp.d)",
    )
    .unwrap();
    db.batch_execute(attacker.setting).unwrap();
}

fn attack(
    database: &Database,
    attacker: &Attacker,
    known: &Arc<Known>,
    seed: u64,
    until: Instant,
) -> (usize, usize, Option<String>) {
    let mut author = Author { known: known.clone(), random: Rng::with_seed(seed) };
    let role = database.role(attacker.kind);
    let (mut made, mut went_through) = (0, 0);
    let (mut db, notices) = database.connect_as_with_notices(attacker.kind);
    prepare(&mut db, attacker);
    while Instant::now() < until {
        let statement = author.statement();
        let result = db.simple_query(&statement);
        // A session that ended, or that forgot who it is, begins again.
        if db.is_closed() || statement == "DISCARD ALL" || statement == "RESET ALL" {
            drop(db);
            db = database.connect_as_keeping(attacker.kind, &notices);
            prepare(&mut db, attacker);
        }
        // What it says it acts for is its own affair; a proxy may be anybody it says, so that it says only mallory.
        if attacker.kind == "gate" && statement.starts_with("SET pml.") {
            let _ = db.batch_execute(attacker.setting);
        }
        went_through += usize::from(result.is_ok());
        // In a transaction that has failed, nothing more is tried.
        if result.as_ref().is_err_and(|error| error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION)) {
            let _ = db.simple_query("ROLLBACK");
        }
        let mut heard = answer_of(result);
        heard.extend(notices.take().iter().map(|notice| format!("{notice:?}")));
        heard.extend(db.notifications_for(Duration::ZERO));
        made += 1;
        // XX000 is what an internal error or a panic says.
        if heard.contains(CANARY)
            || heard.contains("SqlState(EXX000)")
            || (heard.contains("ran as ") && !heard.contains(&format!("ran as {role}")))
        {
            let at = [CANARY, "EXX000", "ran as "].iter().find_map(|sign| heard.find(sign)).unwrap_or(0);
            let around: String = heard.chars().skip(at.saturating_sub(200)).take(400).collect();
            return (made, went_through, Some(format!("{role}: {statement:.500}\n…{around}…")));
        }
    }
    (made, went_through, None)
}

/// The others go on: what they ask is answered within the bound, or fails.
fn go_on(database: &Database, over: &AtomicBool) -> usize {
    let mut db = database.connect();
    db.batch_execute(&format!(
        "SET statement_timeout = '{BOUND}'; SET client_min_messages = error; SET pml.org = 'other'; SET pml.project = 'webapp'; SET pml.actor = 'victor'"
    ))
    .unwrap();
    let mut rounds = 0;
    while !over.load(Ordering::Relaxed) {
        db.text("SELECT pml_resolve('shared:one')", &[]).unwrap();
        db.run(&json!({"capability": "shared:one"}), &json!(1));
        let code = format!("return mcp.shared.one({{ round: {} }})", rounds % 5);
        db.run(&json!({"code": code}), &json!(rounds));
        db.batch_execute("SELECT pml_register_tools('busy', json_build_array(json_build_object('name', 'tool', 'description', clock_timestamp()::text)))").unwrap();
        rounds += 1;
        // Two cores are shared with those who attack.
        thread::sleep(Duration::from_millis(20));
    }
    rounds
}

#[test]
fn no_statement_of_a_hostile_role_learns_changes_or_stops_anything() {
    let number = |name: &str| env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seconds = number("PML_HOSTILE_SECONDS").unwrap_or(60);
    let seed = number("PML_HOSTILE_SEED").unwrap_or_else(|| fastrand::u64(..));
    let database = Database::new();
    let mut db = database.connect();
    database.create_role("eve", &[]);
    let bob = database.create_role("bob", &[]);
    database.create_role("gate", &["pml_proxy"]);
    for attacker in &ATTACKERS {
        let role = database.role(attacker.kind);
        db.batch_execute(&format!("GRANT TEMPORARY ON DATABASE {} TO {role}", database.name)).unwrap();
    }
    db.batch_execute(&format!(
        "SET client_min_messages = error; CREATE SCHEMA mine; GRANT ALL ON SCHEMA mine TO PUBLIC; SELECT pml_grant('{bob}', 'acme', 'webapp')"
    ))
    .unwrap();
    keep_secrets(&mut db);
    // A proxy's role may fold counts; with those folded now, that changes nothing of others.
    db.batch_execute("SELECT pml_fold_usage()").unwrap();
    let known = Arc::new(reconnoitre(&mut db));
    let before = db.texts(OTHERS);
    assert!(before.len() > 100);
    let until = Instant::now() + Duration::from_secs(seconds);
    let over = AtomicBool::new(false);
    let found = Mutex::new(Vec::new());
    let (made, rounds) = thread::scope(|scope| {
        let victims = scope.spawn(|| go_on(&database, &over));
        let attackers: Vec<_> = ATTACKERS
            .iter()
            .zip(seed..)
            .map(|(attacker, seed)| {
                let (database, known, found) = (&database, &known, &found);
                scope.spawn(move || {
                    let (made, went_through, finding) = attack(database, attacker, known, seed, until);
                    found.lock().unwrap().extend(finding);
                    println!(
                        "seed {seed}: {} made {made} statements, {went_through} went through",
                        attacker.kind
                    );
                    assert!(went_through * 20 > made, "hardly anything went through");
                    made
                })
            })
            .collect();
        let made: usize =
            attackers.into_iter().map(|attacker| attacker.join().expect("an attacker's own error")).sum();
        over.store(true, Ordering::Relaxed);
        (made, victims.join().expect("the others were stopped"))
    });
    println!("seed {seed}: {made} statements, {rounds} rounds of the others");
    assert_eq!(*found.lock().unwrap(), Vec::<String>::new(), "seed {seed}");
    let after = db.texts(OTHERS);
    let changed: Vec<_> = after.iter().filter(|row| !before.contains(row)).collect();
    assert!(
        changed.is_empty() && after.len() == before.len(),
        "seed {seed}: rows of others have changed: {changed:#?}"
    );
    assert!(made > 100 && rounds > 0, "seed {seed}: {made} statements, {rounds} rounds");
}
