//! Calling a capability that returns its argument, beside what such a call can't do without: a ping of the same proxy, a run in
//! a warm slot, and a plain INSERT that waits for the disk, by as many clients. And where the time goes.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::try_join_all;
use pml_proxy::{
    config::DatabaseConfig,
    database::{Database, EndedRun},
    metrics::Metrics,
    plan::Plan,
    scope::{Caller, Identity, Principal, Scope, new_request_id},
};
use pml_worker::{Call, CallError, Json, Pool, PoolConfig, Run, Tenant};
use serde_json::{Value, json};
use tokio_postgres::NoTls;

use super::{
    client::{Address, Client, Result},
    load::{Load, Question, connect, many, median, micros, one},
    processes::{built, children, cpu, memory, pml},
};

const PROJECT: &str = "capability";
pub(super) const TOOL: &str = "mcp__bench__same";
const CLIENTS: [usize; 3] = [1, 8, 64];

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

    let inserts = Inserts::prepare().await?;
    let limits = by_clients(http, &address, process.pid(), &question, &inserts, time).await?;
    let least = parts(&mut client, &question, &arguments, &inserts, time).await?;
    limits.print(least);
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

/// What is compared with the limits.
struct Measured {
    calls: Vec<Load>,
    inserts_by_eight: f64,
}

impl Measured {
    /// `least`: a ping, a run in a warm slot and two INSERTs, in microseconds.
    fn print(&self, least: f64) {
        let [one, eight, many] = &self.calls[..] else { return };
        println!("\nLimits");
        let line = |what: &str, measured: f64, limit: f64, is_met: bool, unit: &str| {
            let verdict = if is_met { "met" } else { "NOT met" };
            println!("{what:<52} {measured:>9.2} of {limit:>9.2} {unit}: {verdict}");
        };
        line(
            "p50 of one client (ping + slot + 2 INSERTs)",
            one.p50() / 1e3,
            least / 1e3,
            one.p50() <= least,
            "ms",
        );
        let rate = self.inserts_by_eight / 5.0;
        line(
            "8 clients (a fifth of 8 clients' INSERTs)",
            eight.per_second,
            rate,
            eight.per_second >= rate,
            "calls/s",
        );
        let rate = eight.per_second;
        line("64 clients (as many as 8)", many.per_second, rate, many.per_second >= rate, "calls/s");
        for (clients, load) in CLIENTS.iter().zip(&self.calls) {
            let most = 4.0 * load.p50();
            let what = format!("p99 of {clients} clients (4 times their p50)");
            line(&what, load.p99() / 1e3, most / 1e3, load.p99() <= most, "ms");
        }
    }
}

async fn by_clients(
    http: &reqwest::Client,
    address: &Address,
    proxy: u32,
    question: &Question,
    inserts: &Inserts,
    time: Duration,
) -> Result<Measured> {
    println!("\nCalling a capability that returns its argument, over HTTP; CPU time for each call");
    println!(
        "{:<12} {:>11} {:>11} {:>9} {:>13} {:>9} {:>9} {:>9}",
        "clients", "p50", "p99", "calls/s", "INSERTs/s", "proxy", "workers", "Postgres"
    );
    let mut measured = Measured { calls: Vec::new(), inserts_by_eight: f64::NAN };
    for count in CLIENTS {
        let mut clients = connect(http, address, count).await?;
        let usage = || async {
            let workers: Duration = children(proxy, "pml-worker").into_iter().map(cpu).sum();
            Ok::<_, String>([cpu(proxy), workers, inserts.cpu_of_postgres().await?])
        };
        let before = usage().await?;
        let load = many(&mut clients, question, 2 * time).await?;
        let after = usage().await?;
        let calls = load.latencies.len() as f64;
        let [own, workers, postgres] =
            [0, 1, 2].map(|at| micros(after[at].saturating_sub(before[at])) / calls);
        let inserted = inserts.by(count, time).await?;
        println!(
            "{count:<12} {:>8.3} ms {:>8.3} ms {:>9.0} {:>13.0} {own:>6.0} µs {workers:>6.0} µs {postgres:>6.0} µs",
            load.p50() / 1e3,
            load.p99() / 1e3,
            load.per_second,
            inserted.per_second
        );
        if count == 8 {
            measured.inserts_by_eight = inserted.per_second;
        }
        measured.calls.push(load);
    }
    Ok(measured)
}

/// Single INSERTs of a small row, each committed synchronously.
pub(super) struct Inserts {
    url: String,
    admin: tokio_postgres::Client,
}

impl Inserts {
    pub(super) async fn prepare() -> Result<Inserts> {
        let url = std::env::var("PML_BENCH_ADMIN").map_err(|error| error.to_string())?;
        let admin = open(&url).await?;
        let table = "DROP TABLE IF EXISTS plain_rows; \
                     CREATE TABLE plain_rows (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, row jsonb, at timestamptz DEFAULT now())";
        admin.batch_execute(table).await.map_err(|error| error.to_string())?;
        Ok(Inserts { url, admin })
    }

    async fn by(&self, clients: usize, time: Duration) -> Result<Load> {
        let connections = try_join_all((0..clients).map(|_| open(&self.url))).await?;
        let begun = Instant::now();
        let insert = |client: tokio_postgres::Client| async move {
            let failed = |error: tokio_postgres::Error| error.to_string();
            let statement =
                client.prepare("INSERT INTO plain_rows (row) VALUES ($1)").await.map_err(failed)?;
            let row = json!({"text": "What is the weather like in Lisbon?"});
            let mut latencies = Vec::new();
            while begun.elapsed() < time {
                let started = Instant::now();
                client.execute(&statement, &[&tokio_postgres::types::Json(&row)]).await.map_err(failed)?;
                latencies.push(micros(started.elapsed()));
            }
            Ok::<_, String>(latencies)
        };
        let latencies = try_join_all(connections.into_iter().map(insert)).await?.concat();
        let per_second = latencies.len() as f64 / begun.elapsed().as_secs_f64();
        Ok(Load { latencies, per_second })
    }

    pub(super) async fn cpu_of_postgres(&self) -> Result<Duration> {
        let rows = self.admin.query("SELECT pid FROM pg_stat_activity", &[]).await;
        let rows = rows.map_err(|error| error.to_string())?;
        let pids = rows.iter().filter_map(|row| row.try_get::<_, i32>(0).ok());
        Ok(pids.map(|pid| cpu(pid.unsigned_abs())).sum())
    }
}

async fn open(url: &str) -> Result<tokio_postgres::Client> {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    Ok(client)
}

/// The parts of one call, each by itself as the proxy does it, one after the other with nothing else under way. What a call
/// can't do without, in microseconds.
async fn parts(
    client: &mut Client,
    question: &Question,
    arguments: &Value,
    inserts: &Inserts,
    time: Duration,
) -> Result<f64> {
    let database = database()?;
    let request = json!({"tool": TOOL, "servers": []});
    let planned = database.plan(&caller(), &request).await.map_err(|error| error.to_string())?;
    let Ok(Plan::Run(plan)) = Plan::parse(&planned) else { return Err(format!("no run: {planned}")) };
    let args = Json::from(arguments.clone());
    let pool = Pool::start(PoolConfig { program: built("pml-worker"), ..PoolConfig::default() })
        .await
        .map_err(|e| e.to_string())?;
    let echo = |call: Call| async move { Ok::<Json, CallError>(call.args) };
    let ping = Question { method: "ping", params: json!({}) };

    let [mut worker, mut finish, mut whole, mut protocol, mut insert] = [const { Vec::<f64>::new() }; 5];
    // In short turns, so that a busy moment of the machine meets all alike.
    for _ in 0..10 {
        whole.extend(one(client, question, time / 5).await?.latencies);
        protocol.extend(one(client, &ping, time / 5).await?.latencies);
        insert.extend(inserts.by(1, time / 5).await?.latencies);
        let until = Instant::now() + time / 5;
        while Instant::now() < until {
            let run = Run::new(Tenant::from("bench"), plan.executable.clone()).with_args(args.clone());
            let started = Instant::now();
            let outcome = pool.run(run, &echo).await;
            worker.push(micros(started.elapsed()));
            let result = outcome.result.map_err(|failure| failure.to_string())?;
            let run = EndedRun {
                workflow: uuid::Uuid::now_v7(),
                caller: caller(),
                intent: None,
                args: args.clone(),
                context: plan.context.clone(),
                outcome: format!(
                    r#"{{"success": true, "result": {}, "duration_ms": 1, "path": [], "decisions": [], "tasks": []}}"#,
                    result.get()
                ),
                calls: 0,
                keeps_code: false,
            };
            let started = Instant::now();
            let finished = database.finish_many(&[&run], false).await;
            finish.push(micros(started.elapsed()));
            finished.map_err(|error| error.to_string())?;
        }
    }
    let [whole, protocol, worker, finish, insert] =
        [whole, protocol, worker, finish, insert].map(|times| median(&times) / 1e3);
    println!("\nWhere it goes (p50 of each part by itself, one client)");
    let part = |what: &str, time: f64| println!("{what:<34} {time:>8.3} ms {:>5.0} %", time / whole * 100.0);
    part("the whole call", whole);
    part("protocol and client (ping)", protocol);
    part("worker", worker);
    part("Postgres: pml_finish_many", finish);
    part("the rest", whole - protocol - worker - finish);
    part("a plain INSERT", insert);
    Ok((protocol + worker + 2.0 * insert) * 1e3)
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
