//! Calls of capabilities: plans are cached while they hold, and ended runs are recorded together, each exactly once.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use pml_tests::{
    Ask, Cluster, Database,
    mcp::{Agent, Era, Proxy, ProxySetup, eventually, text},
};
use serde_json::{Value, json};

#[test]
fn a_call_gets_the_capability_as_it_is_now() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute(
        "SELECT pml_register('return 1', 'num:one', visibility => 'project');
         SELECT pml_register('return await mcp.num.one({}) + 10', 'num:outer', visibility => 'project')",
    )
    .unwrap();
    let proxy = Proxy::start(&database);
    proxy.is_ready();
    let agent = Agent::connect(&proxy.url, Era::Sessions);
    let by_tool = |tool: &str| {
        let answer = agent.call(tool, json!({}));
        if answer.is_error == Some(true) { Err(text(&answer)) } else { Ok(text(&answer)) }
    };
    let becomes = |tool: &str, wanted: &str| {
        eventually(tool, || (by_tool(tool).as_deref() == Ok(wanted)).then_some(()));
    };
    for _ in 0..2 {
        assert_eq!(by_tool("mcp__num__one").unwrap(), "1");
        assert_eq!(by_tool("mcp__num__outer").unwrap(), "11");
    }
    db.batch_execute("SELECT pml_update('num:one', 'return 2')").unwrap();
    becomes("mcp__num__one", "2");
    becomes("mcp__num__outer", "12");
    db.batch_execute("SELECT pml_rollback('num:one@v1')").unwrap();
    becomes("mcp__num__outer", "11");
    // By an old name, with a warning, until that is released.
    db.batch_execute("SELECT pml_rename('num:outer', 'num:new')").unwrap();
    let old = json!({"capability": "num:outer", "args": {}});
    eventually("a warning", || agent.ask("pml_execute", old.clone())["warning"].as_str().map(drop));
    assert!(agent.ask("pml_execute", old.clone())["warning"].as_str().unwrap().contains("Deprecated"));
    db.batch_execute("SELECT pml_release_alias('num:outer')").unwrap();
    eventually("a refusal", || (agent.call("pml_execute", old.clone()).is_error == Some(true)).then_some(()));
    // Arguments are checked against the schema of now.
    db.batch_execute("SELECT pml_update('num:new', 'return args.n.toFixed(1)')").unwrap();
    eventually("another schema", || {
        by_tool("mcp__num__new").is_err_and(|why| why.contains("\"n\"")).then_some(())
    });
    db.batch_execute("SELECT pml_delete('num:new')").unwrap();
    eventually("a deletion", || {
        by_tool("mcp__num__new").is_err_and(|why| why.contains("not found")).then_some(())
    });
    // What somebody else makes private is gone.
    db.batch_execute(
        "SET pml.actor = 'keeper'; SELECT pml_register('return 5', 'his:five', visibility => 'project')",
    )
    .unwrap();
    becomes("mcp__his__five", "5");
    db.batch_execute("SELECT pml_rename('his:five', visibility => 'private')").unwrap();
    eventually("what became private", || by_tool("mcp__his__five").is_err().then_some(()));
    assert_eq!(db.number("SELECT count(*) FROM pml.workflow_state"), 0, "no run was written beforehand");
}

#[test]
fn arguments_are_refused_as_postgres_would() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute(
        r#"SELECT pml_register('return args.n + args.m', 'num:sum', visibility => 'project', parameters_schema =>
           '{"type": "object", "properties": {"n": {"type": "number"}, "m": {"type": "number", "default": 5}}, "required": ["n"]}')"#,
    )
    .unwrap();
    let proxy = Proxy::start(&database);
    proxy.is_ready();
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    for (args, told) in [
        (json!({"n": 1}), "6"),
        (json!({"n": "x"}), "Invalid arguments"),
        (json!({}), "Invalid arguments"),
        (json!({"n": 1, "m": 2}), "3"),
        (json!({"n": 1, "x": "\u{0}"}), "U+0000"),
        (json!({"n": 1, "x": "\\u0000"}), "6"),
    ] {
        let refusal =
            db.query_one("SELECT pml_begin($1)", &[&json!({"capability": "num:sum", "args": args})]).err();
        let refusal = refusal.map(|error| error.as_db_error().unwrap().message().to_owned());
        for _ in 0..2 {
            for answer in [
                agent.call("mcp__num__sum", args.clone()),
                agent.call("pml_execute", json!({"capability": "num:sum", "args": args})),
            ] {
                assert!(text(&answer).contains(told), "{args}: {}", text(&answer));
                assert_eq!(answer.is_error == Some(true), refusal.is_some(), "{args}");
                if let Some(refusal) = refusal.as_ref().filter(|_| told != "U+0000") {
                    assert!(text(&answer).starts_with(refusal.as_str()), "{refusal}: {}", text(&answer));
                }
            }
        }
    }
    let wrong = agent.call("pml_execute", json!({"capability": "num:sum", "args": {"n": 1}, "nonsense": 1}));
    assert!(text(&wrong).contains("has no argument \"nonsense\""), "{}", text(&wrong));
    let wrong = agent.call("pml_execute", json!({"capability": "num:sum", "args": [1]}));
    assert!(text(&wrong).contains("\"args\" must be an object"), "{}", text(&wrong));
}

#[test]
fn what_was_answered_is_recorded_once_though_postgres_crashes_in_between() {
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::new()));
    let database = Database::in_cluster(cluster);
    let mut client = database.connect();
    client
        .batch_execute("SELECT pml_register('return args.n', 'num:same', visibility => 'project')")
        .unwrap();
    drop(client);
    database.create_role("proxy", &["pml_proxy"]);
    let proxies = [ProxySetup::new(&database).start(), ProxySetup::new(&database).start()];
    let agents: Vec<Agent> = (0..8)
        .map(|number| {
            let era = if number % 2 == 0 { Era::Sessions } else { Era::Stateless };
            Agent::connect(&proxies[number % 2].url, era)
        })
        .collect();
    let answered = Mutex::new(Vec::new());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for (number, agent) in agents.iter().enumerate() {
            let (answered, is_over) = (&answered, &is_over);
            scope.spawn(move || {
                for call in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let n = number * 1_000_000 + call;
                    let answer = agent.call("mcp__num__same", json!({"n": n}));
                    // While Postgres is away, plans can't be read.
                    if answer.is_error != Some(true) && answer.content.len() == 1 {
                        assert_eq!(answer.structured_content, Some(json!({"result": n})));
                        answered.lock().unwrap().push(n as i64);
                    }
                }
            });
        }
        let calls_of = |most: usize| {
            let wanted = answered.lock().unwrap().len() + most;
            eventually("calls", || (answered.lock().unwrap().len() >= wanted).then_some(()));
        };
        for _ in 0..3 {
            calls_of(100);
            cluster.crash();
            cluster.start_again();
        }
        calls_of(100);
        is_over.store(true, Ordering::Relaxed);
    });
    let mut client = database.connect();
    let runs = client
        .query("SELECT (initial_context ->> 'n')::bigint, count(*) FROM pml.execution_trace GROUP BY 1", &[])
        .unwrap();
    let runs: BTreeMap<i64, i64> = runs.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert!(runs.values().all(|count| *count == 1), "each once");
    let answered = answered.into_inner().unwrap();
    let lost: Vec<_> = answered.iter().filter(|n| !runs.contains_key(n)).collect();
    assert!(lost.is_empty(), "of {} answered, these are lost: {lost:?}", answered.len());
    let counted: Value = client.query_one("SELECT pml_whois('num:same')", &[]).unwrap().get(0);
    assert_eq!(
        client.number("SELECT usage_count FROM pml_lookup('num:same')"),
        runs.len() as i64,
        "{counted:#}"
    );
}
