//! Any database user can send notifications: a flood of them costs little, notifies no client, and hides no real change.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use pml_tests::{
    Database,
    mcp::{Agent, Era, ProxySetup, eventually, new_token, pml, runtime},
};
use reqwest::StatusCode;

/// 20,000 different notifications: valid ones, ones for connected clients, and malformed ones.
const FLOOD: &str = "
    SELECT pg_notify('pml_tokens_changed', gen_random_uuid()::text) FROM generate_series(1, 5000);
    SELECT pg_notify('pml_tokens_changed', repeat('x', i % 7000) || i) FROM generate_series(1, 5000) i;
    SELECT pg_notify('pml_tools_changed', 'acme.p' || i) FROM generate_series(1, 5000) i;
    SELECT pg_notify('pml_tools_changed', repeat('.', i % 7000) || i) FROM generate_series(1, 5000) i;";

/// The statements of roles that are logged: those of one test only.
fn statements(database: &Database) -> usize {
    let log = fs::read_to_string(database.socket().join("server.log")).expect("a log");
    log.lines().filter(|line| line.contains("LOG:  execute") || line.contains("LOG:  statement:")).count()
}

#[test]
fn a_flood_of_notifications_costs_few_transactions_and_tells_nobody() {
    let database = Database::new();
    let role = database.create_role("proxy", &["pml_proxy"]);
    database.create_role("stranger", &[]);
    // Statements are counted in Postgres' log, because its transaction counters include each delivery of notifications.
    database.connect().batch_execute(&format!("ALTER ROLE {role} SET log_statement = 'all'")).unwrap();
    let (id, token) = new_token(&database, "acme", "ann");
    let proxy = ProxySetup::new(&database).start();
    proxy.is_ready();
    let agents = Era::BOTH.map(|era| Agent::with_token(&proxy.url, era, &token));
    agents.iter().for_each(|agent| drop(agent.tools()));
    let before = agents.each_ref().map(Agent::list_changes);
    let (asked_before, begun) = (statements(&database), Instant::now());
    assert!(asked_before > 0);
    // Any user can do this. Each of the last ones is a separate transaction.
    let mut stranger = database.connect_as("stranger");
    stranger.batch_execute(FLOOD).unwrap();
    let mut sent = 20_000;
    for _ in 0..1_000 {
        stranger.batch_execute(&format!("NOTIFY pml_tokens_changed, '{id}'")).unwrap();
        stranger.batch_execute("NOTIFY pml_tools_changed, 'acme.default'").unwrap();
        sent += 2;
    }
    let heard = || -> u64 {
        let outcomes = ["taken", "coalesced", "unneeded", "malformed"];
        let each = outcomes.iter().flat_map(|outcome| {
            ["tools", "tokens"].map(|kind| format!("{{kind=\"{kind}\",outcome=\"{outcome}\"}}"))
        });
        each.map(|labels| proxy.metric(&format!("pml_notifications_total{labels}"))).sum()
    };
    eventually("all are heard", || (heard() >= sent).then_some(()));
    let coalesced = "pml_notifications_total{kind=\"tools\",outcome=\"coalesced\"}";
    assert!(proxy.metric(coalesced) > 0);
    // Only a real change is notified.
    let register = "SET pml.org = 'acme'; SELECT pml_register('return 1', name => 'made:by_hand', visibility => 'project')";
    database.connect().batch_execute(register).unwrap();
    for (agent, before) in agents.iter().zip(before) {
        agent.hears_of_change(before);
        assert_eq!(agent.list_changes(), before + 1);
    }
    let asked = statements(&database) - asked_before;
    // Three a second: the token, and the two parts of the list.
    let most = 50 + 3 * usize::try_from(begun.elapsed().as_secs()).unwrap();
    assert!(asked < most, "{asked} statements for {sent} notifications");
}

#[test]
fn a_revoked_token_ends_at_once_during_a_flood() {
    let database = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    database.create_role("stranger", &[]);
    let (id, token) = new_token(&database, "acme", "ann");
    let proxy = ProxySetup::new(&database).args(&["--require-token"]).start();
    proxy.is_ready();
    let ask = |session: Option<&str>| {
        let client = reqwest::Client::new();
        let request = match session {
            Some(session) => client.get(&proxy.url).header("mcp-session-id", session),
            None => client.post(&proxy.url).header("content-type", "application/json").body(
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
            ),
        };
        let request = request.header("accept", "application/json, text/event-stream").bearer_auth(&token);
        runtime().block_on(request.send()).expect("an answer")
    };
    let opened = ask(None);
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let mut stream = ask(Some(&session));
    assert_eq!(stream.status(), StatusCode::OK);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut stranger = database.connect_as("stranger");
            let known = format!("NOTIFY pml_tokens_changed, '{id}'");
            while !is_over.load(Ordering::Relaxed) {
                stranger.batch_execute(FLOOD).unwrap();
                stranger.batch_execute(&known).unwrap();
            }
        });
        let mut revoke = pml();
        revoke.args(["token", "revoke", &id]).env("PML_DATABASE_URL", database.admin_url());
        eventually("the flood", || {
            (proxy.metric("pml_notifications_total{kind=\"tokens\",outcome=\"malformed\"}") > 0).then_some(())
        });
        assert!(revoke.output().unwrap().status.success());
        // Only the revocation ends the stream: nothing else checks its token.
        runtime().block_on(async { while let Ok(Some(_)) = stream.chunk().await {} });
        assert_eq!(ask(None).status(), StatusCode::UNAUTHORIZED);
        is_over.store(true, Ordering::Relaxed);
    });
}
