//! The peers: Deno as a process and as a Worker, Node's vm, isolated-vm. Each runs the tasks of `tasks.mjs`.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::{Value, json};

use super::{here, median, micros};

pub(crate) struct Tasks {
    /// Name, code and how often to run it.
    pub(crate) list: Vec<(String, String, u64)>,
    /// The JSON of about a megabyte.
    pub(crate) rows: String,
}

pub(crate) fn tasks() -> Option<Tasks> {
    let print = "import { tasks, rows } from './tasks.mjs'; console.log(JSON.stringify({ tasks, rows }))";
    let output =
        Command::new("node").args(["--input-type=module", "-e", print]).current_dir(here()).output().ok()?;
    let read: Value = serde_json::from_slice(&output.stdout).ok()?;
    let list = read["tasks"].as_object()?.iter();
    let list = list
        .map(|(name, task)| Some((name.clone(), task["code"].as_str()?.to_owned(), task["runs"].as_u64()?)));
    Some(Tasks { list: list.collect::<Option<_>>()?, rows: read["rows"].as_str()?.to_owned() })
}

/// The program itself, not the script that npm puts in front of it.
fn deno() -> Option<PathBuf> {
    let platforms = fs::read_dir(here().join("node_modules/@deno")).ok()?;
    platforms.filter_map(Result::ok).map(|entry| entry.path().join("deno")).find(|program| program.exists())
}

pub(crate) async fn print_table(tasks: &Tasks, ours: &BTreeMap<String, f64>) {
    let mut peers: Vec<(String, BTreeMap<String, f64>)> = Vec::new();
    match deno() {
        Some(deno) => {
            peers.push(("deno process".into(), deno_process(&deno, tasks)));
            let mut worker = Command::new(&deno);
            worker.args([
                "run",
                "--no-prompt",
                "--no-config",
                "--unstable-worker-options",
                "deno_worker.mjs",
            ]);
            peers.extend(reported(worker));
        }
        None => println!("deno is not installed (npm install in bench/worker): left out"),
    }
    let mut node = Command::new("node");
    node.args(["--no-node-snapshot", "peers.mjs"]);
    peers.extend(reported(node));

    println!("Median of each task; in brackets how many times longer than the worker's warm pool");
    print!("{:<14} {:>12}", "task", "pml-worker");
    for (peer, _) in &peers {
        print!(" {peer:>24}");
    }
    println!();
    for (task, ..) in &tasks.list {
        let own = ours[task];
        print!("{task:<14} {:>9.3} ms", own / 1e3);
        for (_, times) in &peers {
            match times.get(task) {
                Some(time) => print!(" {:>24}", format!("{:.3} ms ({:.2}×)", time / 1e3, time / own)),
                None => print!(" {:>24}", "-"),
            }
        }
        println!();
    }
}

/// Runs a script that prints its own measurements.
fn reported(mut command: Command) -> Vec<(String, BTreeMap<String, f64>)> {
    let mut peers: Vec<(String, BTreeMap<String, f64>)> = Vec::new();
    let Ok(output) = command.current_dir(here()).stderr(Stdio::inherit()).output() else { return peers };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(report) = serde_json::from_str::<Value>(line) else { continue };
        let (Some(peer), Some(task), Some(time)) =
            (report["peer"].as_str(), report["task"].as_str(), report["micros"].as_f64())
        else {
            continue;
        };
        if peers.last().is_none_or(|(name, _)| name != peer) {
            peers.push((peer.to_owned(), BTreeMap::new()));
        }
        if let Some((_, times)) = peers.last_mut() {
            times.insert(task.to_owned(), time);
        }
    }
    peers
}

/// A new Deno process for every run, its calls answered over pipes.
fn deno_process(deno: &PathBuf, tasks: &Tasks) -> BTreeMap<String, f64> {
    let rows: Value = serde_json::from_str(&tasks.rows).unwrap_or_default();
    let mut medians = BTreeMap::new();
    for (task, _, runs) in &tasks.list {
        let args = if task == "json" { rows.clone() } else { json!({}) };
        let request = format!("{}\n", json!({"task": task, "args": args}));
        let times: Option<Vec<f64>> = (0..(*runs).min(20)).map(|_| deno_run(deno, &request)).collect();
        if let Some(times) = times {
            medians.insert(task.clone(), median(times));
        }
    }
    medians
}

fn deno_run(deno: &PathBuf, request: &str) -> Option<f64> {
    let begun = Instant::now();
    let mut child = Command::new(deno)
        .args(["run", "--no-prompt", "--no-config", "deno_process.mjs"])
        .current_dir(here())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let (mut to, from) = (child.stdin.take()?, child.stdout.take()?);
    to.write_all(request.as_bytes()).ok()?;
    let mut took = None;
    for line in BufReader::new(from).lines() {
        let line = line.ok()?;
        if line.starts_with("{\"id\"") {
            to.write_all(line.as_bytes()).ok()?;
            to.write_all(b"\n").ok()?;
        } else {
            took = Some(micros(begun.elapsed()));
            break;
        }
    }
    child.wait().ok()?;
    took
}
