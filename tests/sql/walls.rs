//! The walls: who may call what, as whom it runs, and what becomes of those who try otherwise. Each attack that once went
//! through is here, and beside it a walk through the catalog that would find the next of its kind.

use std::collections::{BTreeMap, BTreeSet};

use pml_tests::{Ask, Database, Run, failure};
use postgres::Client;
use serde_json::json;

use crate::tenancy::setup;

const LISTED: &str = include_str!("../../sql/public_objects.txt");
const DEFINERS: &str = include_str!("../../sql/security_definer.txt");

/// The functions of the list's first part.
fn for_everybody() -> BTreeSet<String> {
    let everybody = LISTED.split("\n# For proxies and admins.").next().unwrap();
    let functions = everybody.lines().filter_map(|line| line.strip_prefix("function "));
    functions.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

/// Rows of `pg_proc` that belong to the extension.
const OURS: &str =
    "(SELECT p.* FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
  WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pml'))";

#[test]
fn nobody_may_call_what_is_not_on_the_list() {
    let mut db = Database::new().connect();
    let callable = db.texts(&format!(
        "SELECT replace(p.oid::regprocedure::text, 'public.', '') FROM {OURS} AS p
         WHERE EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a WHERE a.grantee = 0)"
    ));
    assert_eq!(callable.into_iter().collect::<BTreeSet<_>>(), for_everybody());
    // A trigger function is nobody's to put on a table.
    let triggers = db.texts(&format!(
        "SELECT p.proname || ' ' || a.grantee::regrole FROM {OURS} AS p, aclexplode(p.proacl) AS a
         WHERE p.prorettype = 'trigger'::regtype AND a.grantee <> p.proowner"
    ));
    assert_eq!(triggers, [""; 0]);
}

#[test]
fn nobody_has_a_privilege_on_a_table() {
    let mut db = Database::new().connect();
    let granted = db.texts(
        "SELECT c.relname || ' ' || a.privilege_type
         FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::\"char\", c.relowner))) AS a
         WHERE c.relnamespace = 'pml'::regnamespace AND a.grantee = 0 ORDER BY 1",
    );
    let views: Vec<String> = LISTED
        .lines()
        .filter_map(|line| line.strip_prefix("view pml."))
        .map(|line| format!("{} SELECT", line.split(' ').next().unwrap()))
        .collect();
    assert_eq!(granted, views);
    let schemas = db.texts(
        "SELECT n.nspname || ' ' || a.privilege_type FROM pg_namespace n, aclexplode(n.nspacl) AS a
         WHERE n.nspname LIKE 'pml%' AND a.grantee = 0",
    );
    assert_eq!(schemas, ["pml USAGE"]);
    // The proxy's role has no more than anyone, but for the functions that only it needs.
    let proxy = db.texts(
        "SELECT c.relname::text FROM pg_class c, aclexplode(c.relacl) AS a
         WHERE c.relnamespace = 'pml'::regnamespace AND a.grantee = 'pml_proxy'::regrole",
    );
    assert_eq!(proxy, [""; 0]);
    let unsecured = db.texts(
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'pml'::regnamespace AND relkind IN ('r', 'p') AND NOT relrowsecurity",
    );
    assert_eq!(unsecured, [""; 0]);
}

#[test]
fn every_definer_has_its_reason() {
    let mut db = Database::new().connect();
    let listed: BTreeMap<&str, &str> = DEFINERS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .collect();
    let there = db.texts(&format!("SELECT p.proname::text FROM {OURS} AS p WHERE p.prosecdef ORDER BY 1"));
    assert_eq!(there, listed.keys().copied().collect::<Vec<_>>());
    let loose = db.texts(&format!(
        "SELECT p.oid::regprocedure::text FROM {OURS} AS p
         WHERE p.prosecdef AND (p.pronamespace <> 'pml_internal'::regnamespace OR p.proowner <> 'pml_keeper'::regrole
           OR NOT p.proconfig @> ARRAY['search_path=pg_catalog, pg_temp', 'row_security=on']
           OR EXISTS (SELECT FROM unnest(p.proargtypes) AS a JOIN pg_type t ON t.oid = a
                      WHERE t.typtype NOT IN ('b', 'c') OR t.typnamespace <> 'pg_catalog'::regnamespace))"
    ));
    assert_eq!(loose, [""; 0]);
}

#[test]
fn nobody_is_the_engine_or_the_keeper() {
    let mut db = Database::new().connect();
    let roles = db.texts(
        "SELECT rolname || ' ' || (rolcanlogin OR rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls OR rolreplication)
                || ' ' || (SELECT count(*) FROM pg_auth_members m WHERE m.roleid = r.oid OR m.member = r.oid)
         FROM pg_roles r WHERE rolname IN ('pml_engine', 'pml_keeper') ORDER BY 1",
    );
    assert_eq!(roles, ["pml_engine false 0", "pml_keeper false 0"]);
    let owned = db.texts(
        "SELECT relname::text FROM pg_class WHERE relowner IN ('pml_engine'::regrole, 'pml_keeper'::regrole)",
    );
    assert_eq!(owned, [""; 0]);
}

#[test]
fn trigger_functions_run_on_their_own_tables_only() {
    let database = Database::new();
    let mut db = database.connect();
    let functions = db.texts(&format!(
        "SELECT p.oid::regprocedure::text FROM {OURS} AS p WHERE p.prorettype = 'trigger'::regtype"
    ));
    assert!(functions.len() > 10);
    for function in functions {
        for moment in ["BEFORE INSERT", "AFTER INSERT", "AFTER UPDATE", "BEFORE DELETE"] {
            let statement = format!(
                "BEGIN; CREATE TEMP TABLE mine (id text, org text, project text); INSERT INTO mine VALUES ('a', 'b', 'c');
                 CREATE TRIGGER t {moment} ON mine FOR EACH ROW EXECUTE FUNCTION {function};
                 INSERT INTO mine VALUES ('d', 'e', 'f'); UPDATE mine SET id = 'g'; DELETE FROM mine"
            );
            assert_eq!(db.refusal(&statement).code().code(), "PM006", "{moment} {function}");
            db.batch_execute("ROLLBACK").unwrap();
        }
    }
    // As it was done: a domain whose check says who runs it.
    database.create_role("eve", &[]);
    let mut eve = database.connect_as("eve");
    eve.batch_execute(
        "CREATE FUNCTION pg_temp.evil(v text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', current_user; RETURN true; END $$;
         CREATE DOMAIN pg_temp.d AS text CHECK (pg_temp.evil(VALUE));
         CREATE TEMP TABLE n (org text, project text, tool_id text, tool_name pg_temp.d)",
    )
    .unwrap();
    let attach = "CREATE TRIGGER t BEFORE INSERT ON n FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_tool_keep_tool_name()";
    assert_eq!(eve.refusal(attach).code().code(), "42501");
}

#[test]
fn a_privilege_given_by_mistake_shows_nothing() {
    let database = Database::new();
    setup(&database);
    let mut db = database.connect();
    let guest = database.role("guest");
    db.batch_execute(&format!("GRANT ALL ON ALL TABLES IN SCHEMA pml TO {guest}")).unwrap();
    let tables = db.texts(
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'pml'::regnamespace AND relkind IN ('r', 'p')",
    );
    let mut guest = database.connect_as("guest");
    for table in tables {
        assert_eq!(guest.number(&format!("SELECT count(*) FROM pml.{table}")), 0, "{table}");
    }
    // The engine itself is nobody: without a caller it sees what is public.
    db.batch_execute("SET ROLE pml_engine").unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_records WHERE visibility <> 'public'"), 0);
    assert_eq!(db.number("SELECT count(*) FROM pml.tokens"), 0);
}

/// Who calls from inside another's function is that function's owner, as everywhere in Postgres; and who has come through the
/// gate is forgotten with an error.
#[test]
fn the_caller_is_who_calls() {
    let database = Database::new();
    setup(&database);
    let mut db = database.connect();
    let (bob, eve) = (database.role("bob"), database.create_role("eve", &[]));
    db.batch_execute(&format!(
        "CREATE FUNCTION public.as_eve() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT pml_actor() || ' ' || (SELECT count(*) FROM pml.capabilities WHERE visibility <> 'public') $$;
         ALTER FUNCTION public.as_eve() OWNER TO {eve}"
    ))
    .unwrap();
    // Also for a superuser, whose session another's function must not make use of.
    assert_eq!(db.text("SELECT public.as_eve()", &[]).unwrap(), format!("{eve} 0"));
    let mut bob_db = database.connect_as("bob");
    assert_eq!(bob_db.text("SELECT public.as_eve()", &[]).unwrap(), format!("{eve} 0"));
    bob_db.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'").unwrap();
    for _ in 0..3 {
        bob_db.refusal("SELECT pml_rename('nothing', 'x')");
        bob_db
            .batch_execute(
                "DO $$ BEGIN PERFORM pml_lookup('nothing'); EXCEPTION WHEN OTHERS THEN PERFORM pml_actor(); END $$",
            )
            .unwrap();
        assert_eq!(
            bob_db.text("SELECT current_user || ' ' || pml_actor()", &[]).unwrap(),
            format!("{bob} {bob}")
        );
    }
    let nested = "DO $$ BEGIN PERFORM pml_begin('{\"capability\": \"nothing\"}'); EXCEPTION WHEN OTHERS THEN RAISE EXCEPTION '%', current_user || ' ' || pml_actor(); END $$";
    assert_eq!(bob_db.refusal(nested).message(), format!("{bob} {bob}"));
    assert_eq!(bob_db.refusal("SET ROLE pml_engine").code().code(), "42501");
}

/// What a query says of itself: plan, pages, rows, WAL.
fn explained(db: &mut Client, query: &str) -> Vec<String> {
    ["ANALYZE, VERBOSE, BUFFERS, WAL, SETTINGS, TIMING OFF, SUMMARY OFF", "VERBOSE"]
        .iter()
        .flat_map(|options| db.texts(&format!("EXPLAIN ({options}) {query}")))
        .collect()
}

/// What is counted of this transaction's reading in our tables.
fn counted(db: &mut Client) -> Vec<String> {
    db.texts(
        "SELECT t.relname || ' ' || concat_ws(' ', t.seq_scan, t.seq_tup_read, t.idx_scan, t.idx_tup_fetch) FROM pg_stat_xact_all_tables t
         WHERE t.schemaname = 'pml' AND coalesce(t.seq_scan, 0) + coalesce(t.seq_tup_read, 0) + coalesce(t.idx_scan, 0) + coalesce(t.idx_tup_fetch, 0) > 0 ORDER BY 1",
    )
}

/// What is said of something hidden and of something that isn't there is the same, and counts nothing. Caches of the catalog,
/// which any session of the cluster may empty, cost a page now and then; what tells does so every time.
fn alike(
    db: &mut Client,
    what: &str,
    there: &String,
    missing: &String,
    say: impl Fn(&mut Client, &String) -> (String, Vec<String>),
) {
    let mut differences = Vec::new();
    for _ in 0..10 {
        let (hidden, absent) = (say(db, there), say(db, missing));
        if hidden == absent && hidden.1.is_empty() {
            return;
        }
        differences.push((hidden, absent));
    }
    panic!("{what} {there}: {differences:#?}");
}

#[test]
fn neither_plans_nor_statistics_tell_of_hidden_rows() {
    let database = Database::new();
    setup(&database);
    let mut admin = database.connect();
    admin
        .batch_execute(
            "SET pml.org = 'other'; SET pml.project = 'webapp'; SET pml.actor = 'alice';
             SELECT pml_register('return mcp.s.t(\"hidden\")', 'secret:thing', version_tag => 'v1.0.0'); ANALYZE",
        )
        .unwrap();
    let hidden = admin.text("SELECT pml_resolve('secret:thing')", &[]).unwrap();
    let pairs = [
        ("other.webapp:secret:thing".to_owned(), "other.webapp:secret:thinG".to_owned()),
        ("other.webapp:secret:thing@v1.0.0".to_owned(), "other.webapp:secret:thinG@v1.0.0".to_owned()),
        (hidden.clone(), format!("{}f", hidden.trim_end_matches('f'))),
    ];
    let mut bob = database.connect_as("bob");
    bob.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'").unwrap();
    // What fails is caught, so that what it cost can be asked for.
    for call in [
        "pml_resolve",
        "pml_lookup",
        "pml_code",
        "pml_whois",
        "pml_history",
        "pml_dependents",
        "pml_delete",
        "pml_rollback",
    ] {
        bob.batch_execute(&format!(
            "CREATE FUNCTION pg_temp.try_{call}(spec text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM {call}(spec); RETURN true; EXCEPTION WHEN SQLSTATE 'PM001' THEN RETURN false; END $$"
        ))
        .unwrap();
        for (there, missing) in &pairs {
            let say = |bob: &mut Client, spec: &String| {
                bob.batch_execute("BEGIN").unwrap();
                let said = explained(bob, &format!("SELECT pg_temp.try_{call}('{spec}')"));
                let said = (said.join("\n").replace(spec.as_str(), "SPEC"), counted(bob));
                bob.batch_execute("COMMIT").unwrap();
                said
            };
            alike(&mut bob, call, there, missing, say);
        }
    }
    for query in [
        "SELECT pml_compile('return mcp[\"SPEC\"]()')",
        "SELECT pml_begin(jsonb_build_object('code', 'return mcp[\"SPEC\"]()'))",
        "SELECT pml_routing(ARRAY['SPEC'])",
        "SELECT pml_display_code('return mcp[\"SPEC\"]()')",
        "SELECT * FROM pml.capabilities WHERE fqdn = 'SPEC'",
        "SELECT * FROM pml.capability_history WHERE fqdn >= 'SPEC' LIMIT 1",
        "SELECT * FROM pml_list('SPEC')",
        "SELECT * FROM pml_discover('SPEC')",
    ] {
        let (there, missing) = &pairs[2];
        let say = |bob: &mut Client, spec: &String| {
            bob.batch_execute("BEGIN").unwrap();
            let plan = explained(bob, &query.replace("SPEC", spec)).join("\n").replace(spec.as_str(), "SPEC");
            let said = (plan, counted(bob));
            bob.batch_execute("ROLLBACK").unwrap();
            assert!(!said.0.contains("capability_records"), "{}", said.0);
            said
        };
        alike(&mut bob, query, there, missing, say);
    }
    // What was written is counted, for autovacuum.
    bob.batch_execute("BEGIN; SELECT pml_register('return 1', 'mine')").unwrap();
    let written = bob.number("SELECT n_tup_ins FROM pg_stat_xact_all_tables WHERE schemaname = 'pml' AND relname = 'capability_records'");
    assert_eq!(written, 1);
}

/// An open transaction of one tenant holds up nobody else.
#[test]
fn an_open_transaction_holds_up_no_other_scope() {
    let database = Database::new();
    let mut owner = database.connect();
    owner
        .batch_execute("SET pml.org = 'other'; SELECT pml_register('return 1', 'shared', visibility => 'public'), pml_register('return 2', 'base', visibility => 'public')")
        .unwrap();
    let bob = database.create_role("bob", &[]);
    owner.batch_execute(&format!("SELECT pml_grant('{bob}', 'acme', 'webapp')")).unwrap();
    let mut bob = database.connect_as("bob");
    bob.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'; BEGIN").unwrap();
    bob.run(&json!({"capability": "other.default:shared"}), &json!(1));
    bob.batch_execute("SELECT pml_register('return mcp[\"other.default:shared\"]()', 'caller'); SELECT pml_register_tools('s', '[{\"name\": \"t\"}]')").unwrap();
    for statement in [
        "LOCK TABLE pml.capability_records IN ACCESS EXCLUSIVE MODE",
        "LOCK TABLE pml.capability_records IN ACCESS SHARE MODE",
        "SELECT * FROM pml.scope_locks FOR UPDATE",
        "INSERT INTO pml.tool_usage (id, org, project, actor, server_id, tool_id, success, duration_ms) OVERRIDING SYSTEM VALUE VALUES (100000, 'acme', 'webapp', 'bob', 's', 't', true, 1)",
    ] {
        bob.batch_execute("SAVEPOINT before").unwrap();
        assert_eq!(bob.refusal(statement).code().code(), "42501", "{statement}");
        bob.batch_execute("ROLLBACK TO before").unwrap();
    }
    bob.batch_execute("SELECT pg_advisory_lock(hashtext('pml.capability_dependencies')), pg_advisory_lock(hashtextextended('pml.tools.other.default', 0))").unwrap();
    // Everybody else goes on, without waiting: a wait would end in an error.
    owner.batch_execute("SET lock_timeout = '2s'").unwrap();
    owner.run(&json!({"capability": "shared"}), &json!(1));
    for statement in [
        "SELECT pml_register('return mcp.shared()', 'uses')",
        "SELECT pml_update('shared', 'return mcp.base()')",
        "SELECT pml_register_tools('s', '[{\"name\": \"t\"}]')",
        "SELECT pml_rename('shared', 'common')",
        "SELECT pml_delete('common', force => true)",
    ] {
        owner.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    let eve = database.create_role("eve", &[]);
    owner.batch_execute(&format!("SELECT pml_grant('{eve}', 'third', 'webapp')")).unwrap();
    let mut eve = database.connect_as("eve");
    eve.batch_execute("SET pml.org = 'third'; SET pml.project = 'webapp'; SET lock_timeout = '2s'").unwrap();
    eve.run(&json!({"capability": "other.default:base"}), &json!(2));
    bob.batch_execute("COMMIT").unwrap();
}

#[test]
fn what_is_hidden_can_neither_be_asked_for_nor_held() {
    let database = Database::new();
    let mut owner = database.connect();
    owner.batch_execute("SET pml.org = 'other'; SELECT pml_register('return 1', 'hidden')").unwrap();
    let hidden = owner.text("SELECT pml_resolve('hidden')", &[]).unwrap();
    let bob = database.create_role("bob", &[]);
    owner.batch_execute(&format!("SELECT pml_grant('{bob}', 'acme', 'webapp')")).unwrap();
    let mut bob = database.connect_as("bob");
    bob.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'").unwrap();
    bob.query("SELECT pml_register($1, 'holder')", &[&format!("return mcp[\"{hidden}\"]()")]).unwrap();
    assert_eq!(owner.number("SELECT count(*) FROM pml.capability_dependencies"), 0);
    owner.batch_execute("SELECT pml_delete('hidden')").unwrap();
    // What functions set, nobody else does.
    for setting in ["workflow_ttl", "result_ttl", "trace_retention", "usage_retention"] {
        let statement = format!("SET pml.{setting} = '1d'");
        assert_eq!(bob.refusal(&statement).code().code(), "42501", "{statement}");
    }
    for call in [
        "pml_internal.pml_forget_expired(1000)",
        "pml_internal.pml_rotate()",
        "pml_expire_some()",
        "pml_expire()",
    ] {
        let code = bob.refusal(&format!("SELECT {call}")).code().code().to_owned();
        assert!(code == "42501" || code == "PM006", "{call}: {code}");
    }
    // Ids of rows are given by Postgres, to admins too.
    database.create_role("boss", &["pml_admin"]);
    let mut boss = database.connect_as("boss");
    let given = "INSERT INTO pml.capability_usage (id, capability_fqdn, uses, successes, latency_ms) VALUES (100000, 'a.b.c.d.e', 1, 1, 1)";
    assert_eq!(failure(boss.batch_execute(given)).code().code(), "428C9");
    for statement in [
        "TRUNCATE pml.tool_usage",
        "TRUNCATE pml.tool_usage_0",
        "CREATE TRIGGER mine AFTER INSERT ON pml.tool_usage EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    ] {
        assert_eq!(boss.refusal(statement).code().code(), "42501", "{statement}");
    }
}
