//! What one tenant's attack does to another's `return 1`: alone, and under each attack, in one run.

pub(crate) mod asking_server;
pub(crate) mod attack;

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    client::{Address, Client, Result},
    load::{Load, micros},
    processes::{Process, built, pml},
};
use attack::Attack;

/// How often the other tenant asks; a busy agent, and within its limits.
const PACE: Duration = Duration::from_millis(25);
/// How many times as long as other measurements: a p99 of 640 calls is the sixth worst, not the third.
const WINDOW: u32 = 16;
/// What it must stay under, as a multiple of what it is alone.
const MOST: f64 = 5.0;

/// All attacks, or those that are `wanted` by name.
pub(crate) async fn print(
    http: &reqwest::Client,
    folder: &Path,
    time: Duration,
    wanted: &[String],
) -> Result<()> {
    println!("\n`return 1` of one tenant, alone and while another attacks (one call every {PACE:?})");
    println!(
        "{:<14} {:>10} {:>10} {:>12} {:>12} {:>7}",
        "attack", "p50 alone", "p99 alone", "p50 attacked", "p99 attacked", "p99"
    );
    let mut seen = Vec::new();
    let named = |attack: &Attack| wanted.iter().any(|word| word == attack.name());
    let all = !Attack::ALL.iter().any(named);
    for attack in Attack::ALL.iter().filter(|attack| all || named(attack)) {
        match measure(http, folder, *attack, WINDOW * time).await {
            Ok((alone, attacked, what)) => {
                let ratio = attacked.p99() / alone.p99();
                let verdict = if ratio < MOST { "under 5" } else { "NOT under 5" };
                println!(
                    "{:<14} {:>7.2} ms {:>7.2} ms {:>9.2} ms {:>9.2} ms {ratio:>6.1}x {verdict}",
                    attack.name(),
                    alone.p50() / 1e3,
                    alone.p99() / 1e3,
                    attacked.p50() / 1e3,
                    attacked.p99() / 1e3,
                );
                seen.push(format!("{:<14} {what}", attack.name()));
            }
            Err(error) => println!("{:<14} can't be measured: {error}", attack.name()),
        }
    }
    println!("\nWhat the proxy said of itself at the end of each attack");
    for line in seen {
        println!("{line}");
    }
    Ok(())
}

/// A proxy of its own for each attack: nothing of the one before is left in it.
async fn measure(
    http: &reqwest::Client,
    folder: &Path,
    attack: Attack,
    time: Duration,
) -> Result<(Load, Load, String)> {
    let servers = folder.join("asking.json");
    let asking =
        json!({"mcpServers": {"asker": {"command": built("pml-bench-proxy"), "args": ["asking-server"]}}});
    std::fs::write(&servers, asking.to_string()).map_err(|error| error.to_string())?;
    let servers = servers.to_str().ok_or("the folder's name isn't text")?;
    let name = format!("fairness-{}", attack.name());
    let (mut process, address) = pml(folder, &name, &["--require-token", "--mcp-servers", servers])?;
    let token = new_token("quiet")?;
    let own = with_token(&token)?;
    let mut client = process.serves(&own, &address).await?;
    paced(&mut client, time / WINDOW).await?;
    let alone = paced(&mut client, time).await?;

    let Address::Http(url) = &address else { return Err("no URL".into()) };
    let mut command = Command::new("nice");
    command.arg(built("pml-bench-proxy")).args(["attack", attack.name(), url]);
    command.env("PML_BENCH_TOKEN", new_token(&format!("busy_{}", attack.name().replace(' ', "_")))?);
    let attacker = Attacker(Process::start(folder, &format!("{name}-attack"), &mut command)?);
    // Its beginning is part of the attack.
    let attacked = paced(&mut client, time).await?;
    let said = metrics(http, url).await?;
    drop(attacker);
    Ok((alone, attacked, said))
}

/// The attacker is another's machine: on this one it gives way to everybody.
struct Attacker(#[expect(dead_code, reason = "its end is its use")] Process);

async fn paced(client: &mut Client, time: Duration) -> Result<Load> {
    let question = json!({"code": "return 1"});
    let begun = Instant::now();
    let mut beat = tokio::time::interval(PACE);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut latencies = Vec::new();
    while begun.elapsed() < time {
        beat.tick().await;
        let asked = Instant::now();
        let answer = client.call("pml_execute", &question).await?;
        latencies.push(micros(answer.at - asked));
    }
    Ok(Load { per_second: latencies.len() as f64 / begun.elapsed().as_secs_f64(), latencies })
}

fn new_token(org: &str) -> Result<String> {
    let admin = std::env::var("PML_BENCH_ADMIN").map_err(|_| "PML_BENCH_ADMIN is set by bench/proxy/run")?;
    let made = Command::new(built("pml"))
        .args(["token", "create", "--json", "--org", org, "--actor", "bench"])
        .env("PML_DATABASE_URL", admin)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| error.to_string())?;
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).map_err(|error| error.to_string())?;
    made["token"].as_str().map(str::to_owned).ok_or_else(|| "no token".into())
}

/// A client that sends this token.
pub(crate) fn with_token(token: &str) -> Result<reqwest::Client> {
    let mut headers = reqwest::header::HeaderMap::new();
    let value = format!("Bearer {token}").parse().map_err(|_| "a token that can't be sent")?;
    headers.insert(reqwest::header::AUTHORIZATION, value);
    let client = reqwest::Client::builder().no_proxy().tcp_nodelay(true).default_headers(headers);
    client.build().map_err(|error| error.to_string())
}

/// Slots, queue, people and refusals.
async fn metrics(http: &reqwest::Client, url: &str) -> Result<String> {
    let response =
        http.get(url.replace("/mcp", "/metrics")).send().await.map_err(|error| error.to_string())?;
    let text = response.text().await.map_err(|error| error.to_string())?;
    let wanted = [
        "pml_worker_slots_used ",
        "pml_worker_waiting ",
        "pml_worker_aside ",
        "pml_limit_refused_total{",
        "pml_http_refused_total{",
    ];
    let lines = text.lines().filter(|line| wanted.iter().any(|wanted| line.starts_with(wanted)));
    Ok(lines.map(|line| line.trim_start_matches("pml_")).collect::<Vec<_>>().join(", "))
}
