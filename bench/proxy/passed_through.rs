//! A call passed through to server-everything's `echo`: directly, through `pml serve`, and through the peers.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    client::{Address, Client, Result},
    load::{Question, connect, many, median, one, spread},
    processes::{Process, free_port, memory, pml},
};

const ROUNDS: usize = 5;
const CLIENTS: usize = 8;
const UNVERSIONED: &str = "directly, no version";
const MCP_PROXY: &str = "mcp-proxy 0.6.0 (Rust)";

/// How the proxies reach the server; whoever calls directly speaks the same.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    Http,
    Stdio,
}

/// A way to the server.
struct Way {
    name: &'static str,
    question: Question,
    client: Client,
    crowd: Vec<Client>,
    /// Gone with the way itself.
    process: Option<Process>,
    p50s: Vec<f64>,
    rates: Vec<f64>,
    rates_of_many: Vec<f64>,
}

pub(crate) async fn print(http: &reqwest::Client, folder: &Path, time: Duration) -> Result<()> {
    for behind in [Behind::Http, Behind::Stdio] {
        let heading = match behind {
            Behind::Http => "over streamable HTTP",
            Behind::Stdio => "over stdio",
        };
        println!("\nA call passed through to server-everything's echo; the server is reached {heading}");
        table(http, folder, time, behind).await?;
    }
    Ok(())
}

async fn table(http: &reqwest::Client, folder: &Path, time: Duration, behind: Behind) -> Result<()> {
    let server = Server::start(http, folder, behind).await?;
    let mut ways = vec![Way::to(http, "directly", server.address.clone(), None).await?];
    if let Address::Http(url) = &server.address {
        ways.push(Way::to(http, UNVERSIONED, Address::UnversionedHttp(url.clone()), None).await?);
    }
    for (name, started) in [
        ("pml serve", through_pml(folder, &server, true)),
        ("pml, no fast path", through_pml(folder, &server, false)),
        (MCP_PROXY, through_mcp_proxy(folder, &server)),
        ("mcp-hub 4.2.1 (Node)", through_mcp_hub(folder, &server)),
        ("fastmcp (Python)", through_fastmcp(folder, &server)),
    ] {
        let way = match started {
            Ok((process, address)) => Way::to(http, name, address, Some(process)).await,
            Err(why) => Err(why),
        };
        match way {
            Ok(way) => ways.push(way),
            Err(why) => println!("{name} is left out: {why}"),
        }
    }
    // Each round measures everything once, so that a busy moment of the machine meets all alike.
    for _ in 0..ROUNDS {
        for way in &mut ways {
            way.round(time).await.map_err(|error| format!("{}: {error}", way.name))?;
        }
    }
    println!(
        "{:<24} {:>10} {:>12} {:>8} {:>14} {:>20} {:>10}",
        "", "p50", "added", "spread", "calls/s, 1", "calls/s, 8 clients", "resident"
    );
    let p50_of = |name: &str| ways.iter().find(|way| way.name == name).map(|way| median(&way.p50s));
    for way in &ways {
        let p50 = median(&way.p50s);
        let like_it = if way.name == MCP_PROXY { p50_of(UNVERSIONED) } else { None };
        let direct = like_it.unwrap_or_else(|| median(&ways[0].p50s));
        let resident = way.process.as_ref().map(|process| format!("{:.0} MB", memory(process.pid()).0));
        println!(
            "{:<24} {:>7.3} ms {:>9.3} ms {:>6.0} % {:>14.0} {:>20} {:>10}",
            way.name,
            p50 / 1e3,
            (p50 - direct) / 1e3,
            spread(&way.p50s),
            median(&way.rates),
            if way.rates_of_many.is_empty() {
                "-".into()
            } else {
                format!("{:.0}", median(&way.rates_of_many))
            },
            resident.unwrap_or_default(),
        );
    }
    if behind == Behind::Http {
        println!(
            "mcp-proxy doesn't tell the server which version of the protocol it speaks, which spares the server an event for\n\
             each call, by which a lost answer could be fetched again. What it adds is counted from the call that does the same."
        );
    }
    Ok(())
}

impl Way {
    async fn to(
        http: &reqwest::Client,
        name: &'static str,
        address: Address,
        mut process: Option<Process>,
    ) -> Result<Way> {
        let mut client = match &mut process {
            Some(process) => process.serves(http, &address).await?,
            None => Client::connect(http, &address).await?,
        };
        let tool = echo_tool(&mut client).await?;
        let message = "What is the weather like in Lisbon?";
        let params = json!({"name": tool, "arguments": {"message": message}});
        let question = Question { method: "tools/call", params };
        let answer = client.request(question.method, &question.params).await?;
        if answer.result["content"][0]["text"] != format!("Echo: {message}") {
            return Err(format!("it doesn't echo: {}", answer.result));
        }
        one(&mut client, &question, Duration::from_millis(500)).await?;
        // A server on stdio has one client.
        let crowd = if matches!(address, Address::Stdio(_)) { 0 } else { CLIENTS };
        let crowd = connect(http, &address, crowd).await?;
        let (p50s, rates, rates_of_many) = Default::default();
        Ok(Way { name, question, client, crowd, process, p50s, rates, rates_of_many })
    }

    async fn round(&mut self, time: Duration) -> Result<()> {
        let alone = one(&mut self.client, &self.question, time).await?;
        self.p50s.push(alone.p50());
        self.rates.push(alone.per_second);
        if !self.crowd.is_empty() {
            self.rates_of_many.push(many(&mut self.crowd, &self.question, time).await?.per_second);
        }
        Ok(())
    }
}

/// Every proxy has its own name for it; some list it only once the server has been reached.
async fn echo_tool(client: &mut Client) -> Result<String> {
    for _ in 0..200 {
        let answer = client.request("tools/list", &json!({})).await?;
        let tools = answer.result["tools"].as_array().cloned().unwrap_or_default();
        let name = tools.iter().filter_map(|tool| tool["name"].as_str()).find(|name| name.ends_with("echo"));
        if let Some(name) = name {
            return Ok(name.to_owned());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err("it doesn't list echo".into())
}

struct Server {
    address: Address,
    /// As `mcpServers` has it.
    entry: Value,
    /// The usual configuration file with that entry. Written once: the proxies read it when they start, all at a time.
    file: PathBuf,
    _process: Option<Process>,
}

impl Server {
    async fn start(http: &reqwest::Client, folder: &Path, behind: Behind) -> Result<Server> {
        let script = modules().join("@modelcontextprotocol/server-everything/dist/index.js");
        if !script.exists() {
            return Err("server-everything is not installed (npm install in bench/proxy)".into());
        }
        let script = script.display().to_string();
        if behind == Behind::Stdio {
            let entry = json!({"command": "node", "args": [script, "stdio"]});
            let address = Address::Stdio(vec!["node".into(), script, "stdio".into()]);
            let file = servers_file(folder, "stdio", &entry)?;
            return Ok(Server { address, entry, file, _process: None });
        }
        let port = free_port();
        let mut command = Command::new("node");
        command.args([&script, "streamableHttp"]).env("PORT", port.to_string());
        let mut process = Process::start(folder, "server-everything", &mut command)?;
        let url = format!("http://127.0.0.1:{port}/mcp");
        let address = Address::Http(url.clone());
        process.serves(http, &address).await?;
        let entry = json!({"type": "http", "url": url});
        let file = servers_file(folder, "http", &entry)?;
        Ok(Server { address, entry, file, _process: Some(process) })
    }
}

fn servers_file(folder: &Path, name: &str, entry: &Value) -> Result<PathBuf> {
    let path = folder.join(format!("servers-{name}.json"));
    let text = json!({"mcpServers": {"everything": entry}}).to_string();
    fs::write(&path, text).map_err(|error| error.to_string())?;
    Ok(path)
}

fn modules() -> PathBuf {
    super::here().join("node_modules")
}

fn through_pml(folder: &Path, server: &Server, passthrough: bool) -> Result<(Process, Address)> {
    let file = server.file.display().to_string();
    let name = format!("pml-{passthrough}");
    let passthrough = passthrough.to_string();
    pml(
        folder,
        &name,
        &["--mcp-servers", &file, "--project", "passed_through", "--passthrough", &passthrough],
    )
}

fn through_mcp_hub(folder: &Path, server: &Server) -> Result<(Process, Address)> {
    let script = modules().join("mcp-hub/dist/cli.js");
    if !script.exists() {
        return Err("not installed (npm install in bench/proxy)".into());
    }
    let port = free_port();
    let mut command = Command::new("node");
    command.arg(script).args(["--port", &port.to_string(), "--config"]).arg(&server.file);
    let process =
        Process::start(folder, "mcp-hub", command.env("HOME", folder).env_remove("XDG_STATE_HOME"))?;
    // It has no streamable HTTP in front.
    Ok((process, Address::EventStream(format!("http://127.0.0.1:{port}/mcp"))))
}

fn through_fastmcp(folder: &Path, server: &Server) -> Result<(Process, Address)> {
    let python = env::var_os("PML_BENCH_PYTHON").map(PathBuf::from).filter(|python| python.exists());
    let python = python.ok_or("not installed (bench/proxy/run says why)")?;
    let port = free_port();
    let mut command = Command::new(python);
    command.arg(super::here().join("fastmcp_proxy.py")).arg(&server.file).arg(port.to_string());
    let process = Process::start(folder, "fastmcp", command.env("HOME", folder))?;
    Ok((process, Address::Http(format!("http://127.0.0.1:{port}/mcp"))))
}

fn through_mcp_proxy(folder: &Path, server: &Server) -> Result<(Process, Address)> {
    let program = env::var_os("PML_BENCH_MCP_PROXY").map(PathBuf::from).filter(|program| program.exists());
    let program = program.ok_or("not installed (bench/proxy/run says why)")?;
    let port = free_port();
    // JSON's strings and lists are TOML's too.
    let entry = &server.entry;
    let backend = if entry.get("url").is_some() {
        format!("transport = \"http\"\nurl = {}", entry["url"])
    } else {
        format!("transport = \"stdio\"\ncommand = {}\nargs = {}", entry["command"], entry["args"])
    };
    let config = format!(
        "[proxy]\nname = \"bench\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n\
         [[backends]]\nname = \"everything\"\n{backend}\n"
    );
    let file = folder.join("mcp-proxy.toml");
    fs::write(&file, config).map_err(|error| error.to_string())?;
    let process = Process::start(folder, "mcp-proxy", Command::new(program).arg("--config").arg(file))?;
    Ok((process, Address::Http(format!("http://127.0.0.1:{port}/"))))
}
