//! No process is left behind, however the proxy ends.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::peers::{downstreams, group, is_alive, journal, kill, last_started, moody, status, until};

/// Like npx, a shell that starts the server and other processes: one beside it, one that leaves the group and stays below
/// the shell, and one that leaves it like a daemon, so that nobody is its parent. The last two write down their numbers.
fn with_company(path: &Path, stubborn: &str) -> Value {
    let entry = moody(path);
    let runaways = path.with_extension("runaways");
    let runaway = format!(
        "setsid sh -c 'echo $$ >> {}; exec sleep 1000' < /dev/null > /dev/null &",
        runaways.display()
    );
    let server: Vec<_> = [&entry["command"], &entry["args"][0], &entry["args"][1]]
        .map(|word| word.as_str().unwrap().to_owned())
        .into();
    let script = format!("sleep 1000 & {runaway} ({runaway}); {}; true", server.join(" "));
    json!({"command": "sh", "args": ["-c", script], "env": {"MOODY_STUBBORN": stubborn}})
}

/// Those that left the group.
async fn runaways(path: &Path) -> Vec<u32> {
    let path = path.with_extension("runaways");
    let pids = until("both ran away", async || {
        let pids: Vec<u32> = journal(&path).iter().filter_map(|line| line.parse().ok()).collect();
        (pids.len() == 2).then_some(pids)
    });
    pids.await
}

fn none_alive(pids: &[u32]) -> Option<()> {
    (!pids.iter().any(|pid| is_alive(*pid))).then_some(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_left_the_group_ends_with_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let servers = downstreams(json!({"moody": with_company(&path, "no")}));
    servers.list("moody").await.unwrap();
    let pids = runaways(&path).await;
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    kill(last_started(&path), "-9");
    until("all are gone", async || none_alive(&pids)).await;
    servers.close().await;
}

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
    let servers = downstreams(json!({"moody": with_company(&path, "yes")}));
    servers.list("moody").await.unwrap();
    let leader = status(&servers, "moody").pid.unwrap();
    assert!(group(leader).len() >= 4, "the guard, the shell, the server, sleep: {:?}", group(leader));
    let pids = runaways(&path).await;
    servers.close().await;
    until("all are gone", async || group(leader).is_empty().then(|| none_alive(&pids)).flatten()).await;
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
    let servers = downstreams(json!({"moody": with_company(path.as_ref(), "yes")}));
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
    let mut pids = runaways(&path).await;
    pids.push(server);
    assert!(pids.iter().all(|pid| is_alive(*pid)) && group(leader).len() >= 4);
    kill(proxy.id(), "-9");
    proxy.wait().unwrap();
    until("all are gone", async || group(leader).is_empty().then(|| none_alive(&pids)).flatten()).await;
}
