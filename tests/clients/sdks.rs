//! Each SDK does the same with the proxy, on each transport and in each era that it supports: it lists the tools, runs code
//! under a name, is notified of the changed list, calls the new tool, calls it by name, gets errors and the progress of a
//! downstream server, answers that server's question, reads a resource, gets a prompt, is notified of an updated resource, and
//! cancels a call.

use std::{path::PathBuf, process::Command};

use pml_tests::{
    Database,
    mcp::{Proxy, ProxySetup, pml},
    peers::{node, npm, program, python, servers_file},
};
use serde_json::{Value, json};
use tempfile::TempDir;

enum Way {
    Http,
    Stdio,
}

struct Peer {
    database: Database,
    folder: TempDir,
}

impl Peer {
    fn new() -> Peer {
        let database = Database::new();
        database.create_role("proxy", &["pml_proxy"]);
        Peer { database, folder: tempfile::tempdir().expect("a folder") }
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    fn servers(&self) -> PathBuf {
        let servers = json!({
            "everything": {"command": node(), "args": [npm("mcp-server-everything"), "stdio"]},
            "moody": {"command": node(), "args": [program("moody_server.mjs"), self.journal()]},
            "shelf": {"command": node(), "args": [program("shelf_server.mjs"), "shelf", self.journal()]},
            "asking": {"command": python("mcp2"), "args": [program("asking_server.py")]},
        });
        servers_file(self.folder.path(), &servers)
    }

    /// Runs the client and returns its report.
    fn watch(&self, client: [PathBuf; 2], era: &str, way: &Way) -> Value {
        let servers = self.servers();
        let servers = servers.to_str().expect("a readable path");
        let mut proxy = None;
        let target = match way {
            Way::Http => {
                let started = ProxySetup::new(&self.database).args(&["--mcp-servers", servers]).start();
                proxy.insert(started).url.clone()
            }
            Way::Stdio => {
                let url = self.database.url_of("proxy");
                let pml = pml().get_program().to_owned();
                let pml = pml.to_str().expect("a readable path");
                json!([pml, "stdio", "--database-url", url, "--mcp-servers", servers, "--actor", "alice"])
                    .to_string()
            }
        };
        let [interpreter, script] = client;
        let output = Command::new(interpreter)
            .arg(script)
            .args([target.as_str(), era])
            .env("PEER_JOURNAL", self.journal())
            .output()
            .expect("the client can be started");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let log = proxy.as_ref().map(Proxy::log);
        assert!(output.status.success(), "the client failed:\n{out}\n{err}\n{log:#?}");
        assert!(!err.contains("Session termination failed"), "{err}");
        let seen = out.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{out}\n{err}"));
        serde_json::from_str(seen).expect("what it saw, as JSON")
    }
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn judge(seen: &Value, protocol: &str) {
    judge_all_but_progress(seen, protocol);
    assert_eq!(progress(seen), [1.0, 2.0, 3.0, 4.0]);
}

/// If these SDKs read an answer together with a notification, they handle the answer first and drop the notification.
fn judge_typescript_over_stdio(seen: &Value, protocol: &str) {
    judge_all_but_progress(seen, protocol);
    assert!([1.0, 2.0, 3.0, 4.0].starts_with(&progress(seen)) && progress(seen).len() >= 3, "{seen:#}");
}

fn progress(seen: &Value) -> Vec<f64> {
    seen["progress"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

fn judge_all_but_progress(seen: &Value, protocol: &str) {
    assert_eq!(seen["protocol"], protocol, "{seen:#}");
    let tools = names(&seen["tools"]);
    for expected in ["pml_execute", "cap_list", "mcp__everything__echo", "mcp__moody__cancellable"] {
        assert!(tools.contains(&expected), "{expected} isn't in {tools:?}");
    }
    assert!(!tools.contains(&"mcp__peer__double"));

    let executed = &seen["executed"]["structuredContent"];
    assert_eq!(executed["status"], "success", "{executed:#}");
    assert_eq!(executed["result"], json!({"doubled": 42}));
    assert_eq!(executed["capabilityName"], "peer:double");
    assert_eq!(seen["changed"], true, "nobody told the client that the list changed");
    assert!(names(&seen["toolsAfter"]).contains(&"mcp__peer__double"), "{:#}", seen["toolsAfter"]);
    assert_eq!(seen["called"]["structuredContent"], json!({"doubled": 8}), "{:#}", seen["called"]);
    assert_eq!(seen["byName"]["structuredContent"]["result"], json!({"doubled": 10}), "{:#}", seen["byName"]);
    assert_eq!(seen["failed"]["isError"], true, "{:#}", seen["failed"]);
    assert!(seen["failed"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("no good")));
    assert_eq!(seen["unknownTool"]["code"], -32602, "{:#}", seen["unknownTool"]);
    assert!(seen["long"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("completed")));
    assert_eq!(seen["asked"]["content"][0]["text"], "Hello, peer (peer)", "{:#}", seen["asked"]);
    assert!(names(&seen["resources"]).contains(&"pml://shelf/shelf://book/one"), "{:#}", seen["resources"]);
    assert!(names(&seen["templates"]).contains(&"pml://shelf/shelf://page/{number}{?as}"));
    let page = &seen["read"]["contents"][0];
    assert_eq!(page["text"], "shelf: shelf://page/7?as=a%2Fb", "{:#}", seen["read"]);
    assert_eq!(page["uri"], "pml://shelf/shelf://page/7?as=a%2Fb");
    // One SDK translates the older code, of which the newer protocol has none.
    let not_found = [-32602, -32002].map(Value::from);
    assert!(
        not_found[..if protocol == OLDER { 2 } else { 1 }].contains(&seen["noResource"]["code"]),
        "{seen:#}"
    );
    assert!(names(&seen["prompts"]).contains(&"mcp__shelf__summary"), "{:#}", seen["prompts"]);
    // This server can ask only clients of its own era.
    let reader = if protocol == OLDER { "peer" } else { "decline" };
    assert_eq!(
        seen["got"]["messages"][0]["content"]["text"],
        format!("shelf for {reader}"),
        "{:#}",
        seen["got"]
    );
    assert_eq!(seen["completed"]["completion"]["values"][1], "summary", "{:#}", seen["completed"]);
    assert_eq!(seen["updated"], "pml://shelf/shelf://book/one", "nobody told the client of the update");
    assert_eq!(seen["cancelled"], true, "the cancelled call was answered");
    assert_eq!(seen["serverKnows"], true, "the server behind the proxy wasn't told of the cancellation");
}

const OLDER: &str = "2025-11-25";
const NEWER: &str = "2026-07-28";

fn typescript(version: u8) -> [PathBuf; 2] {
    [node(), program(&format!("client_ts_{version}.mjs"))]
}

fn python_sdk(version: u8) -> [PathBuf; 2] {
    [python(&format!("mcp{version}")), program(&format!("client_py_{version}.py"))]
}

#[test]
fn typescript_1_over_http() {
    judge(&Peer::new().watch(typescript(1), "legacy", &Way::Http), OLDER);
}

#[test]
fn typescript_1_over_stdio() {
    judge_typescript_over_stdio(&Peer::new().watch(typescript(1), "legacy", &Way::Stdio), OLDER);
}

#[test]
fn typescript_2_over_http_in_the_older_era() {
    judge(&Peer::new().watch(typescript(2), "legacy", &Way::Http), OLDER);
}

#[test]
fn typescript_2_over_http_in_the_newer_era() {
    judge(&Peer::new().watch(typescript(2), "auto", &Way::Http), NEWER);
}

#[test]
fn typescript_2_over_stdio_in_the_newer_era() {
    judge_typescript_over_stdio(&Peer::new().watch(typescript(2), "auto", &Way::Stdio), NEWER);
}

#[test]
fn python_1_over_http() {
    judge(&Peer::new().watch(python_sdk(1), "legacy", &Way::Http), OLDER);
}

#[test]
fn python_1_over_stdio() {
    judge(&Peer::new().watch(python_sdk(1), "legacy", &Way::Stdio), OLDER);
}

#[test]
fn python_2_over_http_in_the_older_era() {
    judge(&Peer::new().watch(python_sdk(2), "legacy", &Way::Http), OLDER);
}

#[test]
fn python_2_over_http_in_the_newer_era() {
    judge(&Peer::new().watch(python_sdk(2), "auto", &Way::Http), NEWER);
}

#[test]
fn python_2_over_stdio_in_the_newer_era() {
    judge(&Peer::new().watch(python_sdk(2), "auto", &Way::Stdio), NEWER);
}
