//! Failures of Postgres, the pool, workers and the proxy stay isolated and recover.

use pml_tests::{
    Ask, Cluster, Database,
    mcp::{Agent, Era, Proxy, ProxySetup, eventually, runtime, text},
};
use rmcp::model::ServerResult;
use serde_json::{Value, json};

fn own_cluster() -> (&'static Cluster, Database) {
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::new()));
    (cluster, Database::in_cluster(cluster))
}

const SLOW: &str = "await new Promise(done => setTimeout(done, 3000)); return 'done'";

#[test]
fn postgres_restarts_in_the_middle_of_a_run() {
    let (cluster, database) = own_cluster();
    database.create_role("proxy", &["pml_proxy"]);
    let proxy = ProxySetup::new(&database).args(&["--database-patience", "1"]).start();
    proxy.is_ready();
    let agents = Era::BOTH.map(|era| Agent::connect(&proxy.url, era));
    let [first, second] = &agents;
    let list = first.tool_names();
    // It must not end before Postgres has stopped.
    let code = "await new Promise(done => setTimeout(done, 10000)); return 'done'";
    let running = first.start_call("pml_execute", json!({"code": code, "name": "slow:one"}));
    {
        proxy.runs_code();
    }
    cluster.stop();
    // Agents keep their tools.
    assert_eq!(first.tool_names(), list);
    let message = second.failure("cap_list", json!({}));
    assert!(message.contains("Postgres can't be reached"), "{message}");
    let before = [first.list_changes(), second.list_changes()];
    cluster.start_again();
    let answer = match runtime().block_on(running.await_response()).expect("an answer") {
        ServerResult::CallToolResult(result) => result,
        other => panic!("{other:?}"),
    };
    assert_eq!(answer.structured_content.as_ref().unwrap()["result"], "done", "{}", text(&answer));
    // Recorded exactly once, and all clients are notified.
    let mut client = database.connect();
    assert_eq!(client.number("SELECT count(*) FROM pml.execution_trace"), 1);
    assert_eq!(client.number("SELECT usage_count FROM pml_lookup('slow:one')"), 1);
    for (agent, before) in agents.iter().zip(before) {
        agent.hears_of_change(before);
        assert!(agent.tool_names().contains(&"mcp__slow__one".to_owned()));
    }
    assert_eq!(second.ask("pml_execute", json!({"capability": "slow:one", "args": {}}))["result"], "done");
}

#[test]
fn what_was_answered_survives_a_crash_of_postgres() {
    let (cluster, database) = own_cluster();
    let mut client = database.connect();
    // Without background flushes, only what was waited for survives.
    client.batch_execute("ALTER SYSTEM SET wal_writer_delay = '10s'").unwrap();
    drop(client);
    cluster.stop();
    cluster.start_again();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    agent.ask("pml_execute", json!({"code": "return 1", "name": "num:one"}));
    agent.ask("mcp__num__one", json!({}));
    cluster.crash();
    cluster.start_again();
    let mut client = database.connect();
    assert_eq!(client.number("SELECT count(*) FROM pml.execution_trace"), 2);
    assert_eq!(client.number("SELECT usage_count FROM pml_lookup('num:one')"), 2);
}

#[test]
fn a_run_that_postgres_refuses_to_record_is_answered_and_says_so() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Sessions);
    let running = agent.start_call("pml_execute", json!({"code": SLOW, "name": "slow:one"}));
    let mut client = database.connect();
    proxy.runs_code();
    client.batch_execute("REVOKE EXECUTE ON FUNCTION pml_finish_many FROM pml_proxy").unwrap();
    let answer = runtime().block_on(running.await_response()).expect("an answer");
    let ServerResult::CallToolResult(answer) = answer else { panic!("{answer:?}") };
    let answer = answer.structured_content.expect("a structured answer");
    assert_eq!(answer["result"], "done", "{answer}");
    let warning = answer["warning"].as_str().expect("a warning");
    assert!(warning.contains("isn't recorded") && warning.contains("permission denied"), "{warning}");
    assert_eq!(client.number("SELECT count(*) FROM pml.execution_trace"), 0);
    assert!(!agent.tool_names().contains(&"mcp__slow__one".to_owned()));
}

#[test]
fn the_proxy_starts_without_postgres_and_serves_when_it_comes() {
    let (cluster, database) = own_cluster();
    database.create_role("proxy", &["pml_proxy"]);
    cluster.stop();
    let proxy = ProxySetup::new(&database).args(&["--database-patience", "0.2"]).start();
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let message = agent.failure("pml_execute", json!({"code": "return 1"}));
    assert!(
        message.contains("Postgres can't be reached") && message.contains("Nothing was done"),
        "{message}"
    );
    cluster.start_again();
    let answer = eventually("an answer", || {
        let result = agent.call("pml_execute", json!({"code": "return 1"}));
        (result.is_error != Some(true)).then_some(result)
    });
    assert_eq!(answer.structured_content.unwrap()["result"], 1);
}

#[test]
fn an_exhausted_pool_is_said_and_passes() {
    let database = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    let proxy = ProxySetup::new(&database)
        .args(&["--database-connections", "1", "--database-patience", "0.5"])
        .start();
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let succeeds = |tool: &str, args: Value| {
        eventually(tool, || (agent.call(tool, args.clone()).is_error != Some(true)).then_some(()));
    };
    // On a slow machine the first connection takes longer than its patience.
    succeeds("pml_execute", json!({"code": "return 1", "name": "num:one"}));
    // The next run waits for this lock, and holds the only connection.
    let mut client = database.connect();
    let mut lock = client.transaction().unwrap();
    lock.batch_execute("LOCK TABLE pml.execution_trace").unwrap();
    let waiting = agent.start_call("pml_execute", json!({"code": "return 2"}));
    let message = eventually("the pool is empty", || {
        let result = agent.call("cap_list", json!({}));
        (result.is_error == Some(true)).then(|| text(&result))
    });
    assert!(message.contains("All connections to Postgres are in use"), "{message}");
    lock.rollback().unwrap();
    let answer = runtime().block_on(waiting.await_response()).expect("an answer");
    let ServerResult::CallToolResult(answer) = answer else { panic!("{answer:?}") };
    assert_eq!(answer.structured_content.unwrap()["result"], 2);
    succeeds("cap_list", json!({}));
}

#[test]
fn a_killed_worker_hurts_one_run() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Sessions);
    let code = "await new Promise(done => setTimeout(done, 20000)); return 1";
    let running = agent.start_call("pml_execute", json!({"code": code}));
    proxy.runs_code();
    // It may not have its process yet.
    eventually("the run is lost", || {
        proxy.kill_workers();
        (!running.rx.is_empty()).then_some(())
    });
    let answer = runtime().block_on(running.await_response()).expect("an answer");
    let ServerResult::CallToolResult(answer) = answer else { panic!("{answer:?}") };
    assert_eq!(answer.is_error, Some(true));
    assert!(text(&answer).contains("sandbox process ended"), "{}", text(&answer));
    assert_eq!(agent.ask("pml_execute", json!({"code": "return 'still here'"}))["result"], "still here");
}

#[test]
fn a_killed_proxy_leaves_no_processes_and_no_half_things() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    agent.ask("pml_execute", json!({"code": "return 1", "name": "num:one"}));
    let code = "await new Promise(done => setTimeout(done, 29000)); return 1";
    let _running = agent.start_call("pml_execute", json!({"code": code, "name": "slow:one"}));
    proxy.runs_code();
    let workers = proxy.workers();
    assert!(!workers.is_empty());
    proxy.kill();
    // A process that nobody has waited for yet is a zombie.
    let is_gone = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z"))
    };
    eventually("its workers are gone", || workers.iter().all(is_gone).then_some(()));
    // Only answered runs are stored; another proxy continues.
    let next = ProxySetup::new(&database).start();
    let agent = Agent::connect(&next.url, Era::Stateless);
    let names = agent.tool_names();
    assert!(names.contains(&"mcp__num__one".to_owned()) && !names.contains(&"mcp__slow__one".to_owned()));
    assert_eq!(agent.ask("mcp__num__one", json!({})), json!({"result": 1}));
}

#[test]
fn a_signal_lets_running_calls_finish() {
    for era in Era::BOTH {
        let database = Database::new();
        let mut proxy = Proxy::start(&database);
        let agent = Agent::connect(&proxy.url, era);
        let running = agent.start_call("pml_execute", json!({"code": SLOW}));
        proxy.runs_code();
        proxy.signal("TERM");
        let answer = runtime().block_on(running.await_response()).expect("an answer");
        let ServerResult::CallToolResult(answer) = answer else { panic!("{answer:?}") };
        assert_eq!(answer.structured_content.as_ref().unwrap()["result"], "done", "{}", text(&answer));
        assert!(proxy.wait().success());
    }
}

#[test]
fn the_drain_has_a_deadline() {
    let database = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    let mut proxy = ProxySetup::new(&database).args(&["--drain", "0.3"]).start();
    let agent = Agent::connect(&proxy.url, Era::Sessions);
    let code = "await new Promise(done => setTimeout(done, 29000)); return 1";
    let _running = agent.start_call("pml_execute", json!({"code": code}));
    let mut client = database.connect();
    proxy.runs_code();
    proxy.signal("TERM");
    assert!(proxy.wait().success());
    let message = client.text("SELECT min(error_message) FROM pml.execution_trace", &[]).expect("a record");
    assert!(message.contains("shut down"), "{message}");
}
