//! Calls: progress, cancellation, timeouts, lists that change, answers as they are.

use std::{sync::Arc, time::Duration};

use pml_proxy::downstream::{CallContext, DownstreamError, Progress};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::peers::{call, complete, downstreams, journal, moody, npm, parsed, text, until};

#[tokio::test(flavor = "multi_thread")]
async fn progress_arrives_in_order_and_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let servers = downstreams(json!({"moody": moody(&folder.path().join("journal"))}));
    let (progress, mut received) = mpsc::unbounded_channel();
    let context = CallContext { progress: Some(progress), ..CallContext::default() };
    let answer = servers.call(&parsed("moody", "burst", json!({"steps": 500})), context).await.unwrap();
    assert_eq!(text(&complete(answer)), "done");
    let mut steps = Vec::new();
    while let Some(Progress { progress, total, .. }) = received.recv().await {
        assert_eq!(total, Some(500.0));
        steps.push(progress);
    }
    assert_eq!(steps, (1..=500).map(f64::from).collect::<Vec<_>>());
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_of_a_real_long_operation() {
    let servers = downstreams(json!({"everything": npm("mcp-server-everything", &["stdio"])}));
    let (progress, mut received) = mpsc::unbounded_channel();
    let context = CallContext { progress: Some(progress), ..CallContext::default() };
    let args = json!({"duration": 1, "steps": 4});
    servers.call(&parsed("everything", "trigger-long-running-operation", args), context).await.unwrap();
    let mut steps = Vec::new();
    while let Some(step) = received.recv().await {
        steps.push(step.progress);
    }
    assert_eq!(steps, [1.0, 2.0, 3.0, 4.0]);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_reaches_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let servers = Arc::new(downstreams(json!({"moody": moody(&path)})));
    let cancel = CancellationToken::new();
    let context = CallContext { cancel: cancel.clone(), ..CallContext::default() };
    let calling = tokio::spawn({
        let servers = Arc::clone(&servers);
        async move { servers.call(&parsed("moody", "cancellable", json!({})), context).await }
    });
    until("it waits", async || journal(&path).contains(&"waiting".to_owned()).then_some(())).await;
    cancel.cancel();
    let error = calling.await.unwrap().unwrap_err();
    assert!(matches!(error, DownstreamError::Cancelled { .. }), "{error}");
    until("the server knows", async || {
        journal(&path).iter().any(|line| line.starts_with("cancelled")).then_some(())
    })
    .await;
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_cancels_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let servers = Arc::new(downstreams(json!({"moody": moody(&path)})));
    let calling = tokio::spawn({
        let servers = Arc::clone(&servers);
        async move { call(&servers, "moody", "cancellable", json!({})).await }
    });
    until("it waits", async || journal(&path).contains(&"waiting".to_owned()).then_some(())).await;
    calling.abort();
    until("the server knows", async || {
        journal(&path).iter().any(|line| line.starts_with("cancelled")).then_some(())
    })
    .await;
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_cancels_and_the_server_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let servers = downstreams(json!({"moody": moody(&path)}));
    let context = CallContext { timeout: Some(Duration::from_millis(300)), ..CallContext::default() };
    let error = servers.call(&parsed("moody", "cancellable", json!({})), context).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the call of \"cancellable\" at the server \"moody\" took longer than 0.3 s and was cancelled"
    );
    until("the server knows", async || {
        journal(&path).iter().any(|line| line.starts_with("cancelled")).then_some(())
    })
    .await;
    let answer = call(&servers, "moody", "complain", json!({"lines": 0})).await.unwrap();
    assert_eq!(text(&answer), "complained");
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_entry_sets_the_timeout_and_progress_does_not_extend_it() {
    let mut entry = npm("mcp-server-everything", &["stdio"]);
    entry["timeout"] = json!(3);
    let servers = downstreams(json!({"everything": entry}));
    servers.list("everything").await.unwrap();
    let (progress, mut received) = mpsc::unbounded_channel();
    let context = CallContext { progress: Some(progress), ..CallContext::default() };
    let args = json!({"duration": 600, "steps": 6000});
    let error = servers
        .call(&parsed("everything", "trigger-long-running-operation", args), context)
        .await
        .unwrap_err();
    assert!(matches!(error, DownstreamError::Timeout { .. }), "{error}");
    assert!(received.recv().await.is_some(), "there was progress");
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_list_is_read_anew_with_all_its_pages() {
    let folder = tempfile::tempdir().unwrap();
    let servers = downstreams(json!({"moody": moody(&folder.path().join("journal"))}));
    let mut changes = servers.changes();
    let before = servers.list("moody").await.unwrap();
    assert_eq!(before.len(), 11, "four pages");
    assert_eq!(changes.recv().await.unwrap(), "moody", "a start counts as a change");
    let names: Vec<_> = (0..20).map(|number| format!("new_{number}")).collect();
    call(&servers, "moody", "add_tools", json!({"names": names})).await.unwrap();
    assert_eq!(changes.recv().await.unwrap(), "moody");
    let after = servers.list("moody").await.unwrap();
    assert_eq!(after.len(), 31);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_pass_through_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let servers = downstreams(json!({"moody": moody(&folder.path().join("journal"))}));
    for result in [
        json!({"content": [], "structuredContent": {"b": 1, "a": [null, 1.5]}, "isError": false, "_meta": {"x/y": {"z": 1}}}),
        json!({"content": [{"type": "text", "text": "no", "_meta": {"k": 1}}], "isError": true}),
        json!({"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]}),
        json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "t", "mimeType": "text/plain"}}]}),
    ] {
        let answer = call(&servers, "moody", "raw", json!({"result": result})).await.unwrap();
        let mut answer = serde_json::to_value(&answer).unwrap();
        // What clients of the newer era must have and this server's doesn't.
        let added = answer.as_object_mut().unwrap().remove("resultType");
        assert_eq!((answer, added), (result, Some(json!("complete"))));
    }
    let error = call(&servers, "moody", "raw", json!({"result": {"content": [{"type": "hologram"}]}}))
        .await
        .unwrap_err();
    assert!(matches!(error, DownstreamError::BadAnswer { .. } | DownstreamError::Refused { .. }), "{error}");
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_gets_no_more_of_our_environment_than_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let mut entry = moody(&folder.path().join("journal"));
    entry["env"] = json!({"GIVEN": "yes"});
    let servers = downstreams(json!({"moody": entry}));
    let answer = call(&servers, "moody", "environment", json!({})).await.unwrap();
    let environment: serde_json::Value = serde_json::from_str(&text(&answer)).unwrap();
    assert_eq!(environment["GIVEN"], "yes");
    assert!(environment["PATH"].is_string());
    // Cargo gives it to us.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert_eq!(environment.get("CARGO_MANIFEST_DIR"), None);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_heard_in_the_newer_era_too() {
    let program = crate::peers::folder().join("npm/programs/growing_server.py");
    let python = crate::peers::folder().join("mcp2/bin/python");
    let servers = downstreams(json!({"growing": {"command": python, "args": [program]}}));
    let mut changes = servers.changes();
    assert_eq!(servers.list("growing").await.unwrap().len(), 1);
    assert_eq!(crate::peers::status(&servers, "growing").protocol.as_deref(), Some("2026-07-28"));
    assert_eq!(changes.recv().await.unwrap(), "growing");
    call(&servers, "growing", "grow", json!({"name": "leaf"})).await.unwrap();
    assert_eq!(changes.recv().await.unwrap(), "growing");
    let tools = servers.list("growing").await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "leaf"), "{tools:?}");
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_us_gets_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let servers = downstreams(json!({"moody": moody(&folder.path().join("journal"))}));
    let elicitation = json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}});
    let sampling = json!({"messages": [], "maxTokens": 1});
    let requests = json!({"requests": [
        {"method": "roots/list"},
        {"method": "elicitation/create", "params": elicitation},
        {"method": "sampling/createMessage", "params": sampling},
        {"method": "ping"},
        {"method": "nobody/knows"},
    ]});
    let answers = call(&servers, "moody", "ask", requests).await.unwrap();
    let answers: serde_json::Value = serde_json::from_str(&text(&answers)).unwrap();
    let method_not_found = json!({"code": -32601});
    let why = json!({"declinedBecause": "the call has no client to ask"});
    let declined = json!({"action": "decline", "_meta": {"pml": why}});
    assert_eq!(answers, json!([{"roots": []}, declined, method_not_found, {}, method_not_found]));
    servers.close().await;
}
