//! Calls that are passed through as they are: like any other to the server, and to whoever waits for the answer.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::post,
};
use pml_proxy::downstream::{CallContext, DownstreamError, Downstreams};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    http::{Everything, free_port},
    peers::{call, downstreams, journal, kill, last_started, moody, npm, pass_through, raw, text, until},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_the_one_that_a_call_gets() {
    let over_http = Everything::start(free_port()).await;
    for entries in [json!({"everything": npm("mcp-server-everything", &["stdio"])}), over_http.entry()] {
        let servers = downstreams(entries);
        for (tool, args) in [
            ("echo", json!({"message": "a\nb \u{2028} \u{e9}"})),
            ("get-sum", json!({"a": 1.5, "b": 2})),
            ("get-tiny-image", json!({})),
            ("get-structured-content", json!({"location": "Chicago"})),
            ("get-annotated-message", json!({"messageType": "error", "includeImage": true})),
            // What the server refuses, and what it doesn't have.
            ("echo", json!({"message": 1})),
            ("nobody-knows", json!({})),
        ] {
            let called = call(&servers, "everything", tool, args.clone()).await.map_err(|e| e.to_string());
            let called = called.map(|mut result| {
                result.result_type = None;
                result
            });
            let passed_through =
                pass_through(&servers, "everything", tool, args).await.map_err(|e| e.to_string());
            assert_eq!(passed_through, called, "{tool}");
        }
        servers.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_each_get_their_own() {
    let over_http = Everything::start(free_port()).await;
    for entries in [json!({"everything": npm("mcp-server-everything", &["stdio"])}), over_http.entry()] {
        let servers = Arc::new(downstreams(entries));
        let calls: Vec<_> = (0..100)
            .map(|number| {
                let servers = Arc::clone(&servers);
                let args = json!({"message": "x".repeat(number * 100) + &number.to_string()});
                // Some beside the others go the other way.
                tokio::spawn(async move {
                    if number % 5 == 0 {
                        call(&servers, "everything", "echo", args).await
                    } else {
                        pass_through(&servers, "everything", "echo", args).await
                    }
                })
            })
            .collect();
        for (number, call) in calls.into_iter().enumerate() {
            let expected = format!("Echo: {}{number}", "x".repeat(number * 100));
            assert_eq!(text(&call.await.unwrap().unwrap()), expected);
        }
        servers.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cancelled_or_takes_too_long_is_cancelled_at_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let servers = downstreams(json!({"moody": moody(&path)}));
    let noted = |what: &str| journal(&path).iter().filter(|line| line.starts_with(what)).count();
    let context = CallContext { timeout: Some(Duration::from_millis(300)), ..CallContext::default() };
    let error = servers.call(&raw("moody", "cancellable", &json!({})), context).await.unwrap_err();
    assert!(matches!(error, DownstreamError::Timeout { .. }), "{error}");
    until("the server knows", async || (noted("cancelled") == 1).then_some(())).await;
    let cancel = CancellationToken::new();
    let context = CallContext { cancel: cancel.clone(), ..CallContext::default() };
    let calling = tokio::spawn({
        let servers = servers.clone();
        async move { servers.call(&raw("moody", "cancellable", &json!({})), context).await }
    });
    until("it waits", async || (noted("waiting") == 2).then_some(())).await;
    cancel.cancel();
    let error = calling.await.unwrap().unwrap_err();
    assert!(matches!(error, DownstreamError::Cancelled { .. }), "{error}");
    until("the server knows", async || (noted("cancelled") == 2).then_some(())).await;
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_under_way_is_lost_with_its_server_and_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let servers = downstreams(json!({"moody": moody(&path)}));
    let calling = tokio::spawn({
        let servers = servers.clone();
        async move { pass_through(&servers, "moody", "cancellable", json!({})).await }
    });
    until("it waits", async || journal(&path).contains(&"waiting".to_owned()).then_some(())).await;
    kill(last_started(&path), "-9");
    let error = calling.await.unwrap().unwrap_err();
    assert!(matches!(error, DownstreamError::Lost { .. }), "{error}");
    until("it is back", async || pass_through(&servers, "moody", "complain", json!({"lines": 0})).await.ok())
        .await;
    assert_eq!(journal(&path).iter().filter(|line| *line == "waiting").count(), 1);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_http_a_forgotten_session_costs_no_call_and_a_dead_server_is_said_to_be() {
    let mut server = Everything::start(free_port()).await;
    let servers = downstreams(server.entry());
    pass_through(&servers, "everything", "echo", json!({"message": "1"})).await.unwrap();
    // Longer than the shortest life of a session.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    server.kill();
    let mut server = Everything::start(server.port).await;
    let echo = pass_through(&servers, "everything", "echo", json!({"message": "2"})).await.unwrap();
    assert_eq!(text(&echo), "Echo: 2");
    server.kill();
    let reason = until("it is noticed", async || {
        match pass_through(&servers, "everything", "echo", json!({"message": "x"})).await.unwrap_err() {
            DownstreamError::Down { reason, .. } => Some(reason),
            _ => None,
        }
    })
    .await;
    assert!(reason.contains("Connection refused"), "{reason}");
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_is_told_that_nobody_can_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    let servers = downstreams(json!({"moody": moody(&folder.path().join("journal"))}));
    let elicitation = json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}});
    let requests =
        json!({"requests": [{"method": "elicitation/create", "params": elicitation}, {"method": "ping"}]});
    let answers = pass_through(&servers, "moody", "ask", requests).await.unwrap();
    let answers: Value = serde_json::from_str(&text(&answers)).unwrap();
    let why = json!({"declinedBecause": "the call has no client to ask"});
    assert_eq!(answers, json!([{"action": "decline", "_meta": {"pml": why}}, {}]));
    servers.close().await;
}

/// A server whose streams break off before the answer, which then comes on the next one; and which asks meanwhile.
async fn broken_off(State(said): State<Said>, headers: HeaderMap, Json(message): Json<Value>) -> Response {
    let answer = |result: Value| {
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        ([("mcp-session-id", "s")], Json(body)).into_response()
    };
    said.lock().push(message.clone());
    match message["method"].as_str() {
        Some("initialize") => answer(json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "broken", "version": "1"},
        })),
        Some("tools/list") => answer(json!({"tools": [{"name": "late", "inputSchema": {"type": "object"}}]})),
        Some("tools/call") => {
            assert_eq!(headers["mcp-session-id"], "s");
            assert_eq!(headers["mcp-protocol-version"], "2025-11-25");
            let asked = json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"});
            let events = format!("id: {}\nretry: 10\ndata:\n\ndata: {asked}\n\n", message["id"]);
            ([(CONTENT_TYPE, "text/event-stream")], events).into_response()
        }
        Some("server/discover") => {
            let error = json!({"code": -32601, "message": "unknown"});
            Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error})).into_response()
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

async fn next_stream(headers: HeaderMap) -> Response {
    let Some(last) = headers.get("last-event-id").and_then(|id| id.to_str().ok()) else {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    };
    let result = json!({"content": [{"type": "text", "text": "at last"}]});
    let answer = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{last},\"result\":{result}}}\n\n");
    ([(CONTENT_TYPE, "text/event-stream")], answer).into_response()
}

type Said = Arc<parking_lot::Mutex<Vec<Value>>>;

async fn broken_server() -> (Downstreams, Said) {
    let said = Said::default();
    let router = Router::new().route("/mcp", post(broken_off).get(next_stream)).with_state(Arc::clone(&said));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, router).into_future());
    (downstreams(json!({"broken": {"type": "http", "url": url}})), said)
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_http_an_answer_is_fetched_where_its_stream_broke_off() {
    let (servers, said) = broken_server().await;
    let answer = pass_through(&servers, "broken", "late", json!({})).await.unwrap();
    assert_eq!(text(&answer), "at last");
    let declined = json!({"jsonrpc": "2.0", "id": "q", "result": {"roots": []}});
    until("its question is answered", async || said.lock().contains(&declined).then_some(())).await;
    servers.close().await;
}
