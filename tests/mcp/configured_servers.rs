//! `mcpServers` of any client: what can't be used is left out and explained, names are mapped, slow servers are told.

use std::{fs, path::Path, process::Output};

use pml_tests::{
    mcp::{Agent, Era, ProxySetup, Workbench, eventually, pml_by_itself, text},
    peers::{node, npm, program, servers_file},
};
use serde_json::{Value, json};

fn everything() -> Value {
    json!({"command": node(), "args": [npm("mcp-server-everything"), "stdio"]})
}

/// Starts only when the file is there.
fn gated(gate: &Path) -> Value {
    let script = r#"until [ -e "$1" ]; do sleep 0.05; done; exec "$2" "$3" stdio"#;
    json!({"command": "sh", "args": ["-c", script, "gated", gate, node(), npm("mcp-server-everything")]})
}

fn pml(bench: &Workbench, args: &[&str]) -> Output {
    let mut command = pml_by_itself();
    command.env("PML_DATABASE_URL", bench.database.url_of("proxy")).args(args);
    command.output().expect("pml starts")
}

#[test]
fn a_bad_entry_is_left_out_unless_it_is_strict() {
    let bench = Workbench::new();
    let servers = json!({"everything": everything(), "old one": {"type": "sse", "url": "http://127.0.0.1:1/sse"},
                         "asks": {"command": "x", "env": {"KEY": "${input:api-key}"}, "alwaysAllow": ["y"]}});
    let proxy = bench.proxy(&servers);
    let warned = |what: &str| proxy.log().iter().any(|line| line.contains("WARN") && line.contains(what));
    assert!(
        warned(r#"mcpServers.\"old one\".type: the transport SSE of 2024 isn't supported"#),
        "{:#?}",
        proxy.log()
    );
    assert!(warned(
        "mcpServers.asks.env.KEY: VS Code asks a person for this input; here, set the environment variable INPUT_API_KEY. The server is left out."
    ));
    assert!(warned("mcpServers.asks.alwaysAllow: ignored: which calls"));
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    agent.has_tool("mcp__everything__echo");
    drop(proxy);

    let file = servers_file(bench.path(), &servers);
    let file = file.to_str().unwrap();
    for args in [
        &["serve", "--strict", "--mcp-servers", file][..],
        &["stdio", "--mcp-servers", file, "--strict=true"],
    ] {
        let refused = pml(&bench, args);
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(64), "{message}");
        assert!(
            message.contains("\"old one\".type") && message.contains("mcpServers.asks.env.KEY"),
            "{message}"
        );
    }

    let report = pml(&bench, &["doctor", "--mcp-servers", file]);
    let seen = String::from_utf8_lossy(&report.stdout).into_owned();
    assert_eq!(report.status.code(), Some(1), "{seen}");
    for line in [
        "BROKEN  server old one: mcpServers.\"old one\".type",
        "BROKEN  server asks:",
        "ok      server everything:",
        "warning configuration: mcpServers.asks.alwaysAllow: ignored",
    ] {
        assert!(seen.contains(line), "{line} isn't in {seen}");
    }
}

#[test]
fn a_file_of_vs_code_is_read_with_its_inputs() {
    let bench = Workbench::new();
    let moody = program("moody_server.mjs");
    let file = bench.path().join("mcp.json");
    let text_of_file = format!(
        r#"{{
  // Asked once and kept by VS Code.
  "inputs": [{{"type": "promptString", "id": "api-key", "password": true}}],
  "servers": {{
    "moody": {{
      "type": "stdio", /* a program */
      "command": {}, "args": [{}],
      "env": {{"MOODY_TOKEN": "${{input:api-key}}", "PORT": 80}},
    }},
  }},
}}"#,
        json!(node()),
        json!(moody)
    );
    fs::write(&file, text_of_file).unwrap();
    let proxy = ProxySetup::new(&bench.database)
        .args(&["--mcp-servers", file.to_str().unwrap()])
        .env("INPUT_API_KEY", "a-secret-value")
        .start();
    for era in Era::BOTH {
        let agent = Agent::connect(&proxy.url, era);
        agent.has_tool("mcp__moody__environment");
        let environment: Value =
            serde_json::from_str(&text(&agent.call("mcp__moody__environment", json!({})))).expect("JSON");
        assert_eq!(
            (&environment["MOODY_TOKEN"], &environment["PORT"]),
            (&json!("a-secret-value"), &json!("80"))
        );
    }
}

#[test]
fn any_name_is_mapped_and_shown() {
    let bench = Workbench::new();
    let down = json!({"command": "false"});
    let proxy = bench.proxy(&json!({"12306-mcp": everything(), "brave search": down, "plain": everything()}));
    let told = "the server \\\"12306-mcp\\\" is called _12306_mcp_xa6d5ae79 in code and tools";
    assert!(proxy.log().iter().any(|line| line.contains(told)), "{:#?}", proxy.log());
    for era in Era::BOTH {
        let agent = Agent::connect(&proxy.url, era);
        let instructions = agent.instructions();
        assert!(instructions.contains("12306-mcp (_12306_mcp_xa6d5ae79)"), "{instructions}");
        agent.has_tool("mcp___12306_mcp_xa6d5ae79__echo");
        agent.has_tool("mcp__plain__echo");
        let tools = agent.tools();
        let pml = |name: &str| {
            let tool = tools.iter().find(|tool| tool.name == name).expect("a tool");
            (tool.title.clone(), tool.meta.as_ref().expect("_meta").0["pml"]["serverName"].clone())
        };
        // Its own title stays.
        assert_eq!(pml("mcp___12306_mcp_xa6d5ae79__echo").1, "12306-mcp");
        assert_eq!(pml("mcp__plain__echo").1, Value::Null);
        let echo = agent.call("mcp___12306_mcp_xa6d5ae79__echo", json!({"message": "hi"}));
        assert_eq!(text(&echo), "Echo: hi");
        let code = "return await mcp._12306_mcp_xa6d5ae79.echo({ message: args.message })";
        let answer = agent.ask("pml_execute", json!({"code": code, "args": {"message": format!("{era:?}")}}));
        assert_eq!(answer["result"], format!("Echo: {era:?}"));
        let code = "return await mcp.brave_search_xe60d6e96.web({})";
        let message = agent.failure("pml_execute", json!({"code": code}));
        assert!(message.contains("brave search (brave_search_xe60d6e96)"), "{message}");
    }
    drop(proxy);
    let file = servers_file(bench.path(), &json!({"12306-mcp": everything()}));
    let report = pml(&bench, &["doctor", "--mcp-servers", file.to_str().unwrap()]);
    let seen = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(seen.contains("ok      server 12306-mcp (_12306_mcp_xa6d5ae79): "), "{seen}");
    assert_eq!(report.status.code(), Some(0), "{seen}");
}

#[test]
fn excluded_tools_are_neither_listed_nor_called() {
    let bench = Workbench::new();
    let all = bench.proxy(&json!({"everything": everything()}));
    Agent::connect(&all.url, Era::Stateless).has_tool("mcp__everything__echo");
    drop(all);
    let mut server = everything();
    server["excludeTools"] = json!(["echo"]);
    let proxy = bench.proxy(&json!({"everything": server}));
    for era in Era::BOTH {
        let agent = Agent::connect(&proxy.url, era);
        agent.has_tool("mcp__everything__get-sum");
        // Postgres knows it from the first proxy.
        assert!(!agent.tool_names().contains(&"mcp__everything__echo".to_owned()));
        let code = "return await mcp.everything.echo({ message: 'hi' })";
        let message = agent.failure("pml_execute", json!({"code": code}));
        assert!(message.contains("excluded in the configuration"), "{message}");
    }
}

#[test]
fn servers_that_start_slowly_are_told_and_follow() {
    let bench = Workbench::new();
    let gate = bench.path().join("gate");
    let mut servers = json!({"quick": everything(), "no good": {"command": "false"}});
    for number in 1..=5 {
        servers[format!("slow_{number}")] = gated(&gate);
    }
    let proxy = bench.proxy(&servers);
    let agents = Era::BOTH.map(|era| Agent::connect(&proxy.url, era));
    let slow = json!((1..=5).map(|number| format!("slow_{number}")).collect::<Vec<_>>());
    for agent in &agents {
        assert!(agent.instructions().contains("quick, slow_1, slow_2"), "{}", agent.instructions());
        agent.has_tool("mcp__quick__echo");
        let told = eventually("what is unlisted", || {
            Some(agent.list_meta()).filter(|told| told["unavailable"].is_object())
        });
        assert_eq!(told["starting"], slow, "{told}");
        let reasons = told["unavailable"].as_object().unwrap();
        assert_eq!(reasons.len(), 1, "{told}");
        let (name, reason) = reasons.iter().next().unwrap();
        assert!(name.starts_with("no good (no_good_x") && !reason.as_str().unwrap().is_empty(), "{told}");
    }
    let slow = agents[0].failure("mcp__slow_1__echo", json!({"message": "hi"}));
    assert!(slow.contains("\"slow_1\" is still starting"), "{slow}");
    let told = agents[1].list_meta()["unavailable"].clone();
    let shown = told.as_object().and_then(|reasons| reasons.keys().next()).expect("a server");
    let identifier = shown.trim_start_matches("no good (").trim_end_matches(')');
    let down = agents[1].failure(&format!("mcp__{identifier}__echo"), json!({}));
    assert!(down.contains("unavailable: it exited with status 1"), "{down}");
    let before = agents.each_ref().map(Agent::list_changes);
    fs::write(&gate, "").unwrap();
    for (agent, before) in agents.iter().zip(before) {
        agent.hears_of_change(before);
        (1..=5).for_each(|number| agent.has_tool(&format!("mcp__slow_{number}__echo")));
        assert_eq!(agent.list_meta()["starting"], Value::Null);
    }
}
