//! What the integration tests share: a pool over the real program, and a handler that answers a few tools.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{path::PathBuf, time::Duration};

use pml_worker::{Call, CallError, Failure, Json, LimitKind, Outcome, Pool, PoolConfig, Run, Thrown};
use serde_json::{Value, json};

pub(crate) fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_pml-worker").into()
}

pub(crate) fn config() -> PoolConfig {
    PoolConfig { program: program(), slots: 2, spare: 0, ..PoolConfig::default() }
}

pub(crate) async fn pool() -> Pool {
    Pool::start(config()).await.unwrap()
}

/// `test:echo` gives its argument back, `test:fail` fails, `test:never` doesn't answer; anything else is unknown.
pub(crate) async fn tools(call: Call) -> Result<Json, CallError> {
    match call.target.as_str() {
        "test:echo" | "echo" => Ok(call.args),
        "test:fail" => {
            Err(CallError { message: "no such file".into(), data: Some(json!({"code": 2}).into()) })
        }
        "test:never" => std::future::pending().await,
        "test:describe" => Ok(json!({"kind": call.kind, "target": call.target, "node": call.node}).into()),
        other => Err(CallError::new(format!("there is no tool {other}"))),
    }
}

pub(crate) async fn run(code: &str) -> Outcome {
    pool().await.run(Run::new("test", code), &tools).await
}

/// The value that the code returns.
pub(crate) async fn value(code: &str) -> Value {
    let outcome = run(code).await;
    outcome.result.unwrap_or_else(|failure| panic!("{code}\n{failure}")).parse().unwrap()
}

pub(crate) fn thrown(outcome: Outcome) -> Thrown {
    match outcome.result {
        Err(Failure::Thrown(thrown)) => *thrown,
        other => panic!("expected an exception, got {other:?}"),
    }
}

pub(crate) fn limit(outcome: &Outcome) -> LimitKind {
    match &outcome.result {
        Err(Failure::Limit { limit, .. }) => *limit,
        other => panic!("expected a limit, got {other:?}"),
    }
}

/// Waits until `condition` holds; panics with `what` if it doesn't within a minute.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let patience = std::time::Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(std::time::Instant::now() < patience, "waited a minute for: {what}");
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
