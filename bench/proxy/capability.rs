//! Calling a capability that returns its argument, and where the time goes.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use pml_proxy::{
    config::DatabaseConfig,
    database::Database,
    metrics::Metrics,
    run::Plan,
    scope::{Caller, Identity, Principal, Scope, new_request_id},
};
use pml_worker::{Call, CallError, Json, Pool, PoolConfig, Run};
use serde_json::{Value, json};

use super::{
    client::{Client, Result},
    load::{Question, connect, many, median, micros, one},
    processes::{built, children, memory, pml},
};

const PROJECT: &str = "capability";
const TOOL: &str = "mcp__bench__same";

pub(crate) async fn print(http: &reqwest::Client, folder: &Path, time: Duration) -> Result<()> {
    let (mut process, address) = pml(folder, "pml", &["--project", PROJECT])?;
    let mut client = process.serves(http, &address).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!("\nMemory of an idle proxy with its workers");
    print_memory("just started", process.pid());

    let arguments = json!({"text": "What is the weather like in Lisbon?"});
    let learnt = json!({"code": "return args", "name": "bench:same", "args": arguments});
    client.call("pml_execute", &learnt).await?;
    let question = Question { method: "tools/call", params: json!({"name": TOOL, "arguments": arguments}) };
    one(&mut client, &question, Duration::from_secs(1)).await?;

    println!("\nCalling a capability that returns its argument, over HTTP");
    println!("{:<12} {:>11} {:>11} {:>9}", "clients", "p50", "p99", "calls/s");
    for count in [1, 8, 64] {
        let mut clients = connect(http, &address, count).await?;
        let load = many(&mut clients, &question, 2 * time).await?;
        println!(
            "{count:<12} {:>8.3} ms {:>8.3} ms {:>9.0}",
            load.p50() / 1e3,
            load.p99() / 1e3,
            load.per_second
        );
    }
    parts(&mut client, &question, &arguments, time).await?;
    println!();
    print_memory("idle again", process.pid());
    Ok(())
}

fn print_memory(what: &str, pid: u32) {
    let (resident, own) = memory(pid);
    let workers = children(pid, "pml-worker");
    let (all, own_of_all) =
        workers.iter().map(|pid| memory(*pid)).fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    println!(
        "{what:<14} pml {resident:.1} MB resident, {own:.1} MB of its own; {} workers {all:.1} MB resident (each counts the \
         shared program), {own_of_all:.1} MB of their own",
        workers.len()
    );
}

/// The parts of one call, each by itself as the proxy does it, one after the other with nothing else under way.
async fn parts(client: &mut Client, question: &Question, arguments: &Value, time: Duration) -> Result<()> {
    let database = database()?;
    let request = json!({"tool": TOOL, "args": arguments, "servers": []});
    let pool = Pool::start(PoolConfig { program: built("pml-worker"), ..PoolConfig::default() })
        .await
        .map_err(|e| e.to_string())?;
    let echo = |call: Call| async move { Ok::<Json, CallError>(call.args) };
    let ping = Question { method: "ping", params: json!({}) };

    let (mut begin, mut worker, mut finish) = (Vec::new(), Vec::new(), Vec::new());
    let (mut whole, mut protocol) = (Vec::new(), Vec::new());
    // In short turns, so that a busy moment of the machine meets all alike.
    for _ in 0..10 {
        whole.extend(one(client, question, time / 5).await?.latencies);
        protocol.extend(one(client, &ping, time / 5).await?.latencies);
        let until = Instant::now() + time / 5;
        while Instant::now() < until {
            let caller = caller();
            let started = Instant::now();
            let begun = database.begin(&caller, &request).await.map_err(|error| error.to_string())?;
            begin.push(micros(started.elapsed()));
            let Ok(Plan::Run(plan)) = Plan::parse(&begun) else { return Err(format!("no run: {begun}")) };
            let run = Run::new("bench", plan.executable.clone()).with_args(plan.args.clone());
            let started = Instant::now();
            let outcome = pool.run(run, &echo).await;
            worker.push(micros(started.elapsed()));
            let result = outcome.result.map_err(|failure| failure.to_string())?;
            let outcome = format!(
                r#"{{"success": true, "result": {}, "duration_ms": 1, "path": [], "decisions": [], "tasks": []}}"#,
                result.get()
            );
            let outcome = serde_json::value::RawValue::from_string(outcome).map_err(|e| e.to_string())?;
            let started = Instant::now();
            let finished = database.finish(&caller, plan.workflow_id, &outcome).await;
            finish.push(micros(started.elapsed()));
            finished.map_err(|error| error.to_string())?;
        }
    }
    let [whole, protocol, begin, worker, finish] =
        [whole, protocol, begin, worker, finish].map(|times| median(&times) / 1e3);
    println!("\nWhere it goes (p50 of each part by itself, one client)");
    let part = |what: &str, time: f64| println!("{what:<34} {time:>8.3} ms {:>5.0} %", time / whole * 100.0);
    part("the whole call", whole);
    part("protocol and client (ping)", protocol);
    part("Postgres: pml_begin", begin);
    part("worker", worker);
    part("Postgres: pml_finish", finish);
    part("the rest", whole - protocol - begin - worker - finish);
    Ok(())
}

fn database() -> Result<Database> {
    let url = std::env::var("PML_BENCH_DATABASE").map_err(|error| error.to_string())?;
    let address: tokio_postgres::Config = url.parse().map_err(|error| format!("{error}"))?;
    let config = DatabaseConfig {
        main: address.clone(),
        listen: address,
        connections: 16,
        patience: Duration::from_secs(10),
    };
    Ok(Database::new(&config, Arc::new(Metrics::default())))
}

fn caller() -> Caller {
    let scope = Scope { org: "local".into(), project: PROJECT.into(), actor: "bench".into() };
    Caller { principal: Principal { identity: Identity::Configured, scope }, request_id: new_request_id() }
}
