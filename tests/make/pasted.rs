//! What `make up` prints works when it is pasted: into a shell, and into the configuration of MCP clients.

use std::{path::Path, process::Command};

use pml_tests::mcp::{Agent, Era, eventually, runtime};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};

use crate::checkout::{Checkout, run, succeeded};

#[test]
fn in_a_folder_with_an_odd_name() {
    check(&Checkout::new());
}

#[test]
fn by_a_user_without_privileges() {
    check(&Checkout::of_nobody());
}

fn check(checkout: &Checkout) {
    let printed = succeeded(&checkout.up());
    let psql =
        printed.lines().map(str::trim).find(|line| line.contains("dbname=pml")).expect("a line for psql");
    let query = format!("{psql} -XAtc 'SELECT extname FROM pg_extension WHERE extname = $$pml$$'");
    assert_eq!(run(&mut checkout.command(&["sh", "-c", &query])).trim(), "pml");

    let url = format!("http://127.0.0.1:{}/mcp", checkout.port);
    assert!(printed.contains(&url), "{printed}");
    let lines = |label: &str| -> Vec<String> {
        let lines = printed.lines().filter_map(|line| line.trim().strip_prefix(label));
        lines.map(|line| line.trim().to_owned()).collect()
    };
    let (http, stdio) = (lines("HTTP:"), lines("stdio:"));
    assert_eq!((http.len(), stdio.len()), (4, 4), "{printed}");
    for line in &http {
        assert!(words_or_json(checkout, line).to_string().contains(&url), "{line}");
    }
    let agent = Agent::connect(&url, Era::Sessions);
    assert_eq!(agent.ask("pml_execute", json!({"code": "return 6 * 7", "name": "num:http"}))["result"], 42);
    for line in stdio {
        let entry = entry(&words_or_json(checkout, &line));
        let agent = start(checkout, &entry);
        assert_eq!(agent.ask("pml_execute", json!({"code": "return 40 + 2"}))["result"], 42, "{line}");
        agent.has_tool("mcp__num__http");
        agent.close();
    }
    agent.close();
    succeeded(&checkout.make("down").output().unwrap());
    // A backend or a child of the proxy may need a moment to end.
    eventually("nothing runs any more", || checkout.processes().is_empty().then_some(()));
}

/// A line as its reader takes it: the words that a shell makes of it, or JSON.
fn words_or_json(checkout: &Checkout, line: &str) -> Value {
    if line.starts_with('{') {
        return serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    let script = format!("set -- {line}; printf '%s\\0' \"$@\"");
    let words = run(&mut checkout.command(&["sh", "-c", &script]));
    json!(words.split_terminator('\0').collect::<Vec<_>>())
}

/// The server's entry, in the form that most clients have.
fn entry(pasted: &Value) -> Value {
    if let Some(words) = pasted.as_array() {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        assert_eq!(words[..4], ["claude", "mcp", "add", "pml"]);
        let program = words.iter().position(|word| *word == "--").expect("a program");
        let variables = words.windows(2).filter(|pair| pair[0] == "--env");
        let env: serde_json::Map<String, Value> = variables
            .map(|pair| pair[1].split_once('=').expect("NAME=value"))
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        return json!({"command": words[program + 1], "args": words[program + 2..], "env": env});
    }
    ["mcpServers", "servers"]
        .iter()
        .map(|key| pasted[key]["pml"].clone())
        .find(Value::is_object)
        .expect("an entry")
}

/// Starts the server as a client does: from some other folder, with the variables of the entry.
fn start(checkout: &Checkout, entry: &Value) -> Agent {
    let texts = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .expect("a list")
            .iter()
            .map(|text| text.as_str().expect("a string").to_owned())
            .collect()
    };
    let program = entry["command"].as_str().expect("a program").to_owned();
    let words: Vec<String> = [program].into_iter().chain(texts(&entry["args"])).collect();
    let mut command: Command = checkout.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
    command.current_dir(Path::new("/"));
    for (name, value) in entry["env"].as_object().expect("variables") {
        command.env(name, value.as_str().expect("a string"));
    }
    let transport = {
        let _guard = runtime().enter();
        TokioChildProcess::new(tokio::process::Command::from(command)).expect("it starts")
    };
    Agent::over(transport, Era::Sessions).expect("a connection")
}
