//! The protocol's conformance suite. What fails is listed with reasons in `tests/peers/conformance-*.yml`, and the suite
//! fails if one of those passes.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use pml_tests::{
    Database,
    mcp::ProxySetup,
    peers::{node, npm, program, python, servers_file},
};
use serde_json::json;

/// Gives tools and prompts the names that the suite expects; see the program.
struct Names(Child, String);

impl Names {
    fn start(proxy: &str) -> Names {
        let mut child = Command::new(node())
            .arg(program("conformance_names.mjs"))
            .arg(proxy)
            .stdout(Stdio::piped())
            .spawn()
            .expect("node starts");
        let mut port = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        output.read_line(&mut port).expect("its port");
        Names(child, format!("http://127.0.0.1:{}/mcp", port.trim()))
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn conforms_to(revision: &str) {
    let database = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    let folder = tempfile::tempdir().expect("a folder");
    let server = json!({"command": node(), "args": [program("conformance_server.mjs")], "eager": true});
    let newer =
        json!({"command": python("mcp2"), "args": [program("conformance_newer_server.py")], "eager": true});
    // Short names, so that the tools' names needn't be shortened.
    let servers = servers_file(folder.path(), &json!({"c": server, "n": newer}));
    let servers = servers.to_str().expect("a readable path");
    let proxy = ProxySetup::new(&database).args(&["--mcp-servers", servers]).start();
    let names = Names::start(&proxy.url);
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("peers/conformance-{revision}.yml"));
    let output = Command::new(node())
        .arg(npm("conformance"))
        .args(["server", "--url", &names.1, "--requirements", revision, "--expected-failures"])
        .arg(expected)
        .current_dir(folder.path())
        .output()
        .expect("the suite can be started");
    let report = String::from_utf8_lossy(&output.stdout);
    let summary = report.split_once("=== SUMMARY ===").map_or(&*report, |(_, summary)| summary);
    assert!(output.status.success(), "{summary}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn conforms_to_2025_11_25() {
    conforms_to("2025-11-25");
}

#[test]
fn conforms_to_2026_07_28() {
    conforms_to("2026-07-28");
}
