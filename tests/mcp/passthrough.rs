//! The fast path: calls of servers' tools by clients with a session, without progress and without capabilities to be asked.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pml_tests::{
    Ask, Database,
    mcp::{Proxy, ProxySetup, eventually, runtime},
    peers::{node, program, servers_file},
};
use reqwest::{RequestBuilder, header::HeaderMap};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A proxy with one server, and a session with it.
struct Session {
    proxy: Proxy,
    id: String,
    folder: TempDir,
}

impl Session {
    fn open(database: &Database) -> Session {
        Session::with(database, &[])
    }

    fn with(database: &Database, args: &[&str]) -> Session {
        database.create_role("proxy", &["pml_proxy"]);
        let folder = tempfile::tempdir().expect("a folder");
        let journal = journal(folder.path());
        let moody = json!({"command": node(), "args": [program("moody_server.mjs"), journal]});
        let file = servers_file(folder.path(), &json!({"moody": moody}));
        let file = file.to_str().expect("a readable path");
        let proxy = ProxySetup::new(database).args(&["--mcp-servers", file]).args(args).start();
        proxy.is_ready();
        let mut session = Session { proxy, id: String::new(), folder };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "simple", "version": "1"}});
        let welcome = session.post(&request(1, "initialize", &hello));
        session.id = welcome.0["mcp-session-id"].to_str().unwrap().to_owned();
        session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        eventually("the server's tools are listed", || {
            session.post(&request(2, "tools/list", &json!({}))).1.contains("mcp__moody__raw").then_some(())
        });
        session
    }

    fn post(&self, message: &Value) -> (HeaderMap, String) {
        runtime().block_on(post(self.proxy.url.clone(), self.id.clone(), message.clone()))
    }

    /// Calls `late` once, so that its name is cached; the next call waits for the file.
    fn late_once(&self) -> PathBuf {
        let proceed = self.folder.path().join("proceed");
        fs::write(&proceed, "").unwrap();
        self.post(&call(3, "late", &json!({"file": proceed})));
        fs::remove_file(&proceed).unwrap();
        proceed
    }

    fn journal(&self) -> Vec<String> {
        let text = fs::read_to_string(journal(self.folder.path())).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn noted(&self, what: &str) -> usize {
        self.journal().iter().filter(|line| line.starts_with(what)).count()
    }
}

fn journal(folder: &Path) -> PathBuf {
    folder.join("journal")
}

fn request_to(url: &str, session: &str, message: &Value) -> RequestBuilder {
    let request = reqwest::Client::new()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(message.to_string());
    if session.is_empty() {
        return request;
    }
    request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25")
}

/// The whole response.
async fn post(url: String, session: String, message: Value) -> (HeaderMap, String) {
    let response = request_to(&url, &session, &message).send().await.expect("a response");
    (response.headers().clone(), response.text().await.expect("a body"))
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    request(id, "tools/call", &json!({"name": format!("mcp__moody__{tool}"), "arguments": arguments}))
}

#[test]
fn an_answer_is_the_same_the_first_time_and_later() {
    let database = Database::new();
    let session = Session::open(&database);
    let content =
        json!({"content": [{"type": "text", "text": "hi"}], "structuredContent": {"n": 1}, "isError": false});
    for id in 3..6 {
        let (_, answer) = session.post(&call(id, "raw", &json!({"result": content})));
        // As JSON, or in a stream if it took its time.
        let message =
            answer.lines().map(|line| line.trim_start_matches("data:")).find(|line| line.contains('{'));
        let answer: Value = serde_json::from_str(message.expect("a message")).expect("JSON");
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": id, "result": content}));
    }
    let mut sql = database.connect();
    eventually("each is counted", || {
        (sql.number("SELECT count(*) FROM pml.tool_usage WHERE tool_id = 'moody:raw'") == 3).then_some(())
    });
    let metrics = runtime().block_on(async {
        reqwest::get(session.proxy.page("/metrics")).await.unwrap().text().await.unwrap()
    });
    assert!(metrics.contains("pml_tool_calls_total{kind=\"tool\",outcome=\"success\"} 3"), "{metrics}");
}

#[test]
fn a_setting_turns_it_off() {
    // A field that MCP doesn't define is kept only if the result isn't parsed.
    let result = json!({"content": [{"type": "text", "text": "hi"}], "isError": false, "unheardOf": 1});
    for (setting, is_kept) in [("true", true), ("false", false)] {
        let database = Database::new();
        let session = Session::with(&database, &["--passthrough", setting]);
        let mut ids = 3..;
        let mut is_unparsed = || {
            let (_, answer) = session.post(&call(ids.next().unwrap(), "raw", &json!({"result": result})));
            assert!(answer.contains("\"hi\""), "{answer}");
            answer.contains("unheardOf")
        };
        // The first call looks the name up in Postgres; a late notification makes the next one do so again.
        if is_kept {
            eventually("a call that is passed through", || is_unparsed().then_some(()));
        } else {
            assert!((0..3).all(|_| !is_unparsed()));
        }
    }
}

#[test]
fn a_cancelled_call_is_cancelled_at_the_server_and_gets_no_answer() {
    let database = Database::new();
    let session = Session::open(&database);
    // The first takes the normal path, because its name isn't cached yet.
    for (round, id) in (1..).zip(3..5) {
        let waiting = runtime().spawn(post(
            session.proxy.url.clone(),
            session.id.clone(),
            call(id, "cancellable", &json!({})),
        ));
        eventually("the call is under way", || (session.noted("waiting") == round).then_some(()));
        let params = json!({"requestId": id, "reason": "enough"});
        session.post(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        eventually("the server hears of it", || (session.noted("cancelled") == round).then_some(()));
        let (_, text) = runtime().block_on(waiting).unwrap();
        assert!(!text.contains("\"result\"") && !text.contains("\"error\""), "{text}");
    }
    let mut sql = database.connect();
    eventually("both are counted", || {
        (sql.number("SELECT count(*) FROM pml.tool_usage WHERE NOT success") == 2).then_some(())
    });
}

#[test]
fn a_call_whose_client_has_gone_is_counted() {
    let database = Database::new();
    let session = Session::open(&database);
    let proceed = session.late_once();
    let waiting = runtime().spawn(post(
        session.proxy.url.clone(),
        session.id.clone(),
        call(4, "late", &json!({"file": proceed})),
    ));
    eventually("the call is under way", || {
        let ask = async { reqwest::get(session.proxy.page("/metrics")).await.ok()?.text().await.ok() };
        runtime().block_on(ask).is_some_and(|text| text.contains("pml_calls_running 1")).then_some(())
    });
    waiting.abort();
    fs::write(&proceed, "").unwrap();
    let mut sql = database.connect();
    eventually("both are counted", || {
        (sql.number("SELECT count(*) FROM pml.tool_usage WHERE tool_id = 'moody:late'") == 2).then_some(())
    });
}

#[test]
fn a_slow_answer_comes_as_a_stream_that_is_open_before() {
    let database = Database::new();
    let session = Session::open(&database);
    let proceed = session.late_once();
    let (kind, text) = runtime().block_on(async {
        let response =
            request_to(&session.proxy.url, &session.id, &call(4, "late", &json!({"file": proceed})))
                .send()
                .await
                .expect("a response");
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        fs::write(&proceed, "").unwrap();
        (kind, response.text().await.expect("a body"))
    });
    assert_eq!(kind, "text/event-stream");
    let message = text.lines().find_map(|line| line.strip_prefix("data: {")).expect("a message");
    let message: Value = serde_json::from_str(&format!("{{{message}")).expect("JSON");
    assert_eq!((&message["id"], message["result"]["content"].is_array()), (&json!(4), true));
}

#[test]
fn what_is_unusual_about_a_request_is_looked_at() {
    let database = Database::new();
    let session = Session::open(&database);
    let echo = |id: u64| call(id, "raw", &json!({"result": {"content": []}}));
    session.post(&echo(3));
    for (header, value, status) in [
        ("origin", "https://evil.example", 403),
        ("host", "evil.example", 403),
        ("mcp-protocol-version", "1999-01-01", 400),
        ("accept", "application/json", 406),
        ("content-type", "text/plain", 415),
        ("mcp-session-id", "somebody-elses", 404),
        ("origin", "http://localhost:1", 200),
    ] {
        let answered = runtime().block_on(async {
            let request = request_to(&session.proxy.url, &session.id, &echo(4));
            let (client, request) = request.build_split();
            let mut request = request.expect("a request");
            request.headers_mut().insert(header, value.parse().unwrap());
            client.execute(request).await.expect("a response")
        });
        assert_eq!(answered.status(), status, "{header}: {value}");
    }
}
