//! The worker against its peers, all in one run: `cargo bench -p pml_worker --bench worker`; with `-- large` only the worker
//! with a megabyte of JSON.
//!
//! Prints medians and ratios; asserts nothing. Peers that aren't installed (`npm install` in this folder) are left out.

mod large;
mod memory;
mod peers;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use pml_worker::{Call, CallError, Json, Limits, Pool, PoolConfig, Run};

pub(crate) fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/worker")
}

fn config() -> PoolConfig {
    PoolConfig { program: env!("CARGO_BIN_EXE_pml-worker").into(), slots: 2, ..PoolConfig::default() }
}

async fn echo(call: Call) -> Result<Json, CallError> {
    Ok(call.args)
}

pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn generous() -> Limits {
    Limits { cpu_time: Duration::from_secs(60), wall_time: Duration::from_secs(60), ..Limits::default() }
}

async fn timed(pool: &Pool, run: &Run) -> f64 {
    let begun = Instant::now();
    let outcome = pool.run(run.clone(), &echo).await;
    let took = micros(begun.elapsed());
    outcome.result.unwrap_or_else(|failure| panic!("{failure}"));
    took
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let Some(tasks) = peers::tasks() else {
        println!("Node is needed to read the tasks: install nodejs and npm");
        return;
    };
    let pool = Pool::start(config()).await.unwrap();
    let rows = Json::from_text(tasks.rows.clone()).unwrap();
    if std::env::args().any(|argument| argument == "large") {
        return large::print(&pool, &rows).await;
    }
    let mut ours = BTreeMap::new();
    for (task, code, runs) in &tasks.list {
        let code = format!("const call = mcp.bench.call; {code}");
        let mut run = Run::new("bench", code).with_limits(generous());
        if task == "json" {
            run.args = rows.clone();
        }
        timed(&pool, &run).await;
        let mut times = Vec::new();
        for _ in 0..*runs {
            times.push(timed(&pool, &run).await);
        }
        ours.insert(task.clone(), median(times));
    }
    peers::print_table(&tasks, &ours).await;
    large::print(&pool, &rows).await;

    println!("\nThe worker by itself");
    process_start().await;
    new_runtime().await;
    round_trip(&pool).await;
    cancellation().await;
    under_attack().await;
    memory::per_slot(config()).await;
}

async fn process_start() {
    let mut times = Vec::new();
    for _ in 0..50 {
        let begun = Instant::now();
        let pool = Pool::start(PoolConfig { slots: 1, ..config() }).await.unwrap();
        pool.run(Run::new("bench", "return 1 + 1"), &echo).await.result.unwrap();
        times.push(micros(begun.elapsed()));
        pool.close().await;
    }
    println!("{:<46} {:>10.2} ms", "process start to result", median(times) / 1e3);
}

/// A run right after another finds the old engine being thrown away and the new one being made; one after a rest finds it
/// made, but the process asleep.
async fn new_runtime() {
    const REST: Duration = Duration::from_millis(3);
    let pool = Pool::start(PoolConfig { slots: 1, ..config() }).await.unwrap();
    let nothing = Run::new("bench", "return 1");
    let (mut at_once, mut rested) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        tokio::time::sleep(REST).await;
        rested.push(timed(&pool, &nothing).await);
        at_once.push(timed(&pool, &nothing).await);
    }
    let (at_once, rested) = (median(at_once) / 1e3, median(rested) / 1e3);
    println!(
        "{:<46} {rested:>10.3} ms rested, {at_once:.3} ms right after another",
        "a run in a pool of one slot"
    );
}

async fn round_trip(pool: &Pool) {
    const CALLS: u32 = 900;
    let code = format!("for (let i = 0; i < {CALLS}; i++) await mcp.bench.call({{ i }})");
    let calls = Run::new("bench", code);
    let nothing = Run::new("bench", "return 1");
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        with.push(timed(pool, &calls).await);
        without.push(timed(pool, &nothing).await);
    }
    let each = (median(with) - median(without)) / f64::from(CALLS);
    println!("{:<46} {each:>10.1} µs (target < 100)", "round trip of a tool call");
}

/// From dropping a run that computes to the next run's result in the same slot.
async fn cancellation() {
    let pool = Pool::start(PoolConfig { slots: 1, ..config() }).await.unwrap();
    let endless = Run::new("bench", "await mcp.bench.call(1); for (;;);").with_limits(generous());
    let mut times = Vec::new();
    for _ in 0..50 {
        let computing = tokio::sync::Notify::new();
        let handler = |call: Call| {
            computing.notify_one();
            async { Ok::<_, CallError>(call.args) }
        };
        tokio::select! {
            _ = pool.run(endless.clone(), &handler) => unreachable!("it is endless"),
            () = computing.notified() => {}
        }
        times.push(timed(&pool, &Run::new("bench", "return 1")).await);
    }
    let worst = times.iter().copied().fold(0.0, f64::max);
    println!(
        "{:<46} {:>10.2} ms, worst {:.2} ms (target < 50)",
        "cancel to next result in the slot",
        median(times) / 1e3,
        worst / 1e3
    );
}

/// How many runs a second a tenant gets: alone, beside three that compute honestly, and beside three that exhaust, overflow
/// and hang their workers without pause. The last two share the cores alike; hostile code should cost no more than honest.
async fn under_attack() {
    const FOR: Duration = Duration::from_secs(3);
    const HONEST: &str = "let x = 0; for (let i = 0; i < 400000; i++) x += i; return x";
    let pool = Pool::start(PoolConfig { slots: 4, ..config() }).await.unwrap();
    let good = Run::new("good", "return await mcp.bench.call(args)");
    let serve = async || {
        let begun = Instant::now();
        let mut served = 0_u32;
        while begun.elapsed() < FOR {
            timed(&pool, &good).await;
            served += 1;
        }
        f64::from(served) / FOR.as_secs_f64()
    };
    let limits = Limits { memory: 4 << 20, cpu_time: Duration::from_millis(20), ..Limits::default() };
    let repeat = async |code: &str, limits: Limits| {
        loop {
            let _ = pool.run(Run::new("other", code).with_limits(limits.clone()), &echo).await;
        }
    };
    let beside = async |codes: [&str; 3], limits: Limits| {
        tokio::select! {
            rate = serve() => rate,
            () = repeat(codes[0], limits.clone()) => 0.0,
            () = repeat(codes[1], limits.clone()) => 0.0,
            () = repeat(codes[2], limits.clone()) => 0.0,
        }
    };
    let alone = serve().await;
    let honest = beside([HONEST; 3], generous()).await;
    let hostile = [
        "const a = []; for (;;) a.push({})",
        "const f = () => f() + 1; f()",
        "return Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)",
    ];
    let attacked = beside(hostile, limits).await;
    println!(
        "{:<46} {alone:>10.0} alone, {honest:.0} beside three that compute, {attacked:.0} beside three that attack ({:.2}× of the former)",
        "runs a second of one tenant, one at a time",
        attacked / honest
    );
}
