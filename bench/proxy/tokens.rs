//! What an agent sends and receives for five tasks: by name, and when it sends the code again.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{
    client::{Client, Result},
    processes::pml,
};

struct Task {
    name: &'static str,
    intent: &'static str,
    code: &'static str,
    args: fn(&str) -> Value,
}

const TASKS: &[Task] = &[
    Task {
        name: "logs:error_summary",
        intent: "Summarise the errors of a log file: the most frequent kinds, with when they were first and last seen",
        code: include_str!("tasks/error_summary.ts"),
        args: |data| json!({"path": format!("{data}/app.log"), "top": 5}),
    },
    Task {
        name: "sales:by_region",
        intent: "Add up orders, units and revenue by region for a quarter, from a CSV export",
        code: include_str!("tasks/sales_by_region.ts"),
        args: |data| json!({"path": format!("{data}/sales.csv"), "quarter": 3}),
    },
    Task {
        name: "code:open_todos",
        intent: "List the TODO and FIXME comments of a TypeScript project, with file, line and owner",
        code: include_str!("tasks/open_todos.ts"),
        args: |data| json!({"folder": format!("{data}/src")}),
    },
    Task {
        name: "config:compare",
        intent: "Compare the configuration of two environments, without showing secrets",
        code: include_str!("tasks/compare_configs.ts"),
        args: |data| json!({"left": format!("{data}/staging.json"), "right": format!("{data}/production.json")}),
    },
    Task {
        name: "report:markdown_table",
        intent: "Write JSON records as an aligned Markdown table to a file",
        code: include_str!("tasks/markdown_table.ts"),
        args: |data| {
            json!({"path": format!("{data}/stock.json"), "columns": ["sku", "name", "stock", "price"],
                   "out": format!("{data}/stock.md")})
        },
    },
];

pub(crate) async fn print(http: &reqwest::Client, folder: &Path) -> Result<()> {
    let data = folder.join("data");
    write_data(&data).map_err(|error| error.to_string())?;
    let data = data.display().to_string();
    let script = super::here().join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    if !script.exists() {
        return Err("server-filesystem is not installed (npm install in bench/proxy)".into());
    }
    let file = folder.join("filesystem.json");
    let servers = json!({"mcpServers": {"filesystem": {"command": "node", "args": [script, data]}}});
    fs::write(&file, servers.to_string()).map_err(|error| error.to_string())?;
    let (mut process, address) =
        pml(folder, "pml", &["--mcp-servers", &file.display().to_string(), "--project", "tokens"])?;
    let mut client = process.serves(http, &address).await?;
    let mut texts = Vec::new();
    for task in TASKS {
        texts.extend(exchange(&mut client, task, &data).await?);
    }
    let (counts, unit) = match count(&texts) {
        Some(counts) => (counts, "tokens (o200k_base)"),
        None => (texts.iter().map(|text| text.len() / 4).collect(), "bytes / 4: no tokenizer is installed"),
    };
    println!("\nWhat an agent sends and receives, in {unit}");
    println!(
        "{:<24} {:>24} {:>24} {:>8} {:>24}",
        "task", "by name (→ ←)", "code again (→ ←)", "saved", "definition in tools/list"
    );
    let mut sums = [0; 5];
    for (task, counts) in TASKS.iter().zip(counts.chunks(5)) {
        print_row(task.name, counts);
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    print_row("together", &sums);
    Ok(())
}

fn print_row(name: &str, counts: &[usize]) {
    let &[named_sent, named_received, code_sent, code_received, definition] = counts else { return };
    let (named, code) = (named_sent + named_received, code_sent + code_received);
    println!(
        "{name:<24} {:>24} {:>24} {:>6.0} % {definition:>24}",
        format!("{named} ({named_sent} {named_received})"),
        format!("{code} ({code_sent} {code_received})"),
        (1.0 - named as f64 / code as f64) * 100.0
    );
}

/// What goes to and fro, as a model writes and reads it: sent and received by name, the same with the code, and the
/// tool's definition, which costs once in a conversation.
async fn exchange(client: &mut Client, task: &Task, data: &str) -> Result<[String; 5]> {
    let args = (task.args)(data);
    let mut learnt = json!({"intent": task.intent, "code": task.code, "args": args});
    let again = learnt.clone();
    learnt["name"] = json!(task.name);
    learnt["description"] = json!(task.intent);
    client.call("pml_execute", &learnt).await?;

    let listed = client.request("tools/list", &json!({})).await?.result;
    let tools = listed["tools"].as_array().cloned().unwrap_or_default();
    let tool = tools.into_iter().find(|tool| tool["title"] == task.name);
    let tool = tool.ok_or_else(|| format!("{} isn't listed", task.name))?;
    let name = tool["name"].as_str().unwrap_or_default();
    let by_name = client.call(name, &args).await?.result;
    let with_code = client.call("pml_execute", &again).await?.result;
    let definition =
        json!({"name": name, "description": tool["description"], "inputSchema": tool["inputSchema"]});
    Ok([
        json!({"name": name, "arguments": args}).to_string(),
        read(&by_name),
        json!({"name": "pml_execute", "arguments": again}).to_string(),
        read(&with_code),
        definition.to_string(),
    ])
}

/// Models read the text; `structuredContent` and `_meta` are for programs.
fn read(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn count(texts: &[String]) -> Option<Vec<usize>> {
    let mut node = Command::new("node")
        .arg("count_tokens.mjs")
        .current_dir(super::here())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    node.stdin.take()?.write_all(json!(texts).to_string().as_bytes()).ok()?;
    serde_json::from_slice(&node.wait_with_output().ok()?.stdout).ok()
}

/// Files such as the tasks are about.
fn write_data(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder.join("src/orders"))?;
    let services = ["payments", "orders", "search", "mail"];
    let problems = ["Timeout after 3000 ms", "Connection refused by 10.0.0.7:5432", "Unexpected status 502"];
    let mut log = String::new();
    for i in 0..400_usize {
        let (service, problem) = (services[i % 4], problems[i * 7 % 3]);
        let level = if i % 3 == 0 { "ERROR" } else { "INFO" };
        let _ = writeln!(
            log,
            "2026-11-03T{:02}:{:02}:02Z {level} {service}: {problem} (request {i})",
            i / 60,
            i % 60
        );
    }
    fs::write(folder.join("app.log"), log)?;
    let mut sales = String::from("date,region,product,units,unit_price\n");
    for i in 0..300_usize {
        let region = ["North", "South", "East", "West"][i / 5 % 4];
        let _ = writeln!(
            sales,
            "2026-{:02}-{:02},{region},\"Desk, oak\",{},{}.50",
            i % 12 + 1,
            i % 28 + 1,
            i % 9 + 1,
            40 + i % 25
        );
    }
    fs::write(folder.join("sales.csv"), sales)?;
    fs::write(
        folder.join("src/main.ts"),
        "import { open } from './orders/open';\n// TODO(ann): read the port from the environment\nopen(8080);\n",
    )?;
    fs::write(
        folder.join("src/orders/open.ts"),
        "export function open(port: number) {\n  // FIXME: fails when the port is taken\n  // TODO(ben): log in UTC\n  return port;\n}\n",
    )?;
    let config = |replicas: u32, level: &str, password: &str| {
        json!({"database": {"host": "db", "pool": 16, "password": password}, "log": {"level": level},
               "replicas": replicas, "features": ["search", "export"]})
    };
    fs::write(folder.join("staging.json"), config(1, "debug", "a").to_string())?;
    fs::write(folder.join("production.json"), config(4, "info", "b").to_string())?;
    let stock: Vec<Value> = (0..20)
        .map(|i| json!({"sku": format!("D-{i:03}"), "name": format!("Desk {i}"), "stock": i * 7 % 40, "price": 199 + i}))
        .collect();
    fs::write(folder.join("stock.json"), json!(stock).to_string())
}
