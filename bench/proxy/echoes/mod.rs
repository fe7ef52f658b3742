//! The same echo in what else runs code for agents: as a capability, as a tool of fastmcp and behind its code mode, in
//! executor, and in a Deno worker that is made for each call.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    client::{Address, Client, Result},
    load::{Question, connect, many, median, one},
    processes::{Process, free_port, memory, pml},
};

const ROUNDS: usize = 3;
const CLIENTS: usize = 8;
const TEXT: &str = "What is the weather like in Lisbon?";

/// One that echoes.
struct Echo {
    name: &'static str,
    client: Client,
    crowd: Vec<Client>,
    question: Question,
    process: Process,
    p50s: Vec<f64>,
    rates: Vec<f64>,
    rates_of_many: Vec<f64>,
}

type Started = Result<(Process, Address)>;

pub(crate) async fn print(http: &reqwest::Client, folder: &Path, time: Duration) -> Result<()> {
    println!("\nThe same echo in what runs code for agents, over HTTP");
    let arguments = json!({"text": TEXT});
    let by_code = json!({"code": format!("return await call_tool(\"same\", {arguments})")});
    let mut echoes = Vec::new();
    for (name, started, tool, arguments) in [
        (
            "pml: a capability",
            pml(folder, "pml-echo", &["--project", "echo"]),
            "mcp__bench__same",
            arguments.clone(),
        ),
        ("fastmcp: a plain tool", fastmcp(folder, "plain"), "same", arguments.clone()),
        ("fastmcp: code mode", fastmcp(folder, "code"), "execute", by_code),
        ("executor: execute", executor(folder), "execute", json!({"code": format!("return {arguments}")})),
        ("Deno: a worker per call", deno(folder), "same", arguments.clone()),
    ] {
        let question =
            Question { method: "tools/call", params: json!({"name": tool, "arguments": arguments}) };
        match Echo::of(http, name, started, question).await {
            Ok(echo) => echoes.push(echo),
            Err(why) => println!("{name} is left out: {why}"),
        }
    }
    // Each round measures everything once, so that a busy moment of the machine meets all alike.
    for _ in 0..ROUNDS {
        for echo in &mut echoes {
            echo.round(time).await.map_err(|error| format!("{}: {error}", echo.name))?;
        }
    }
    println!("{:<26} {:>10} {:>12} {:>20} {:>10}", "", "p50", "calls/s, 1", "calls/s, 8 clients", "resident");
    for echo in &echoes {
        println!(
            "{:<26} {:>7.3} ms {:>12.0} {:>20.0} {:>7.0} MB",
            echo.name,
            median(&echo.p50s) / 1e3,
            median(&echo.rates),
            median(&echo.rates_of_many),
            memory(echo.process.pid()).0
        );
    }
    Ok(())
}

impl Echo {
    async fn of(
        http: &reqwest::Client,
        name: &'static str,
        started: Started,
        question: Question,
    ) -> Result<Echo> {
        let (mut process, address) = started?;
        let mut client = process.serves(http, &address).await?;
        if question.params["name"] == "mcp__bench__same" {
            let learnt = json!({"code": "return args", "name": "bench:same", "args": {"text": TEXT}});
            client.call("pml_execute", &learnt).await?;
        }
        let answer = client.request(question.method, &question.params).await?;
        if !says(&answer.result, TEXT) {
            return Err(format!("it doesn't echo: {}", answer.result));
        }
        one(&mut client, &question, Duration::from_millis(500)).await?;
        let crowd = connect(http, &address, CLIENTS).await?;
        let (p50s, rates, rates_of_many) = Default::default();
        Ok(Echo { name, client, crowd, question, process, p50s, rates, rates_of_many })
    }

    async fn round(&mut self, time: Duration) -> Result<()> {
        let alone = one(&mut self.client, &self.question, time).await?;
        self.p50s.push(alone.p50());
        self.rates.push(alone.per_second);
        self.rates_of_many.push(many(&mut self.crowd, &self.question, time).await?.per_second);
        Ok(())
    }
}

/// Whether a tool's answer has the text, which some write as JSON in JSON.
fn says(answer: &Value, text: &str) -> bool {
    answer["isError"] != true
        && answer["content"][0]["text"].as_str().is_some_and(|content| content.contains(text))
}

fn serving(path: &str, port: u16) -> Address {
    Address::Http(format!("http://127.0.0.1:{port}{path}"))
}

fn installed(program: &str) -> Result<PathBuf> {
    let path = super::here().join("node_modules/.bin").join(program);
    if path.exists() { Ok(path) } else { Err("not installed (npm install in bench/proxy)".into()) }
}

fn fastmcp(folder: &Path, mode: &str) -> Started {
    let python = env::var_os("PML_BENCH_PYTHON").map(PathBuf::from).filter(|python| python.exists());
    let port = free_port();
    let mut command = Command::new(python.ok_or("not installed (bench/proxy/run says why)")?);
    command
        .arg(super::here().join("echoes/fastmcp_echo.py"))
        .args([mode, &port.to_string()])
        .env("HOME", folder);
    Ok((Process::start(folder, &format!("fastmcp-{mode}"), &mut command)?, serving("/mcp", port)))
}

fn executor(folder: &Path) -> Started {
    let port = free_port();
    let mut command = Command::new(installed("executor")?);
    command.args(["web", "--hostname", "127.0.0.1", "--port", &port.to_string(), "--scope"]).arg(folder);
    Ok((Process::start(folder, "executor", command.env("HOME", folder))?, serving("/mcp", port)))
}

fn deno(folder: &Path) -> Started {
    let port = free_port();
    let mut command = Command::new(installed("deno")?);
    command.args(["run", "--quiet", "--allow-net", "--unstable-worker-options"]);
    command.arg(super::here().join("echoes/deno_echo.mjs")).arg(port.to_string()).env("HOME", folder);
    Ok((Process::start(folder, "deno", &mut command)?, serving("/", port)))
}
