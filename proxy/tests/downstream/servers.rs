//! The official servers, as they come from npm and PyPI.

use std::{process::Command, sync::Arc};

use pml_proxy::downstream::{DownstreamError, ServerState};
use serde_json::{Value, json};

use crate::peers::{call, downstreams, npm, pypi, status, text};

fn names(tools: &[rmcp::model::Tool]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_ref()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_answers_unchanged() {
    let servers = downstreams(json!({"everything": npm("mcp-server-everything", &["stdio"])}));
    assert_eq!(status(&servers, "everything").state, ServerState::Idle, "it is lazy");
    let tools = servers.list("everything").await.unwrap();
    assert!(names(&tools).contains(&"echo"), "{:?}", names(&tools));
    assert!(tools.iter().all(|tool| tool.input_schema.get("type").is_some()));

    let echo = call(&servers, "everything", "echo", json!({"message": "hé"})).await.unwrap();
    assert_eq!(text(&echo), "Echo: hé");
    let sum = call(&servers, "everything", "get-sum", json!({"a": 2, "b": 3.5})).await.unwrap();
    assert!(text(&sum).contains("5.5"), "{sum:?}");
    let weather =
        call(&servers, "everything", "get-structured-content", json!({"location": "Chicago"})).await.unwrap();
    let structured = weather.structured_content.clone().expect("structured content");
    assert!(structured["temperature"].is_number(), "{structured}");
    assert_eq!(serde_json::from_str::<Value>(&text(&weather)).unwrap(), structured);
    let image = call(&servers, "everything", "get-tiny-image", json!({})).await.unwrap();
    let image = serde_json::to_value(&image).unwrap();
    let kinds: Vec<_> = image["content"].as_array().unwrap().iter().map(|content| &content["type"]).collect();
    assert_eq!(kinds, ["text", "image", "text"]);
    let annotated = call(
        &servers,
        "everything",
        "get-annotated-message",
        json!({"messageType": "error", "includeImage": false}),
    )
    .await
    .unwrap();
    let annotated = serde_json::to_value(&annotated).unwrap();
    assert_eq!(annotated["content"][0]["annotations"]["priority"], 1.0, "{annotated}");
    let links = call(&servers, "everything", "get-resource-links", json!({"count": 2})).await.unwrap();
    let links = serde_json::to_value(&links).unwrap();
    assert_eq!(links["content"][1]["type"], "resource_link", "{links}");

    let status = status(&servers, "everything");
    assert_eq!((status.state, status.starts, status.tools), (ServerState::Up, 1, Some(tools.len())));
    assert!(status.protocol.is_some() && status.pid.is_some() && status.implementation.is_some());
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filesystem_reads_and_reports_errors_as_results() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::write(path.join("a.txt"), "what is in it").unwrap();
    let servers = downstreams(json!({"filesystem": npm("mcp-server-filesystem", &[path.to_str().unwrap()])}));
    let read =
        call(&servers, "filesystem", "read_text_file", json!({"path": path.join("a.txt")})).await.unwrap();
    assert_eq!(text(&read), "what is in it");
    let outside =
        call(&servers, "filesystem", "read_text_file", json!({"path": "/etc/passwd"})).await.unwrap();
    assert_eq!(outside.is_error, Some(true));
    assert!(text(&outside).contains("Access denied"), "{outside:?}");
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_remembers_because_there_is_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut entry = npm("mcp-server-memory", &[]);
    entry["env"] = json!({"MEMORY_FILE_PATH": folder.path().join("memory.jsonl")});
    let servers = downstreams(json!({"memory": entry}));
    let entities =
        json!({"entities": [{"name": "pml", "entityType": "program", "observations": ["remembers"]}]});
    call(&servers, "memory", "create_entities", entities).await.unwrap();
    let graph = call(&servers, "memory", "read_graph", json!({})).await.unwrap();
    assert!(text(&graph).contains("remembers"), "{graph:?}");
    assert_eq!(status(&servers, "memory").starts, 1);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_and_git_from_pypi() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().to_str().unwrap();
    let git = |args: &[&str]| {
        let done = Command::new("git").arg("-C").arg(repository).args(args).status().unwrap();
        assert!(done.success());
    };
    git(&["init", "-q"]);
    git(&[
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "The first one",
    ]);
    let servers = downstreams(json!({
        "time": pypi("mcp-server-time", &["--local-timezone", "UTC"]),
        "git": pypi("mcp-server-git", &["--repository", repository]),
    }));
    assert_eq!(servers.names(), ["git", "time"]);
    let time = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let time = call(&servers, "time", "convert_time", time).await.unwrap();
    assert!(text(&time).contains("21:00"), "{time:?}");
    let log =
        call(&servers, "git", "git_log", json!({"repo_path": repository, "max_count": 1})).await.unwrap();
    assert!(text(&log).contains("The first one"), "{log:?}");
    // These two are of the newer era of the protocol.
    assert_eq!(status(&servers, "time").protocol.as_deref(), Some("2026-07-28"));
    assert_eq!(status(&servers, "git").protocol.as_deref(), Some("2026-07-28"));
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_first_users_share_one_process() {
    let servers = Arc::new(downstreams(json!({"everything": npm("mcp-server-everything", &["stdio"])})));
    let users: Vec<_> = (0..32)
        .map(|user| {
            let servers = Arc::clone(&servers);
            tokio::spawn(async move {
                if user % 2 == 0 {
                    servers.list("everything").await.unwrap();
                }
                let message = format!("user {user}");
                let echo = call(&servers, "everything", "echo", json!({"message": message})).await.unwrap();
                assert_eq!(text(&echo), format!("Echo: {message}"));
            })
        })
        .collect();
    for user in users {
        user.await.unwrap();
    }
    assert_eq!(status(&servers, "everything").starts, 1);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_disabled_and_refused_are_told_apart() {
    let mut off = npm("mcp-server-everything", &["stdio"]);
    off["disabled"] = json!(true);
    let servers = downstreams(json!({"everything": npm("mcp-server-everything", &["stdio"]), "off": off}));
    assert_eq!(servers.names(), ["everything"]);
    let unknown = call(&servers, "nobody", "echo", json!({})).await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no server \"nobody\"; configured are: everything");
    let off = servers.list("off").await.unwrap_err();
    assert!(matches!(off, DownstreamError::Disabled { .. }), "{off}");
    // How an unknown tool is answered is up to the server: as an error of the protocol or as a result.
    match call(&servers, "everything", "no-such-tool", json!({})).await {
        Ok(result) => assert_eq!(result.is_error, Some(true)),
        Err(error) => assert!(matches!(error, DownstreamError::Refused { .. }), "{error}"),
    }
    servers.close().await;
    let closed = call(&servers, "everything", "echo", json!({"message": "x"})).await.unwrap_err();
    assert!(matches!(closed, DownstreamError::Closed { .. }), "{closed}");
}
