//! Calls of servers' tools: names are cached, but follow changes in Postgres, and each call is recorded once.

use std::{fs, path::Path};

use pml_tests::{
    Ask, Cluster, Database,
    mcp::{Agent, Era, Proxy, ProxySetup, eventually, runtime, text},
    peers::{node, program, servers_file},
};
use serde_json::{Value, json};
use tempfile::TempDir;

const RAW: &str = "mcp__moody__raw";

fn proxy(database: &Database, folder: &Path, args: &[&str]) -> Proxy {
    let moody = json!({"command": node(), "args": [program("moody_server.mjs"), folder.join("journal")]});
    let file = servers_file(folder, &json!({"moody": moody}));
    let file = file.to_str().expect("a readable path");
    let proxy = ProxySetup::new(database).args(&["--mcp-servers", file]).args(args).start();
    proxy.is_ready();
    proxy
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// What the tool is to answer.
fn saying(words: &str) -> Value {
    json!({"result": {"content": [{"type": "text", "text": words}]}})
}

/// Whether the name is one of a tool, and the tool answers.
fn answers(agent: &Agent) -> bool {
    agent.try_call(RAW, saying("hi")).is_ok_and(|result| text(&result) == "hi")
}

fn is_unknown(agent: &Agent) -> bool {
    text(&agent.call(RAW, saying("hi"))).contains("Capability not found: moody:raw")
}

#[test]
fn a_name_that_was_called_before_still_means_what_postgres_says() {
    let database = Database::new();
    let role = database.create_role("proxy", &["pml_proxy"]);
    let folder = folder();
    let proxy = proxy(&database, folder.path(), &["--database-patience", "2"]);
    let mut sql = database.connect();
    sql.batch_execute("SELECT pml_register('return 1', 'num:one', visibility => 'project')").unwrap();
    for era in Era::BOTH {
        let agent = Agent::connect(&proxy.url, era);
        let listed = |name: &str| agent.tool_names().iter().any(|listed| listed == name);
        agent.has_tool(RAW);
        assert!(answers(&agent) && answers(&agent));
        sql.batch_execute("DELETE FROM pml.tool_schema WHERE name = 'raw'").unwrap();
        eventually("the tool is gone", || (is_unknown(&agent) && !listed(RAW)).then_some(()));
        sql.batch_execute("SELECT pml_register_tool('moody', 'raw')").unwrap();
        eventually("the tool is back", || answers(&agent).then_some(()));
        assert!(answers(&agent));
        eventually("it is listed", || (listed(RAW) && listed("mcp__num__one")).then_some(()));

        // Changes while the connections are lost aren't notified.
        sql.batch_execute(&format!("ALTER ROLE {role} NOLOGIN")).unwrap();
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1";
        sql.query_one(end, &[&role]).unwrap();
        eventually("the cache is no longer used", || {
            let result = agent.call(RAW, saying("hi"));
            text(&result).contains("Postgres can't be reached").then_some(())
        });
        sql.batch_execute(
            "DELETE FROM pml.tool_schema WHERE name = 'raw'; SELECT pml_rename('num:one', 'num:uno')",
        )
        .unwrap();
        sql.batch_execute(&format!("ALTER ROLE {role} LOGIN")).unwrap();
        eventually("the tool is gone", || is_unknown(&agent).then_some(()));
        eventually("the new name", || (listed("mcp__num__uno") && !listed("mcp__num__one")).then_some(()));
        assert!(!listed(RAW));
        sql.batch_execute("SELECT pml_register_tool('moody', 'raw'), pml_rename('num:uno', 'num:one')")
            .unwrap();
        eventually("the tool is back", || answers(&agent).then_some(()));
    }
}

#[test]
fn every_call_is_counted_once_also_those_just_before_the_end() {
    let database = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    let folder = folder();
    let mut proxy = proxy(&database, folder.path(), &[]);
    let agents: Vec<Agent> = (0..8).map(|number| Agent::connect(&proxy.url, Era::BOTH[number % 2])).collect();
    agents[0].has_tool(RAW);
    let fails = json!({"result": {"content": [], "isError": true}});
    for _ in 0..25 {
        let call = |(number, agent): (usize, &Agent)| {
            agent.start_call(RAW, if number == 0 { fails.clone() } else { saying("hi") })
        };
        let started: Vec<_> = agents.iter().enumerate().map(call).collect();
        for call in started {
            runtime().block_on(call.await_response()).expect("an answer");
        }
    }
    proxy.signal("TERM");
    assert!(proxy.wait().success());
    let mut sql = database.connect();
    assert_eq!(
        sql.texts(
            "SELECT concat_ws(' ', tool_id, success, actor, count(*)) FROM pml.tool_usage GROUP BY tool_id, success, actor ORDER BY 1"
        ),
        ["moody:raw f alice 25", "moody:raw t alice 175"]
    );
}

#[test]
fn a_call_that_ends_while_postgres_is_away_is_counted_when_it_is_back() {
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::new()));
    let database = Database::in_cluster(cluster);
    database.create_role("proxy", &["pml_proxy"]);
    let folder = folder();
    let proxy = proxy(&database, folder.path(), &["--database-patience", "2"]);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    agent.has_tool("mcp__moody__late");
    let proceed = folder.path().join("proceed");
    let running = agent.start_call("mcp__moody__late", json!({"file": proceed}));
    eventually("the call is under way", || (!agent.progress().is_empty()).then_some(()));
    cluster.stop();
    fs::write(&proceed, "").unwrap();
    runtime().block_on(running.await_response()).expect("an answer");
    eventually("a try to record it", || {
        proxy.log().iter().any(|line| line.contains("can't record tool usage yet")).then_some(())
    });
    cluster.start_again();
    let mut sql = database.connect();
    let uses = "SELECT tool_id FROM pml.tool_usage";
    eventually("the call is counted", || (!sql.texts(uses).is_empty()).then_some(()));
    assert_eq!(sql.texts(uses), ["moody:late"]);
    assert_eq!(sql.number("SELECT count(*) FROM pml.tool_usage WHERE used_at < now()"), 1);
}
