//! What a pool slot costs in memory.

use std::fs;

use pml_worker::{Pool, PoolConfig, Run};

const SLOTS: usize = 16;

/// A line of /proc, in kilobytes; smaps_rollup is only for root to read of a process that isn't dumpable.
fn kilobytes(pid: u32, file: &str, field: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

fn parent_kilobytes() -> f64 {
    kilobytes(std::process::id(), "status", "RssAnon:").unwrap_or_default()
}

pub(crate) async fn per_slot(config: PoolConfig) {
    let before = parent_kilobytes();
    let pool = Pool::start(PoolConfig { slots: SLOTS, ..config }).await.unwrap();
    while pool.idle_pids().len() < SLOTS {
        tokio::task::yield_now().await;
    }
    let parent = (parent_kilobytes() - before) / SLOTS as f64;
    print_mean(&pool, "a slot that has run nothing", parent);
    let code =
        "const a = Array.from({ length: 20000 }, (_, i) => ({ i })); console.log(new URL('http://h').href);
                await mcp.bench.call(1); return a.length";
    for _ in 0..20 {
        futures_util::future::join_all((0..SLOTS).map(|_| pool.run(Run::new("bench", code), &super::echo)))
            .await;
    }
    print_mean(&pool, "a slot after some runs of 4 MB", parent);
}

fn print_mean(pool: &Pool, what: &str, parent: f64) {
    let pids = pool.idle_pids();
    let mean = |file: &str, field: &str| {
        let values: Option<Vec<f64>> = pids.iter().map(|pid| kilobytes(*pid, file, field)).collect();
        values.map(|values| values.iter().sum::<f64>() / values.len() as f64 / 1024.0)
    };
    let resident = mean("status", "VmRSS:").unwrap_or_default();
    let own = mean("status", "RssAnon:").unwrap_or_default();
    let share = mean("smaps_rollup", "Pss:")
        .map_or(String::new(), |pss| format!(", {pss:.1} MB with its share of the program"));
    println!(
        "{what:<46} {own:>10.1} MB of its own{share}, {resident:.1} MB resident, {parent:.0} kB in the parent (target < 8 MB)"
    );
}
