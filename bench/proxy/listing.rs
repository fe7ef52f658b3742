//! tools/list of scopes with few and many capabilities.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    client::{Client, Result},
    load::{self, Question, median, micros, percentile},
    processes::{memory, pml},
};

const TIMES: usize = 9;

pub(crate) async fn print(http: &reqwest::Client, folder: &Path, counts: &[usize]) -> Result<()> {
    println!("\ntools/list, with the built-in tools");
    println!(
        "{:<14} {:>11} {:>11} {:>12} {:>14} {:>16}",
        "capabilities", "first", "p50", "slowest", "bytes", "pml afterwards"
    );
    for count in counts {
        // bench/proxy/run has filled them.
        let limit = count.to_string();
        let project = format!("listing_{count}");
        let (mut process, address) = pml(folder, "pml", &["--project", &project, "--list-limit", &limit])?;
        let mut client = process.serves(http, &address).await?;
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..=TIMES {
            let asked = Instant::now();
            let answer = client.request("tools/list", &json!({})).await?;
            times.push(micros(answer.at - asked));
            bytes = answer.bytes;
            let listed = answer.result["tools"].as_array().map_or(0, Vec::len);
            if listed < *count {
                return Err(format!("{listed} tools are listed, not {count}"));
            }
        }
        println!(
            "{count:<14} {:>8.2} ms {:>8.2} ms {:>9.2} ms {bytes:>14} {:>13.1} MB",
            times[0] / 1e3,
            median(&times[1..]) / 1e3,
            percentile(&times[1..], 100) / 1e3,
            memory(process.pid()).0,
        );
    }
    Ok(())
}

/// A rested process may have so much more than a fresh one.
const KEPT_MEGABYTES: f64 = 8.0;
/// A ping beside a list may take so much longer than the slowest without one.
const PING_LIMIT: Duration = Duration::from_millis(10);
/// Cached lists expire after half a minute, and the process looks for rest every two seconds.
const REST: Duration = Duration::from_secs(40);

/// Pings of another client while the longest list is made, again and again, by a proxy with one thread; and the memory of the
/// process before, during and after that.
pub(crate) async fn beside_others(http: &reqwest::Client, folder: &Path, time: Duration) -> Result<()> {
    let (mut process, address) =
        pml(folder, "pml", &["--project", "listing_10000", "--list-limit", "10000"])?;
    let mut pinging = process.serves(http, &address).await?;
    let memory = || memory(process.pid()).0;
    let fresh = memory();
    let ping = Question { method: "ping", params: json!({}) };
    let alone = load::one(&mut pinging, &ping, time).await?;
    let mut clients = load::connect(http, &address, 16).await?;
    load::many(&mut clients, &ping, time).await?;
    let loaded = memory();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let after_load = memory();

    let beside = pings_beside_lists(&mut pinging, &mut clients[0], &ping).await?;
    let listed = memory();
    tokio::time::sleep(REST).await;
    let limit = percentile(&alone.latencies, 100) + micros(PING_LIMIT);
    println!("\nA list of 10,000 tools, and others");
    println!(
        "{:<46} {:>9.2} ms p50, {:.2} ms slowest; without a list {:.2} and {:.2} (limit of the slowest {:.2})",
        "pings of another client meanwhile",
        median(&beside) / 1e3,
        percentile(&beside, 100) / 1e3,
        alone.p50() / 1e3,
        percentile(&alone.latencies, 100) / 1e3,
        limit / 1e3,
    );
    println!(
        "{:<46} {fresh:>9.1} MB fresh, {loaded:.1} after load, {after_load:.1} rested, {listed:.1} after lists, {:.1} rested \
         (limit {:.1})",
        "memory of the process",
        memory(),
        fresh + KEPT_MEGABYTES,
    );
    Ok(())
}

/// The latencies of pings, in microseconds, while another client gets lists.
async fn pings_beside_lists(pinging: &mut Client, listing: &mut Client, ping: &Question) -> Result<Vec<f64>> {
    let mut latencies = Vec::new();
    let no_params = json!({});
    let lists = async {
        for _ in 0..TIMES {
            listing.request("tools/list", &no_params).await?;
        }
        Ok::<_, String>(())
    };
    tokio::pin!(lists);
    loop {
        let asked = Instant::now();
        tokio::select! {
            biased;
            done = &mut lists => break done?,
            answer = pinging.request(ping.method, &ping.params) => latencies.push(micros(answer?.at - asked)),
        }
    }
    Ok(latencies)
}
