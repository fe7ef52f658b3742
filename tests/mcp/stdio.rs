//! `pml stdio`: the same server on standard input and output.

use pml_tests::{
    Database,
    mcp::{Agent, Era, eventually, pml, runtime},
};
use rmcp::transport::TokioChildProcess;
use serde_json::json;

fn start(database: &Database, era: Era) -> Agent {
    let mut command = tokio::process::Command::from(pml());
    command.arg("stdio").env("PML_DATABASE_URL", database.url_of("proxy")).env("PML_LOG_LEVEL", "warn");
    let transport = {
        let _guard = runtime().enter();
        TokioChildProcess::new(command).expect("pml starts")
    };
    Agent::over(transport, era).expect("a connection")
}

#[test]
fn both_eras_work_over_stdio() {
    for era in Era::BOTH {
        let database = Database::new();
        database.create_role("proxy", &["pml_proxy"]);
        let agent = start(&database, era);
        let before = agent.list_changes();
        let answer = agent.ask("pml_execute", json!({"code": "return 40 + 2", "name": "num:answer"}));
        assert_eq!(answer["result"], 42);
        agent.hears_of_change(before);
        assert!(agent.tool_names().contains(&"mcp__num__answer".to_owned()));
        agent.close();
    }
}

#[test]
fn it_ends_with_its_client_and_leaves_nothing() {
    let database = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    let agent = start(&database, Era::Sessions);
    agent.tools();
    let mut client = database.connect();
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    assert!(client.query_one(others, &[]).unwrap().get::<_, i64>(0) > 0);
    agent.close();
    eventually("its connections are gone", || {
        (client.query_one(others, &[]).unwrap().get::<_, i64>(0) == 0).then_some(())
    });
}
