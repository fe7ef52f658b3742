//! Raw calls beside rmcp's own messages, on in-memory pipes.

use std::sync::Arc;

use rmcp::{
    RoleClient, ServiceError,
    transport::{Transport as _, async_rw::AsyncRwTransport},
};
use serde_json::{Value, json, value::RawValue};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};

use super::{Output, Passthrough, ReplyRouter, stdin::Writer};
use crate::lines::FilteredLines;

type Rmcp = AsyncRwTransport<RoleClient, FilteredLines<ReadHalf<DuplexStream>, Arc<ReplyRouter>>, Writer>;

struct Server {
    reads: BufReader<ReadHalf<DuplexStream>>,
    writes: WriteHalf<DuplexStream>,
}

impl Server {
    async fn reads(&mut self) -> Value {
        let mut line = String::new();
        self.reads.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn writes(&mut self, message: &Value) {
        self.writes.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
}

fn connected(room: usize) -> (Arc<Passthrough>, Rmcp, Server) {
    let (ours, theirs) = tokio::io::duplex(room);
    let ((stdout, stdin), (reads, writes)) = (tokio::io::split(ours), tokio::io::split(theirs));
    let answers = Arc::<ReplyRouter>::default();
    let (output, writer) = Output::new(stdin);
    let rmcp = AsyncRwTransport::new(FilteredLines::new(stdout, answers.clone()), writer);
    let server = Server { reads: BufReader::new(reads), writes };
    (Arc::new(Passthrough::Stdio(answers, output)), rmcp, server)
}

fn args(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn call(way: &Arc<Passthrough>, text: &str) -> tokio::task::JoinHandle<Result<(String, bool), ServiceError>> {
    let (way, args) = (way.clone(), args(text));
    tokio::spawn(async move {
        let answer = way.call("echo", Some(&args)).await?;
        Ok((String::from_utf8(answer.result.to_vec()).unwrap(), answer.is_error))
    })
}

/// Reads as rmcp's service does, and returns what it received.
fn serve(mut rmcp: Rmcp) -> tokio::task::JoinHandle<Vec<Value>> {
    tokio::spawn(async move {
        let mut heard = Vec::new();
        while let Some(message) = rmcp.receive().await {
            heard.push(serde_json::to_value(message).unwrap());
        }
        heard
    })
}

#[tokio::test]
async fn answers_are_passed_on_as_they_are_and_the_rest_is_rmcps() {
    let (way, rmcp, mut server) = connected(64);
    let service = serve(rmcp);
    let first = call(&way, r#"{"a": 1.0}"#);
    let asked = server.reads().await;
    assert_eq!(asked["params"], json!({"name": "echo", "arguments": {"a": 1.0}}));
    let second = call(&way, "{\n\"a\":\r\n2}");
    let again = server.reads().await;
    assert_eq!(again["params"]["arguments"], json!({"a": 2}));
    // A request of the server, with the same id, and an answer to one of rmcp's.
    server.writes(&json!({"jsonrpc": "2.0", "id": asked["id"], "method": "ping"})).await;
    server.writes(&json!({"jsonrpc": "2.0", "id": 7, "result": {}})).await;
    let result = r#"{"isError":true,  "content":[], "unknown":1.50}"#;
    let line = format!("{{\"result\":{result},\"id\":{},\"jsonrpc\":\"2.0\"}}\r\n", again["id"]);
    server.writes.write_all(line.as_bytes()).await.unwrap();
    assert_eq!(second.await.unwrap().unwrap(), (result.to_owned(), true));
    server.writes(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"content": []}})).await;
    assert_eq!(first.await.unwrap().unwrap(), (r#"{"content":[]}"#.to_owned(), false));
    drop(server);
    let heard = service.await.unwrap();
    assert_eq!(heard.iter().map(|message| &message["id"]).collect::<Vec<_>>(), [&asked["id"], &json!(7)]);
}

#[tokio::test]
async fn results_that_clients_would_reject_are_fixed() {
    let (way, rmcp, mut server) = connected(1024);
    let _service = serve(rmcp);
    for (result, expected) in [
        (json!({}), json!({"content": []})),
        (json!({"content": [], "resultType": "complete"}), json!({"content": []})),
    ] {
        let called = call(&way, "{}");
        let id = server.reads().await["id"].clone();
        server.writes(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
        let (answer, is_error) = called.await.unwrap().unwrap();
        assert_eq!((serde_json::from_str::<Value>(&answer).unwrap(), is_error), (expected, false));
    }
    for (answer, is_mcp) in [
        (json!({"error": {"code": -32602, "message": "no"}}), true),
        (json!({"error": "no"}), false),
        (json!({"result": 1}), false),
        (json!({"result": null}), false),
    ] {
        let called = call(&way, "{}");
        let mut message = json!({"jsonrpc": "2.0", "id": server.reads().await["id"]});
        message.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        server.writes(&message).await;
        let error = called.await.unwrap().unwrap_err();
        assert_eq!(matches!(error, ServiceError::McpError(_)), is_mcp, "{error:?}");
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_and_its_late_reply_ignored() {
    let (way, rmcp, mut server) = connected(1024);
    let service = serve(rmcp);
    let called = call(&way, "{}");
    let id = server.reads().await["id"].clone();
    called.abort();
    let cancelled = server.reads().await;
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &id)
    );
    let next = call(&way, "{}");
    let next_id = server.reads().await["id"].clone();
    server.writes(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}})).await;
    server.writes(&json!({"jsonrpc": "2.0", "id": next_id, "result": {"content": []}})).await;
    assert!(next.await.unwrap().is_ok());
    drop(server);
    assert!(service.await.unwrap().is_empty());
}

#[tokio::test]
async fn pending_calls_fail_when_the_server_ends() {
    let (way, rmcp, mut server) = connected(1024);
    let _service = serve(rmcp);
    let called = call(&way, "{}");
    server.reads().await;
    drop(server);
    assert!(matches!(called.await.unwrap(), Err(ServiceError::TransportClosed)));
    assert!(call(&way, "{}").await.unwrap().is_err());
}

#[tokio::test]
async fn lines_for_a_server_that_reads_slowly_are_buffered() {
    let (way, rmcp, mut server) = connected(16);
    let _service = serve(rmcp);
    let called: Vec<_> = (0..5)
        .map(|number| call(&way, &format!(r#"{{"number":{number},"x":"{}"}}"#, "x".repeat(100))))
        .collect();
    for _ in &called {
        let asked = server.reads().await;
        let content = json!([{"type": "text", "text": asked["params"]["arguments"]["number"].to_string()}]);
        server.writes(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"content": content}})).await;
    }
    for (number, called) in called.into_iter().enumerate() {
        let (answer, _) = called.await.unwrap().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap()["content"][0]["text"], number.to_string());
    }
}

#[tokio::test]
async fn the_servers_input_ends_with_rmcp() {
    let (way, mut rmcp, mut server) = connected(1024);
    rmcp.close().await.unwrap();
    assert!(matches!(call(&way, "{}").await.unwrap(), Err(ServiceError::TransportSend(_))));
    // The in-memory pipe ends when both halves are gone.
    drop((way, rmcp));
    let mut rest = String::new();
    server.reads.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "");
}
