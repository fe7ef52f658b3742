//! The proxy with pgbouncer in transaction mode: only LISTEN connects directly to Postgres.

use pml_tests::{
    Database, Pooler,
    mcp::{Agent, Era, Proxy, ProxySetup, new_token, runtime},
};
use serde_json::json;

/// With a single connection, so that the next caller would see any session state of a statement.
fn behind_pgbouncer(database: &Database, args: &[&str]) -> (Pooler, Proxy) {
    database.create_role("proxy", &["pml_proxy"]);
    let pooler = Pooler::start(database, "proxy", 1);
    let proxy = ProxySetup::new(database)
        .env("PML_DATABASE_URL", &pooler.url_of(database, "proxy"))
        .env("PML_LISTEN_URL", &database.url_of("proxy"))
        .args(args)
        .start();
    proxy.is_ready();
    (pooler, proxy)
}

#[test]
fn everything_works_behind_pgbouncer() {
    let database = Database::new();
    let (_pooler, proxy) = behind_pgbouncer(&database, &[]);
    for era in Era::BOTH {
        let agent = Agent::connect(&proxy.url, era);
        let name = format!("num:twice_{era:?}");
        let request = json!({"code": format!("return {{era: '{era:?}', twice: args.n * 2}}"), "name": name, "args": {"n": 2}});
        let before = agent.list_changes();
        assert_eq!(agent.ask("pml_execute", request)["result"]["twice"], 4);
        agent.hears_of_change(before);
        let by_name = agent.ask("pml_execute", json!({"capability": name, "args": {"n": 4}}));
        assert_eq!(by_name["result"]["twice"], 8, "{era:?}");
        let tool = format!("mcp__num__twice_{era:?}");
        assert!(agent.tool_names().contains(&tool));
        assert_eq!(agent.ask(&tool, json!({"n": 8}))["twice"], 16, "{era:?}");

        let before = agent.list_changes();
        let by_hand = format!("by:hand_{era:?}");
        let query = "SELECT pml_register($1, name => $2, visibility => 'project')";
        database.connect().execute(query, &[&format!("return '{by_hand}'"), &by_hand]).unwrap();
        agent.hears_of_change(before);
        assert!(agent.tool_names().contains(&format!("mcp__by__hand_{era:?}")));
    }
    // Many at once on the one connection.
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let asked: Vec<_> =
        (0..20).map(|n| agent.start_call("mcp__num__twice_Stateless", json!({"n": n}))).collect();
    for (n, answer) in asked.into_iter().enumerate() {
        let answer = runtime().block_on(answer.await_response()).unwrap();
        let answer = serde_json::to_value(answer).unwrap();
        assert_eq!(answer["structuredContent"]["twice"], n * 2, "{answer}");
    }
}

#[test]
fn two_tokens_on_one_pooled_connection_never_meet() {
    let database = Database::new();
    let (_, acme_token) = new_token(&database, "acme", "ann");
    let (_, rival_token) = new_token(&database, "rival", "rob");
    let (_pooler, proxy) = behind_pgbouncer(&database, &["--require-token"]);
    for era in Era::BOTH {
        let acme = Agent::with_token(&proxy.url, era, &acme_token);
        let rival = Agent::with_token(&proxy.url, era, &rival_token);
        let name = format!("secret:{era:?}");
        acme.ask("pml_execute", json!({"code": format!("return 'acme {era:?}'"), "name": name}));
        let tool = format!("mcp__secret__{era:?}");
        for _ in 0..5 {
            assert!(acme.tool_names().contains(&tool));
            assert!(!rival.tool_names().contains(&tool), "{era:?}");
            let message = rival.failure("pml_execute", json!({"capability": name}));
            assert!(message.contains("Capability not found"), "{message}");
            assert_eq!(
                acme.ask("pml_execute", json!({"capability": name}))["result"],
                format!("acme {era:?}")
            );
        }
        rival.ask("pml_execute", json!({"code": format!("return 'rival {era:?}'"), "name": name}));
        assert_eq!(rival.ask(&tool, json!({}))["result"], format!("rival {era:?}"));
        assert_eq!(acme.ask(&tool, json!({}))["result"], format!("acme {era:?}"));
    }
}
