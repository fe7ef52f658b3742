//! Point 8: many runs while workers are killed at random; every run has exactly one outcome and the parent stays flat.
//!
//! `PML_WORKER_LOAD_RUNS=100000 cargo test -p pml_worker --release --test load -- --nocapture` is the full size.

mod support;

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use pml_worker::{Failure, Pool, PoolConfig, Run};
use rand::RngExt;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::json;
use support::{config, tools, until};

const DEFAULT_RUNS: usize = 4_000;
/// One worker is killed for so many outcomes: by progress and not by time, so that a slow machine still gets somewhere.
const KILL_EVERY: usize = 10;

fn children() -> Vec<i32> {
    let me = format!("PPid:\t{}\n", std::process::id());
    let is_child = |entry: &fs::DirEntry| {
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        status.contains(&me) && status.starts_with("Name:\tpml-worker")
    };
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries.filter(is_child).filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Kills one worker of this process, if there is one.
fn kill_any() -> bool {
    let children = children();
    if children.is_empty() {
        return false;
    }
    let pid = children[rand::rng().random_range(0..children.len())];
    let Some(handle) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return false;
    };
    // Looked at again with the handle in hand, so that nobody else's process can be meant.
    crate::children().contains(&pid) && pidfd_send_signal(&handle, Signal::KILL).is_ok()
}

fn resident_kilobytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_run_has_exactly_one_outcome_while_workers_are_killed() {
    let runs = std::env::var("PML_WORKER_LOAD_RUNS").map_or(DEFAULT_RUNS, |runs| runs.parse().unwrap());
    let pool = Pool::start(PoolConfig { slots: 4, runs_per_process: 100, ..config() }).await.unwrap();
    let kills = AtomicUsize::new(0);
    // Made before memory is measured, so that only what the pool keeps would show.
    let outcomes = Mutex::new((0_usize, vec![None::<&'static str>; runs]));
    let warm = AtomicUsize::new(0);
    let begun = Instant::now();

    let one = async |n: usize| {
        let code = match n % 4 {
            0 => "return args",
            1 => "return await mcp.test.echo(args)",
            2 => "return (await Promise.all([mcp.test.echo(args), mcp.test.echo(1)]))[0]",
            _ => "let x = 0; for (let i = 0; i < 5000; i++) x += i; console.log(x); return args",
        };
        let outcome = pool.run(Run::new(format!("tenant {}", n % 7), code).with_args(json!(n)), &tools).await;
        let told = match outcome.result {
            Ok(value) => {
                assert_eq!(value, json!(n), "the result of another run");
                "result"
            }
            Err(Failure::Crashed { .. }) => "crashed",
            // Every process that was started for it was killed as well.
            Err(Failure::Unavailable { .. }) => "unavailable",
            Err(other) => panic!("run {n}: {other}"),
        };
        let ended = {
            let mut outcomes = outcomes.lock();
            assert_eq!(outcomes.1[n].replace(told), None, "run {n} has two outcomes");
            outcomes.0 += 1;
            outcomes.0
        };
        if ended.is_multiple_of(KILL_EVERY) {
            kills.fetch_add(usize::from(kill_any()), Ordering::Relaxed);
        }
        if n == runs / 10 {
            warm.store(resident_kilobytes(), Ordering::Relaxed);
        }
    };
    stream::iter(0..runs).map(one).buffer_unordered(16).count().await;

    let took = begun.elapsed();
    let (ended, outcomes) = outcomes.into_inner();
    let count = |what: &str| outcomes.iter().filter(|told| **told == Some(what)).count();
    let (crashed, unavailable) = (count("crashed"), count("unavailable"));
    let (before, after, kills) = (warm.into_inner(), resident_kilobytes(), kills.into_inner());
    println!(
        "{runs} runs in {took:.1?} ({:.0} a second), {kills} workers killed, {crashed} runs crashed, \
         {unavailable} found no worker; parent {before} kB after a tenth, {after} kB at the end",
        runs as f64 / took.as_secs_f64()
    );
    assert_eq!(ended, runs);
    assert!(outcomes.iter().all(Option::is_some), "a run without an outcome");
    assert!(kills > 0, "nothing was killed");
    assert!(crashed + unavailable <= kills, "a kill hurts one run at most");
    assert!(after < before + 4 * 1024, "the parent grew from {before} kB to {after} kB");

    pool.close().await;
    until("every worker to be gone", || children().is_empty()).await;
}
