//! Where the real servers are, how they are configured, and what else the tests share.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::{Duration, Instant},
};

use pml_proxy::downstream::{
    Call, CallBody, CallContext, DownstreamError, DownstreamOptions, Downstreams, RestartPolicy,
    ServerStatus, ToolAnswer, parse_servers,
};
use rmcp::model::{CallToolResponse, CallToolResult, JsonObject};
use serde_json::{Value, json};

/// Longer than anything takes on a busy machine; only a failing test waits this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The folder with all peers, installed if they aren't there.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/peers");
        let output = Command::new(script).output().expect("scripts/peers can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim())
    })
}

pub(crate) fn node() -> String {
    folder().join("npm/node_modules/.bin/node").display().to_string()
}

/// The entry of a server from npm.
pub(crate) fn npm(program: &str, args: &[&str]) -> Value {
    let script = folder().join(format!("npm/node_modules/.bin/{program}")).display().to_string();
    let args: Vec<&str> = [script.as_str()].into_iter().chain(args.iter().copied()).collect();
    json!({"command": node(), "args": args})
}

/// The entry of a server from PyPI.
pub(crate) fn pypi(program: &str, args: &[&str]) -> Value {
    json!({"command": folder().join("servers/bin").join(program), "args": args})
}

/// The entry of the server that does the worst on request, and writes down what happens to it.
pub(crate) fn moody(journal: &Path) -> Value {
    let script = folder().join("npm/programs/moody_server.mjs");
    json!({"command": node(), "args": [script, journal]})
}

/// Waits short, so that tests of restarts are quick.
pub(crate) fn impatient() -> RestartPolicy {
    RestartPolicy {
        first: Duration::from_millis(50),
        longest: Duration::from_millis(400),
        stable: Duration::from_secs(3600),
    }
}

pub(crate) fn downstreams(entries: Value) -> Downstreams {
    with_policy(entries, &impatient())
}

pub(crate) fn with_policy(entries: Value, policy: &RestartPolicy) -> Downstreams {
    let parsed = parse_servers(&entries, |name| std::env::var(name).ok()).expect("an object");
    assert_eq!(parsed.left_out, []);
    let options = DownstreamOptions { restart: policy.clone(), ..DownstreamOptions::default() };
    Downstreams::new(parsed.servers, &options)
}

fn object(value: Value) -> Option<JsonObject> {
    match value {
        Value::Object(object) => Some(object),
        other => panic!("{other} isn't an object"),
    }
}

/// A call of a tool with parsed arguments.
pub(crate) fn parsed(server: &str, tool: &str, args: Value) -> Call {
    Call { server: server.to_owned(), tool: tool.to_owned(), body: CallBody::Parsed(object(args)) }
}

/// The same, to be passed through as it is.
pub(crate) fn raw(server: &str, tool: &str, args: &Value) -> Call {
    let args = serde_json::value::to_raw_value(args).expect("JSON");
    Call { server: server.to_owned(), tool: tool.to_owned(), body: CallBody::Raw(Some(args)) }
}

/// A call with nothing special about it.
pub(crate) async fn call(
    downstreams: &Downstreams,
    server: &str,
    tool: &str,
    args: Value,
) -> Result<CallToolResult, DownstreamError> {
    downstreams.call(&parsed(server, tool, args), CallContext::default()).await.map(complete)
}

/// The same, passed through as it is.
pub(crate) async fn pass_through(
    downstreams: &Downstreams,
    server: &str,
    tool: &str,
    args: Value,
) -> Result<CallToolResult, DownstreamError> {
    let answer = downstreams.call(&raw(server, tool, &args), CallContext::default()).await?;
    let (is_error, answer) = (answer.is_error(), answer.into_raw());
    let result: CallToolResult = serde_json::from_slice(&answer.result).expect("a result");
    assert_eq!((answer.is_error, is_error), (is_error, result.is_error == Some(true)));
    Ok(result)
}

/// An answer that isn't a question.
pub(crate) fn complete(answer: ToolAnswer) -> CallToolResult {
    match answer.into_parsed() {
        CallToolResponse::Complete(result) => result,
        other => panic!("{other:?}"),
    }
}

/// The text of an answer.
pub(crate) fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|content| content.as_text()).map(|text| text.text.as_str()).collect()
}

pub(crate) fn status(downstreams: &Downstreams, server: &str) -> ServerStatus {
    downstreams.status().into_iter().find(|status| status.name == server).expect("the server is there")
}

/// Waits until there is an answer.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn is_alive(pid: u32) -> bool {
    // A zombie waits to be reaped by whoever started it; it runs no more.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

/// The processes of a group.
pub(crate) fn group(leader: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc is there").flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
                let rest = stat.rsplit(')').next().unwrap_or_default();
                rest.split_whitespace().nth(2) == Some(&leader.to_string())
            }) && is_alive(*pid)
        })
        .collect()
}

pub(crate) fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill").arg(signal).arg(pid.to_string()).status().expect("kill is there");
    assert!(status.success(), "{pid} could not be sent {signal}");
}

/// What the moody server wrote down.
pub(crate) fn journal(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The number of the moody server's own process, which is below the group's first.
pub(crate) fn last_started(path: &Path) -> u32 {
    let journal = journal(path);
    let start = journal.iter().rev().find_map(|line| line.strip_prefix("start ")).expect("it was started");
    start.parse().expect("a number")
}
