//! Servers that die: what their callers hear, and how they come back.

use std::{sync::Arc, time::Duration};

use pml_proxy::downstream::{CallContext, DownstreamError, RestartPolicy, ServerState};
use serde_json::json;

use crate::peers::{
    call, complete, downstreams, journal, kill, last_started, moody, npm, parsed, status, text, until,
    with_policy,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_with_9_comes_back() {
    let servers = downstreams(json!({"everything": npm("mcp-server-everything", &["stdio"])}));
    let before = servers.list("everything").await.unwrap();
    kill(status(&servers, "everything").pid.unwrap(), "-9");
    until("it is noticed", async || (status(&servers, "everything").state != ServerState::Up).then_some(()))
        .await;
    let during = servers.list("everything").await.unwrap();
    assert_eq!(before, during, "its tools stay in the list");
    let message = json!({"message": "again"});
    let echo =
        until("it is back", async || call(&servers, "everything", "echo", message.clone()).await.ok()).await;
    assert_eq!(text(&echo), "Echo: again");
    assert_eq!(status(&servers, "everything").starts, 2);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_fails_and_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let servers = Arc::new(downstreams(json!({"moody": moody(&path)})));
    let calling = tokio::spawn({
        let servers = Arc::clone(&servers);
        async move { call(&servers, "moody", "once", json!({})).await }
    });
    until("it runs", async || journal(&path).contains(&"once".to_owned()).then_some(())).await;
    kill(last_started(&path), "-9");
    let error = calling.await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "lost the server \"moody\" during the call of \"once\": it was killed (SIGKILL); the call may have taken effect \
         and was not repeated"
    );
    until("it is back", async || call(&servers, "moody", "complain", json!({"lines": 1})).await.ok()).await;
    assert_eq!(journal(&path).iter().filter(|line| *line == "once").count(), 1);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_it_is_down_calls_fail_at_once_and_say_why_and_when() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let slow = RestartPolicy {
        first: Duration::from_secs(3600),
        longest: Duration::from_secs(3600),
        stable: Duration::from_secs(3600),
    };
    let servers = with_policy(json!({"moody": moody(&path)}), &slow);
    let error = call(&servers, "moody", "die", json!({"status": 7})).await.unwrap_err();
    let DownstreamError::Lost { reason, .. } = &error else { panic!("{error}") };
    assert_eq!(reason, "it exited with status 7 (its last output: I can't go on)");
    let next_try = until("it waits", async || status(&servers, "moody").next_try).await;
    assert!(next_try > Duration::from_secs(1000), "{next_try:?}");
    let error = call(&servers, "moody", "once", json!({})).await.unwrap_err();
    let DownstreamError::Down { next_try: Some(_), .. } = &error else { panic!("{error}") };
    let message = error.to_string();
    assert!(
        message.starts_with(
            "the server \"moody\" is down: it exited with status 7 (its last output: I can't go on); the next attempt is in "
        ) && message.ends_with("; nothing was sent to it"),
        "{message}"
    );
    assert_eq!(servers.list("moody").await.unwrap().len(), 11, "its last known tools stay");
    assert!(!journal(&path).contains(&"once".to_owned()));
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_start_is_tried_again_and_its_secrets_are_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut entry = moody(&path);
    entry["env"] = json!({"MOODY_START": "crash", "MOODY_TOKEN": "tok-987654"});
    let servers = downstreams(json!({"moody": entry}));
    let (first, second) = tokio::join!(servers.list("moody"), call(&servers, "moody", "once", json!({})));
    for error in [first.unwrap_err(), second.unwrap_err()] {
        let message = error.to_string();
        assert!(
            message.contains("it exited with status 3 (its last output: no good: token ***)"),
            "{message}"
        );
    }
    until("it was tried again", async || (journal(&path).len() >= 4).then_some(())).await;
    let status = status(&servers, "moody");
    assert_eq!(status.state, ServerState::Down);
    assert!(status.starts >= 4);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_not_there_is_said_clearly() {
    let servers = downstreams(json!({
        "missing": {"command": "no-such-program-anywhere"},
        "together": {"command": "sleep 1000"},
        "nowhere": {"command": "sh", "cwd": "/no/such/folder"},
        "silent": {"command": "sleep", "args": ["1000"], "startupTimeout": 0.3},
    }));
    let error = servers.list("missing").await.unwrap_err().to_string();
    assert!(error.contains("command \"no-such-program-anywhere\" not found or not executable"), "{error}");
    let error = servers.list("together").await.unwrap_err().to_string();
    assert!(error.contains("give its arguments in \"args\""), "{error}");
    let error = servers.list("nowhere").await.unwrap_err().to_string();
    assert!(error.contains("cwd /no/such/folder isn't a directory"), "{error}");
    let error = servers.list("silent").await.unwrap_err().to_string();
    assert!(error.contains("it wasn't ready within 0.3 s"), "{error}");
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eager_server_is_started_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut entry = moody(&folder.path().join("journal"));
    entry["eager"] = json!(true);
    let servers = downstreams(json!({"moody": entry}));
    until("it is up", async || (status(&servers, "moody").state == ServerState::Up).then_some(())).await;
    assert_eq!(servers.known_tools("moody").unwrap().len(), 11);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_of_what_it_does_not_know_is_greeted_the_old_way() {
    let folder = tempfile::tempdir().unwrap();
    let mut entry = moody(&folder.path().join("journal"));
    entry["env"] = json!({"MOODY_START": "old"});
    let servers = downstreams(json!({"moody": entry}));
    servers.list("moody").await.unwrap_err();
    until("it is up", async || servers.list("moody").await.ok()).await;
    assert_eq!(status(&servers, "moody").protocol.as_deref(), Some("2025-11-25"));
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_on_stderr_blocks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let servers = downstreams(json!({"moody": moody(&folder.path().join("journal"))}));
    let context = CallContext { request_id: "flood".to_owned(), ..CallContext::default() };
    let args = json!({"lines": 50_000});
    let answer = servers.call(&parsed("moody", "complain", args), context).await.unwrap();
    assert_eq!(text(&complete(answer)), "complained");
    servers.close().await;
}
