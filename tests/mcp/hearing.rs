//! Whether notifications arrive is proven. While they don't, nothing is cached, and it is told what to do.

use std::process::Output;

use pml_tests::{
    Cluster, Database, Pooler, Relay,
    mcp::{Agent, Era, Proxy, ProxySetup, eventually, new_token, pml, pml_by_itself, runtime},
};
use serde_json::{Value, json};

fn initialize(proxy: &Proxy, token: &str) -> reqwest::Response {
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let request = reqwest::Client::new().post(&proxy.url).bearer_auth(token);
    let request = request.header("accept", "application/json, text/event-stream").json(&initialize);
    runtime().block_on(async { request.send().await }).expect("an answer")
}

/// Whether the proxy accepts the token.
fn is_accepted(proxy: &Proxy, token: &str) -> bool {
    let status = initialize(proxy, token).status().as_u16();
    assert!(matches!(status, 200 | 401), "{status}");
    status == 200
}

fn revoke(database: &Database, id: &str) {
    let mut command = pml();
    let output = command.args(["token", "revoke", id]).env("PML_DATABASE_URL", database.admin_url()).output();
    assert!(output.expect("pml starts").status.success());
}

/// Nothing may be waited for: a cached token would be accepted once more.
fn a_revoked_token_is_refused_at_once(database: &Database, proxy: &Proxy) {
    let (id, token) = new_token(database, "acme", "ann");
    for _ in 0..3 {
        assert!(is_accepted(proxy, &token));
    }
    revoke(database, &id);
    assert!(!is_accepted(proxy, &token));
}

fn is_listening(proxy: &Proxy) -> Option<bool> {
    proxy.readiness()?["listening"].as_bool()
}

fn told(proxy: &Proxy, what: &str) -> usize {
    proxy.log().iter().filter(|line| line.contains(what)).count()
}

const SILENCE: &str = "no notifications: connected, but";
const HEARD_AGAIN: &str = "notifications arrive; tokens and tools are cached again";

#[test]
fn behind_a_pooler_nothing_is_cached_until_notifications_arrive() {
    let database = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    let pooler = Pooler::start(&database, "proxy", 20);
    let proxy = ProxySetup::new(&database)
        .env("PML_DATABASE_URL", &pooler.url_of(&database, "proxy"))
        .args(&["--database-connections", "4"])
        .start();
    a_revoked_token_is_refused_at_once(&database, &proxy);
    eventually("the silence is told", || (told(&proxy, SILENCE) == 1).then_some(()));
    assert_eq!(told(&proxy, "set listen_url"), 1, "{:#?}", proxy.log());
    // It serves all the same.
    assert_eq!(is_listening(&proxy), Some(false));
    a_revoked_token_is_refused_at_once(&database, &proxy);
    for era in Era::BOTH {
        let agent = Agent::connect(&proxy.url, era);
        let (before, name) = (agent.list_changes(), format!("by:hand_{era:?}"));
        agent.tool_names();
        let query = "SELECT pml_register($1, name => $2, visibility => 'project')";
        database.connect().execute(query, &[&format!("return '{era:?}'"), &name]).unwrap();
        assert!(agent.tool_names().contains(&format!("mcp__by__hand_{era:?}")), "{era:?}");
        agent.hears_of_change(before);
    }
    // A stream ends with its token.
    let (id, token) = new_token(&database, "acme", "ann");
    let opened = initialize(&proxy, &token);
    let stream = reqwest::Client::new().get(&proxy.url).bearer_auth(&token);
    let stream = stream.header("accept", "text/event-stream");
    let stream = stream.header("mcp-session-id", &opened.headers()["mcp-session-id"]);
    let mut stream = runtime().block_on(async { stream.send().await }).expect("a stream");
    assert_eq!(stream.status().as_u16(), 200);
    revoke(&database, &id);
    runtime().block_on(async { while let Ok(Some(_)) = stream.chunk().await {} });
    assert_eq!(told(&proxy, SILENCE), 1, "it is told once");

    pooler.set_mode("session");
    eventually("notifications arrive", || (is_listening(&proxy) == Some(true)).then_some(()));
    assert_eq!(told(&proxy, HEARD_AGAIN), 1);
    // The connection stays, and hears nothing any more.
    pooler.set_mode("transaction");
    eventually("the silence is noticed", || {
        Agent::connect(&proxy.url, Era::Stateless).tool_names();
        (told(&proxy, SILENCE) == 2).then_some(())
    });
    a_revoked_token_is_refused_at_once(&database, &proxy);
}

#[test]
fn a_connection_that_is_half_dead_is_given_up() {
    let database = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    let relay = Relay::start(&database);
    let proxy = ProxySetup::new(&database).env("PML_LISTEN_URL", &relay.url_of(&database, "proxy")).start();
    proxy.is_ready();
    let (id, token) = new_token(&database, "acme", "ann");
    assert!(is_accepted(&proxy, &token));
    relay.drop_everything(true);
    // It is cached, and the notification is lost.
    revoke(&database, &id);
    eventually("the connection is given up", || (is_listening(&proxy) == Some(false)).then_some(()));
    assert!(!is_accepted(&proxy, &token));
    a_revoked_token_is_refused_at_once(&database, &proxy);
    relay.drop_everything(false);
    eventually("notifications arrive", || (is_listening(&proxy) == Some(true)).then_some(()));
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let before = agent.list_changes();
    agent.ask("pml_execute", json!({"code": "return 1", "name": "num:one"}));
    agent.hears_of_change(before);
}

fn doctor(database_url: &str, listen_url: Option<&str>) -> (Output, Value) {
    let mut command = pml_by_itself();
    command.env("PML_DATABASE_URL", database_url);
    if let Some(url) = listen_url {
        command.env("PML_LISTEN_URL", url);
    }
    let output = command.args(["doctor", "--json"]).output().expect("pml starts");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let findings = report["findings"].as_array().expect("findings");
    let finding = findings.iter().find(|finding| finding["what"] == "LISTEN").expect("a finding").clone();
    (output, finding)
}

#[test]
fn the_doctor_fails_if_notifications_do_not_arrive() {
    let database = Database::new();
    let other = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    let pooler = Pooler::start(&database, "proxy", 1);
    let (pooled, direct) = (pooler.url_of(&database, "proxy"), database.url_of("proxy"));
    let elsewhere = direct.replace(&format!("dbname={}", database.name), &format!("dbname={}", other.name));
    let standby = Cluster::shared().standby();
    let on_standby =
        direct.replace(&database.socket().display().to_string(), &standby.folder().display().to_string());
    for (listen, seen) in [
        (None, "didn't arrive"),
        (Some(elsewhere.as_str()), "didn't arrive"),
        (Some(on_standby.as_str()), "cannot execute LISTEN during recovery"),
    ] {
        let (output, finding) = doctor(&pooled, listen);
        assert_eq!((output.status.code(), &finding["health"]), (Some(1), &json!("broken")), "{finding}");
        assert!(finding["seen"].as_str().unwrap().contains(seen), "{finding}");
        assert!(finding["advice"].as_str().unwrap().contains("set listen_url"), "{finding}");
    }
    let (output, finding) = doctor(&pooled, Some(&direct));
    assert_eq!((output.status.code(), &finding["health"]), (Some(0), &json!("ok")), "{finding}");
}

#[test]
fn a_proof_reaches_nobody_else() {
    let database = Database::new();
    let mut client = database.connect();
    client.batch_execute("LISTEN pml_tools_changed; LISTEN pml_tokens_changed; LISTEN pml_hearing").unwrap();
    let proxy = Proxy::start(&database);
    proxy.is_ready();
    client.batch_execute("NOTIFY pml_hearing, 'the end'").unwrap();
    let mut heard = Vec::new();
    eventually("the last one", || {
        heard.extend(pml_tests::Ask::notifications_for(&mut client, std::time::Duration::from_millis(20)));
        heard.contains(&"the end".to_owned()).then_some(())
    });
    assert_eq!(heard, ["the end"]);
}
