//! Several proxies in front of one Postgres: the same number of clients, spread over more and more of them.

use std::{path::Path, time::Duration};

use futures_util::future::try_join_all;
use serde_json::json;

use super::{
    capability::{Inserts, TOOL},
    client::Result,
    load::{Load, Question, connect, many, micros},
    processes::{children, cpu, pml},
};

const PROJECT: &str = "proxies";
const CLIENTS: usize = 64;

pub(crate) async fn print(http: &reqwest::Client, folder: &Path, time: Duration) -> Result<()> {
    println!(
        "\nProxies on one Postgres: {CLIENTS} clients spread over them call a capability that returns its argument"
    );
    println!(
        "{:<10} {:>10} {:>11} {:>11} {:>16} {:>11}",
        "proxies", "calls/s", "p50", "p99", "CPU of proxies", "Postgres"
    );
    let inserts = Inserts::prepare().await?;
    let arguments = json!({"text": "What is the weather like in Lisbon?"});
    let question = Question { method: "tools/call", params: json!({"name": TOOL, "arguments": arguments}) };
    for count in [1, 2, 4, 8] {
        let mut proxies = Vec::new();
        let mut crowds = Vec::new();
        for number in 0..count {
            let (mut process, address) =
                pml(folder, &format!("pml-{count}-{number}"), &["--project", PROJECT])?;
            let mut client = process.serves(http, &address).await?;
            if count == 1 {
                let learnt = json!({"code": "return args", "name": "bench:same", "args": arguments});
                client.call("pml_execute", &learnt).await?;
            }
            client.call(TOOL, &arguments).await?;
            crowds.push(connect(http, &address, CLIENTS / count).await?);
            proxies.push(process);
        }
        let usage = || async {
            let of_proxies: Duration = proxies
                .iter()
                .map(|proxy| {
                    cpu(proxy.pid())
                        + children(proxy.pid(), "pml-worker").into_iter().map(cpu).sum::<Duration>()
                })
                .sum();
            Ok::<_, String>([of_proxies, inserts.cpu_of_postgres().await?])
        };
        // Workers start with the first runs.
        try_join_all(crowds.iter_mut().map(|crowd| many(crowd, &question, time / 2))).await?;
        let before = usage().await?;
        let loads = try_join_all(crowds.iter_mut().map(|crowd| many(crowd, &question, 2 * time))).await?;
        let after = usage().await?;
        let load = Load {
            per_second: loads.iter().map(|load| load.per_second).sum(),
            latencies: loads.into_iter().flat_map(|load| load.latencies).collect(),
        };
        let calls = load.latencies.len() as f64;
        let [own, postgres] = [0, 1].map(|at| micros(after[at].saturating_sub(before[at])) / calls);
        println!(
            "{count:<10} {:>10.0} {:>8.3} ms {:>8.3} ms {own:>13.0} µs {postgres:>8.0} µs",
            load.per_second,
            load.p50() / 1e3,
            load.p99() / 1e3
        );
    }
    Ok(())
}
