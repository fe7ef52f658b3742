//! No process is left behind, however the proxy ends.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use serde_json::json;

use crate::peers::{downstreams, group, is_alive, journal, kill, last_started, moody, status, until};

#[tokio::test(flavor = "multi_thread")]
async fn closing_ends_a_server_by_closing_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let servers = downstreams(json!({"moody": moody(&path)}));
    servers.list("moody").await.unwrap();
    let leader = status(&servers, "moody").pid.unwrap();
    servers.close().await;
    assert_eq!(group(leader), Vec::<u32>::new());
    assert_eq!(journal(&path)[1..], ["end of input"], "that was enough");
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_ends_a_stubborn_server_with_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut entry = moody(&path);
    // Like npx: a shell that starts the server and another process.
    let args: Vec<_> =
        entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap().to_owned()).collect();
    let script = format!("sleep 1000 & {} {} {}; true", entry["command"].as_str().unwrap(), args[0], args[1]);
    entry = json!({"command": "sh", "args": ["-c", script], "env": {"MOODY_STUBBORN": "yes"}});
    let servers = downstreams(json!({"moody": entry}));
    servers.list("moody").await.unwrap();
    let leader = status(&servers, "moody").pid.unwrap();
    assert!(group(leader).len() >= 4, "the guard, the shell, the server, sleep: {:?}", group(leader));
    servers.close().await;
    until("all are gone", async || group(leader).is_empty().then_some(())).await;
    let journal = journal(&path);
    assert_eq!(journal[1..3], ["end of input", "SIGTERM"], "asked politely first");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_everything_ends_the_servers_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let servers = downstreams(json!({"moody": moody(&path)}));
    servers.list("moody").await.unwrap();
    let leader = status(&servers, "moody").pid.unwrap();
    drop(servers);
    until("it is gone", async || group(leader).is_empty().then_some(())).await;
}

/// Not a test: the process that the next test kills.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the test of a proxy that is killed"]
async fn a_proxy_to_be_killed() {
    let Some(path) = std::env::var_os("PML_TEST_JOURNAL") else { return };
    let mut entry = moody(path.as_ref());
    let args: Vec<_> =
        entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap().to_owned()).collect();
    let script = format!("sleep 1000 & {} {} {}; true", entry["command"].as_str().unwrap(), args[0], args[1]);
    entry = json!({"command": "sh", "args": ["-c", script], "env": {"MOODY_STUBBORN": "yes"}});
    let servers = downstreams(json!({"moody": entry}));
    servers.list("moody").await.unwrap();
    println!("\nleader {}", status(&servers, "moody").pid.unwrap());
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_killed_with_9_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut proxy = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "orphans::a_proxy_to_be_killed", "--nocapture"])
        .env("PML_TEST_JOURNAL", &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(proxy.stdout.take().unwrap());
    let leader = output
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("leader ")?.parse::<u32>().ok());
    let leader = leader.expect("it says which group it started");
    let server = last_started(&path);
    assert!(is_alive(server) && group(leader).len() >= 4);
    kill(proxy.id(), "-9");
    proxy.wait().unwrap();
    until("all are gone", async || (group(leader).is_empty() && !is_alive(server)).then_some(())).await;
}
