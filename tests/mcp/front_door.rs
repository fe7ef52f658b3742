//! Connections over raw TCP: clients that send nothing, too little or too slowly don't lock out others.

use pml_tests::{
    Database,
    mcp::{Agent, Era, Proxy, ProxySetup, Wire, eventually, new_token, runtime},
};
use serde_json::json;

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn proxy(database: &Database, args: &[&str]) -> Proxy {
    database.create_role("proxy", &["pml_proxy"]);
    ProxySetup::new(database).args(args).start()
}

/// The head of a request whose body is to have this length.
fn head(length: usize, token: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// A connection on which a request is under way, whose body never ends.
fn begin_body(mut wire: Wire, token: &str) -> Wire {
    let head = head(1000, token).replacen("Host:", "Expect: 100-continue\r\nHost:", 1);
    let (status, answer) = wire.ask(&head);
    assert_eq!(status, 100, "{answer}");
    assert!(wire.send("{"));
    wire
}

fn closed(proxy: &Proxy, reason: &str) -> u64 {
    proxy.metric(&format!("pml_http_connections_closed_total{{reason=\"{reason}\"}}"))
}

#[test]
fn bytes_that_never_come_are_not_waited_for() {
    let database = Database::new();
    let proxy = proxy(&database, &["--header-timeout", "2"]);
    let mut silent = Wire::to(&proxy);
    let mut one_byte = Wire::to(&proxy);
    assert!(one_byte.send("G"));
    let mut unfinished = Wire::to(&proxy);
    assert!(unfinished.send("POST /mcp HTTP/1.1\r\nHost: localhost\r\n"));
    let mut http2 = Wire::to(&proxy);
    assert!(http2.send("PRI * HTTP/2.0\r\n\r\n"));
    // The second request of a connection has the same timeout.
    let mut second = Wire::to(&proxy);
    assert_eq!(second.ask(HEALTH).0, 200);
    assert!(second.send("GET /heal"));
    for wire in [&mut silent, &mut one_byte, &mut unfinished, &mut http2, &mut second] {
        wire.is_closed();
    }
    assert_eq!(closed(&proxy, "head"), 5);
    // Single bytes don't extend the timeout.
    let mut drip = Wire::to(&proxy);
    assert!(drip.send("GET /healthz HTTP/1.1\r\nX-Long: "));
    eventually("the connection is closed", || (!drip.send("x")).then_some(()));
}

#[test]
fn an_idle_connection_ends_and_a_stream_stays() {
    let database = Database::new();
    let proxy = proxy(&database, &["--idle-timeout", "1"]);
    proxy.is_ready();
    let agents = Era::BOTH.map(|era| Agent::connect(&proxy.url, era));
    agents.iter().for_each(|agent| drop(agent.tools()));
    let before = agents.each_ref().map(Agent::list_changes);
    // Two in a row, so that the streams are open for longer than the idle timeout.
    for _ in 0..2 {
        let mut idle = Wire::to(&proxy);
        assert_eq!(idle.ask(HEALTH).0, 200);
        idle.is_closed();
    }
    assert!(closed(&proxy, "idle") >= 2);
    agents[0].ask("pml_execute", json!({"code": "return 1", "name": "still:here"}));
    for (agent, before) in agents.iter().zip(before) {
        agent.hears_of_change(before);
    }
}

#[test]
fn slow_bodies_take_nobody_s_place() {
    let database = Database::new();
    let (_, token) = new_token(&database, "acme", "ann");
    let proxy = proxy(&database, &["--require-token", "--concurrency", "1", "--body-timeout", "600"]);
    let slow: Vec<Wire> = (0..20).map(|_| begin_body(Wire::to(&proxy), &token)).collect();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let ping = ping.to_string();
    let (status, answer) = Wire::to(&proxy).ask(&format!("{}{ping}", head(ping.len(), &token)));
    assert_eq!(status, 200, "{answer}");
    drop(slow);
    // A body that is too slow is rejected with a reason.
    let hasty = ProxySetup::new(&database).args(&["--require-token", "--body-timeout", "0.3"]).start();
    let mut wire = Wire::to(&hasty);
    let (status, answer) = wire.ask(&format!("{}{{", head(1000, &token)));
    assert_eq!(status, 408, "{answer}");
    assert!(answer.contains("\"jsonrpc\"") && answer.contains("is too slow"), "{answer}");
    assert_eq!(hasty.metric("pml_http_refused_total{reason=\"slow_body\"}"), 1);
}

#[test]
fn unfinished_bodies_have_a_bounded_size_together() {
    let database = Database::new();
    let (_, token) = new_token(&database, "acme", "ann");
    let args = ["--require-token", "--max-body", "1000", "--body-timeout", "600"];
    let proxy = proxy(&database, &args);
    let mut held: Vec<Wire> = (0..20).map(|_| Wire::to(&proxy)).collect();
    for wire in &mut held {
        assert!(wire.send(&head(1000, &token)) && wire.send(&"x".repeat(900)));
    }
    // Sixteen largest bodies of one token fit.
    eventually("some are refused", || {
        (proxy.metric("pml_http_refused_total{reason=\"bodies\"}") == 3).then_some(())
    });
    drop(held);
}

#[test]
fn one_address_does_not_keep_others_out() {
    let database = Database::new();
    let (_, token) = new_token(&database, "acme", "ann");
    let args = ["--require-token", "--max-connections-per-address", "4", "--body-timeout", "600"];
    let proxy = proxy(&database, &args);
    let busy: Vec<Wire> =
        (0..4).map(|_| begin_body(Wire::from_address("127.0.0.3", &proxy), &token)).collect();
    Wire::from_address("127.0.0.3", &proxy).is_closed();
    assert_eq!(proxy.metric("pml_http_connections_refused_total{reason=\"address\"}"), 1);
    assert_eq!(Wire::from_address("127.0.0.4", &proxy).ask(HEALTH).0, 200);
    // Silent connections are evicted for others, also of the same address.
    let silent: Vec<Wire> = (0..10).map(|_| Wire::from_address("127.0.0.5", &proxy)).collect();
    assert_eq!(Wire::from_address("127.0.0.5", &proxy).ask(HEALTH).0, 200);
    drop((busy, silent));
}

#[test]
fn a_crowd_of_silent_connections_keeps_nobody_out() {
    let database = Database::new();
    let proxy = proxy(&database, &["--max-connections", "20", "--header-timeout", "600"]);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let code = "await new Promise(done => setTimeout(done, 6000)); return 'done'";
    let working = agent.start_call("pml_execute", json!({"code": code}));
    eventually("it runs", || (proxy.metric("pml_calls_running") == 1).then_some(()));
    let mut crowd: Vec<Wire> = (0..500).map(|_| Wire::to(&proxy)).collect();
    for wire in &mut crowd {
        wire.send("G");
    }
    assert_eq!(Wire::to(&proxy).ask(HEALTH).0, 200);
    let answer = runtime().block_on(working.await_response()).expect("an answer");
    assert!(serde_json::to_string(&answer).unwrap().contains("done"), "who works stays");
    assert!(closed(&proxy, "evicted") >= 480);
    assert!(proxy.metric("pml_http_connections") <= 20);
}

#[test]
fn a_client_that_reads_nothing_is_let_go() {
    let database = Database::new();
    let proxy = proxy(&database, &["--send-timeout", "1"]);
    let mut deaf = Wire::to(&proxy);
    // More answers than the buffers of both sides hold.
    eventually("nothing more can be sent", || (!deaf.send(&HEALTH.repeat(1000))).then_some(()));
    assert_eq!(closed(&proxy, "send"), 1);
}
