//! A request's id is on all its log lines, also those about Postgres' warnings and the sandbox.

use pml_tests::{
    Database,
    mcp::{Proxy, eventually, runtime},
};
use serde_json::{Value, json};

/// Calls a tool with a request id.
async fn call(url: String, id: &'static str, tool: &'static str, arguments: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let request = reqwest::Client::new()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .header("x-request-id", id)
        .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    request.send().await.expect("an answer").json().await.expect("JSON")
}

/// Waits for log lines with these words.
fn lines(proxy: &Proxy, words: &str) -> Vec<Value> {
    eventually(words, || {
        let log = proxy.log();
        let lines = log.iter().filter(|line| line.contains(words));
        let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("JSON")).collect();
        (!lines.is_empty()).then_some(lines)
    })
}

#[test]
fn the_use_of_an_alias_is_logged_with_the_request() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let register = json!({"code": "return 1", "name": "old:name"});
    runtime().block_on(call(proxy.url.clone(), "first", "pml_execute", register));
    database.connect().batch_execute("SELECT pml_rename('old:name', 'new:name')").unwrap();
    let by_alias = json!({"capability": "old:name"});
    let answer = runtime().block_on(call(proxy.url.clone(), "by-alias", "pml_execute", by_alias));
    assert_eq!(answer["result"]["structuredContent"]["status"], "success", "{answer:#}");
    for line in lines(&proxy, "Deprecated: using alias") {
        assert_eq!(line["span"]["request_id"], "by-alias", "{line:#}");
    }
}

#[test]
fn a_dead_worker_is_logged_with_the_request() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let code = json!({"code": "await new Promise(done => setTimeout(done, 20000)); return 1"});
    let running = runtime().spawn(call(proxy.url.clone(), "killed-run", "pml_execute", code));
    proxy.runs_code();
    // It may not have its process yet.
    eventually("the run is lost", || {
        proxy.kill_workers();
        running.is_finished().then_some(())
    });
    runtime().block_on(running).expect("an answer");
    let lines = lines(&proxy, "sandbox process");
    assert!(lines.iter().any(|line| line.to_string().contains("signal: 9")), "{lines:#?}");
    for line in lines {
        assert_eq!(line["span"]["request_id"], "killed-run", "{line:#}");
    }
}
