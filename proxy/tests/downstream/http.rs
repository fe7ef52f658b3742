//! Servers behind HTTP: forgotten sessions, restarts, headers.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use pml_proxy::downstream::{CallContext, DownstreamError, Progress, ServerState};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::peers::{call, downstreams, folder, node, parsed, status, text, until};

/// `server-everything` on a port.
pub(crate) struct Everything {
    process: Child,
    pub(crate) port: u16,
}

impl Everything {
    pub(crate) async fn start(port: u16) -> Everything {
        let process = Command::new(node())
            .arg(folder().join("npm/node_modules/.bin/mcp-server-everything"))
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("it listens", async || std::net::TcpStream::connect(("127.0.0.1", port)).ok()).await;
        Everything { process, port }
    }

    pub(crate) fn entry(&self) -> Value {
        json!({"everything": {"type": "http", "url": format!("http://127.0.0.1:{}/mcp", self.port)}})
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Not an ephemeral port: a client that polls one of those may connect to itself, and then the server can't bind it.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(61);
    let mut ports = std::iter::repeat_with(|| {
        let offset = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
        20_000 + u16::try_from(offset).unwrap()
    });
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_progress_and_concurrency_over_http() {
    let server = Everything::start(free_port()).await;
    let servers = Arc::new(downstreams(server.entry()));
    let (progress, mut received) = mpsc::unbounded_channel();
    let context = CallContext { progress: Some(progress), ..CallContext::default() };
    let args = json!({"duration": 0.4, "steps": 4});
    servers.call(&parsed("everything", "trigger-long-running-operation", args), context).await.unwrap();
    let mut steps = Vec::new();
    while let Some(Progress { progress, .. }) = received.recv().await {
        steps.push(progress);
    }
    assert_eq!(steps, [1.0, 2.0, 3.0, 4.0]);
    let calls: Vec<_> = (0..50)
        .map(|number| {
            let servers = Arc::clone(&servers);
            tokio::spawn(async move {
                call(&servers, "everything", "echo", json!({"message": number.to_string()})).await
            })
        })
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(text(&call.await.unwrap().unwrap()), format!("Echo: {number}"));
    }
    assert_eq!(status(&servers, "everything").starts, 1);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_that_nobody_noticed_costs_no_call() {
    let mut server = Everything::start(free_port()).await;
    let servers = downstreams(server.entry());
    call(&servers, "everything", "echo", json!({"message": "1"})).await.unwrap();
    // Longer than the shortest life of a session.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    server.kill();
    let _server = Everything::start(server.port).await;
    let echo = call(&servers, "everything", "echo", json!({"message": "2"})).await.unwrap();
    assert_eq!(text(&echo), "Echo: 2");
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_it_is_gone_calls_fail_and_then_it_is_found_again() {
    let mut server = Everything::start(free_port()).await;
    let servers = downstreams(server.entry());
    let tools = servers.list("everything").await.unwrap();
    server.kill();
    // A call may still find the old connection and lose it; the next one finds nobody.
    let reason = until("it is noticed", async || {
        match call(&servers, "everything", "echo", json!({"message": "x"})).await.unwrap_err() {
            DownstreamError::Down { reason, .. } => Some(reason),
            _ => None,
        }
    })
    .await;
    assert!(reason.contains("Connection refused"), "{reason}");
    assert_eq!(servers.list("everything").await.unwrap(), tools);
    assert_eq!(status(&servers, "everything").state, ServerState::Down);
    let _server = Everything::start(server.port).await;
    until("it is found again", async || {
        (status(&servers, "everything").state == ServerState::Up).then_some(())
    })
    .await;
    call(&servers, "everything", "echo", json!({"message": "x"})).await.unwrap();
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_fails_when_the_server_dies() {
    let mut server = Everything::start(free_port()).await;
    let servers = Arc::new(downstreams(server.entry()));
    let (progress, mut received) = mpsc::unbounded_channel();
    let context = CallContext { progress: Some(progress), ..CallContext::default() };
    let args = json!({"duration": 600, "steps": 6000});
    let calling = tokio::spawn({
        let servers = Arc::clone(&servers);
        async move { servers.call(&parsed("everything", "trigger-long-running-operation", args), context).await }
    });
    received.recv().await.expect("it runs");
    server.kill();
    let error = calling.await.unwrap().unwrap_err();
    assert!(matches!(error, DownstreamError::Lost { .. }), "{error}");
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_is_said_clearly_without_what_is_secret_in_the_url() {
    let port = free_port();
    let url = format!("http://user:pass-word@127.0.0.1:{port}/mcp?key=k-123456");
    let servers = downstreams(json!({"gone": {"url": url}}));
    let error = servers.list("gone").await.unwrap_err().to_string();
    assert!(
        error.contains(&format!("http://127.0.0.1:{port}/mcp can't be reached: Connection refused")),
        "{error}"
    );
    assert!(!error.contains("k-123456") && !error.contains("pass-word"), "{error}");
    servers.close().await;
}
