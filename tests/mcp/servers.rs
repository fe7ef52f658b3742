//! Real MCP servers behind the proxy: listed, called, recorded, shared, killed and restarted.

use std::{fs, path::Path};

use pml_tests::{
    Ask,
    mcp::{Agent, Era, Proxy, Workbench, eventually, new_token, runtime, signal, text},
    peers::{folder, node, npm, program},
};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};

fn everything() -> Value {
    json!({"command": node(), "args": [npm("mcp-server-everything"), "stdio"]})
}

fn filesystem(folder: &Path) -> Value {
    json!({"command": node(), "args": [npm("mcp-server-filesystem"), folder]})
}

fn moody(folder: &Path) -> Value {
    json!({"command": node(), "args": [program("moody_server.mjs"), folder.join("journal")]})
}

/// The Node processes under a proxy that run this server.
fn processes(proxy: &Proxy, server: &str) -> Vec<u32> {
    let read = |pid: u32, file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let parent = |pid: u32| -> Option<u32> {
        // The name is in parentheses and may hold anything.
        read(pid, "stat").rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let under = |pid: u32| {
        std::iter::successors(Some(pid), |pid| parent(*pid)).take(20).any(|above| above == proxy.pid())
    };
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let command = read(*pid, "cmdline");
        let is_node = command.split('\0').next().is_some_and(|program| program.ends_with("node"));
        is_node && command.contains(server) && under(*pid)
    })
    .collect()
}

#[test]
fn a_server_s_tool_is_called_where_nobody_has_listed_tools() {
    let bench = Workbench::new();
    let proxy = bench.proxy(&json!({"everything": everything()}));
    for era in Era::BOTH {
        let (_, token) = new_token(&bench.database, &format!("org_{era:?}"), "ann");
        let agent = Agent::with_token(&proxy.url, era, &token);
        let echo = agent.call("mcp__everything__echo", json!({"message": "hi"}));
        assert_eq!(text(&echo), "Echo: hi", "{era:?}");
        let unknown = agent.failure("mcp__everything__none", json!({}));
        assert!(unknown.contains("Capability not found: everything:none"), "{unknown}");
    }
}

#[test]
fn the_first_code_of_a_project_has_the_types_of_the_tools_that_it_calls() {
    let bench = Workbench::new();
    let mut server = filesystem(bench.path());
    server["eager"] = json!(true);
    let proxy = bench.proxy(&json!({"filesystem": server}));
    eventually("the server is up", || {
        (proxy.metric("pml_server_up{server=\"filesystem\"}") == 1).then_some(())
    });
    for era in Era::BOTH {
        let (_, token) = new_token(&bench.database, &format!("org_{era:?}"), "ann");
        let agent = Agent::with_token(&proxy.url, era, &token);
        // Nobody has listed the tools of this project.
        let code = "return await mcp.filesystem.list_directory({ path: args.dir })";
        agent.ask("pml_execute", json!({"code": code, "name": "files:list", "args": {"dir": bench.path()}}));
        let parameters = agent.ask("cap_lookup", json!({"name": "files:list"}))["parameters"].clone();
        assert_eq!(parameters["properties"]["dir"]["type"], "string", "{era:?}: {parameters}");
        assert!(agent.failure("mcp__files__list", json!({"dir": 1})).contains("dir"), "{era:?}");
    }
}

#[test]
fn code_starts_only_the_servers_that_it_names_and_runs_without_one_that_fails() {
    let bench = Workbench::new();
    let silent = json!({"command": "sleep", "args": ["1000"], "startupTimeout": 0.5});
    let proxy = bench.proxy(&json!({"moody": moody(bench.path()), "silent": silent}));
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let run = |code: &str| agent.ask("pml_execute", json!({"code": code}))["result"].clone();
    let is_started = || bench.path().join("journal").exists();
    assert_eq!(run("return 1"), 1);
    assert!(!is_started());
    let caught = run("try { await mcp.silent.any({}) } catch (e) { return e.message }");
    assert!(caught.as_str().is_some_and(|message| message.contains("\"silent\" is down")), "{caught}");
    assert!(!is_started());
    assert_eq!(run("return await mcp.moody.complain({ lines: 0 })"), "complained");
    assert!(is_started());
}

#[test]
fn tools_of_servers_stand_beside_capabilities_and_are_recorded_alike() {
    let bench = Workbench::new();
    let hello = bench.path().join("hello.txt");
    fs::write(&hello, "hello from a file").unwrap();
    let proxy = bench.proxy(&json!({"everything": everything(), "filesystem": filesystem(bench.path())}));
    let mut sql = bench.database.connect();
    for era in Era::BOTH {
        let agent = Agent::connect(&proxy.url, era);
        sql.batch_execute("TRUNCATE pml.tool_usage").unwrap();
        let code = format!(
            "const read = await mcp.filesystem.read_text_file({{path: args.path}}); return {{era: '{era:?}', read}}"
        );
        let name = format!("files:read_{era:?}");
        let answer = agent.ask("pml_execute", json!({"code": code, "name": name, "args": {"path": hello}}));
        assert_eq!(answer["result"]["read"]["content"], "hello from a file", "{answer}");
        let capability = format!("mcp__files__read_{era:?}");
        agent.has_tool("mcp__everything__echo");
        let tools = agent.tools();
        for expected in ["mcp__everything__echo", "mcp__filesystem__read_text_file", &capability] {
            let tool = tools.iter().find(|tool| tool.name == expected);
            let tool = tool.unwrap_or_else(|| panic!("{expected} isn't listed"));
            assert_eq!(tool.input_schema["type"], "object", "{expected}");
        }
        let echo = agent.call("mcp__everything__echo", json!({"message": "hi"}));
        assert_eq!(text(&echo), "Echo: hi");
        let read = agent.call("mcp__filesystem__read_text_file", json!({"path": hello}));
        assert_eq!(text(&read), "hello from a file");
        assert_eq!(agent.ask(&capability, json!({"path": hello}))["read"]["content"], "hello from a file");
        let outside = agent.failure("mcp__filesystem__read_text_file", json!({"path": "/etc/passwd"}));
        assert!(outside.to_lowercase().contains("denied"), "{outside}");

        let used = "SELECT concat_ws(' ', server_id, tool_id, success, count(*)) FROM pml.tool_usage \
                    GROUP BY server_id, tool_id, success ORDER BY 1";
        let expected = [
            "everything everything:echo t 1".to_owned(),
            "filesystem filesystem:read_text_file f 1".to_owned(),
            "filesystem filesystem:read_text_file t 3".to_owned(),
            format!("pml-capabilities {name} t 2"),
        ];
        // The statistics of a tool are written after its answer.
        eventually("all uses are recorded", || {
            (sql.number("SELECT count(*) FROM pml.tool_usage") >= 7).then_some(())
        });
        assert_eq!(sql.texts(used), expected);
    }
    let schemas = "SELECT concat_ws(' ', server_id, name, tool_name, input_schema -> 'required') \
                   FROM pml.tool_schema WHERE tool_id IN ('everything:echo', 'filesystem:read_text_file') ORDER BY 1";
    let expected = [
        r#"everything echo mcp__everything__echo ["message"]"#,
        r#"filesystem read_text_file mcp__filesystem__read_text_file ["path"]"#,
    ];
    assert_eq!(sql.texts(schemas), expected);
}

/// What the server itself answers to `tools/list`, by the names of the tools.
fn listed_by(server: &Value) -> Vec<(String, Value)> {
    let mut command = tokio::process::Command::new(server["command"].as_str().expect("a command"));
    command.args(server["args"].as_array().expect("a list").iter().filter_map(Value::as_str));
    let transport = {
        let _guard = runtime().enter();
        TokioChildProcess::new(command).expect("the server starts")
    };
    let agent = Agent::over(transport, Era::Sessions).expect("a connection");
    let tools = agent.tools();
    agent.close();
    tools.into_iter().map(|tool| (tool.name.to_string(), json!(tool))).collect()
}

#[test]
fn a_servers_tools_are_listed_as_the_server_has_them() {
    let bench = Workbench::new();
    let time =
        json!({"command": folder().join("servers/bin/mcp-server-time"), "args": ["--local-timezone", "UTC"]});
    let servers = json!({"everything": everything(), "filesystem": filesystem(bench.path()), "time": time});
    let proxy = bench.proxy(&servers);
    for era in Era::BOTH {
        let agent = Agent::connect(&proxy.url, era);
        ["everything__echo", "filesystem__read_file", "time__convert_time"]
            .iter()
            .for_each(|tool| agent.has_tool(&format!("mcp__{tool}")));
        let ours = agent.tools();
        let (mut annotated, mut titled, mut with_output) = (0, 0, 0);
        for (server, entry) in servers.as_object().expect("an object") {
            for (name, mut theirs) in listed_by(entry) {
                let name = format!("mcp__{server}__{name}");
                let found = ours.iter().find(|tool| tool.name == name);
                let mut ours = json!(found.unwrap_or_else(|| panic!("{name} isn't listed")));
                annotated += usize::from(theirs["annotations"].is_object());
                titled += usize::from(theirs["title"].is_string());
                with_output += usize::from(theirs["outputSchema"].is_object());
                // What is ours: the name, a title where there is none, and a key in `_meta`.
                theirs["name"] = json!(name);
                let meta = ours["_meta"].as_object_mut().expect("_meta");
                assert_eq!(meta.remove("pml").expect("our key")["server"], *server);
                if meta.is_empty() {
                    ours.as_object_mut().expect("an object").remove("_meta");
                }
                if theirs["title"].is_null() {
                    theirs["title"] = ours["title"].clone();
                }
                assert_eq!(ours, theirs, "{name}");
                // The proxy speaks the newer version with this server, which then lists them in another order.
                if server != "time" {
                    let text =
                        |tool: &Value| [&tool["inputSchema"], &tool["outputSchema"]].map(Value::to_string);
                    assert_eq!(text(&ours), text(&theirs), "{name}");
                }
            }
        }
        assert!(annotated > 0 && titled > 0 && with_output > 0, "{annotated} {titled} {with_output}");
    }
}

#[test]
fn a_tool_is_asked_of_its_own_server_only() {
    let bench = Workbench::new();
    fs::write(bench.path().join("hello.txt"), "hello").unwrap();
    let proxy = bench.proxy(&json!({"everything": everything(), "filesystem": filesystem(bench.path())}));
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    agent.has_tool("mcp__everything__echo");
    agent.has_tool("mcp__filesystem__read_text_file");
    let unknown = agent.failure("mcp__everything__read_text_file", json!({}));
    assert!(unknown.contains("Capability not found"), "{unknown}");
    let path = bench.path().join("hello.txt");
    let code = "return await mcp.everything.read_text_file({path: args.path})";
    let message = agent.failure("pml_execute", json!({"code": code, "args": {"path": path}}));
    assert!(message.contains("read_text_file") && !message.contains("hello\""), "{message}");
    let message =
        agent.failure("pml_execute", json!({"code": "return await mcp.nowhere.echo({message: 'x'})"}));
    assert!(message.contains("nowhere"), "{message}");
}

#[test]
fn what_is_found_are_tools_of_this_proxys_servers() {
    let bench = Workbench::new();
    let with = bench.proxy(&json!({"everything": everything()}));
    let without = bench.proxy(&json!({}));
    Agent::connect(&with.url, Era::Stateless).has_tool("mcp__everything__echo");
    let ask = |proxy: &Proxy| {
        let agent = Agent::connect(&proxy.url, Era::Stateless);
        let listed = agent.tool_names().contains(&"mcp__everything__echo".to_owned());
        let found = agent.ask("pml_discover", json!({"intent": "echo"})).to_string();
        let suggested = agent.ask("pml_execute", json!({"intent": "echo"})).to_string();
        (listed, found.contains("everything:echo"), suggested.contains("everything:echo"))
    };
    assert_eq!(ask(&with), (true, true, true));
    assert_eq!(ask(&without), (false, false, false));
}

#[test]
fn however_many_clients_a_proxy_has_one_process_of_each_server() {
    let bench = Workbench::new();
    let servers = json!({"everything": everything(), "filesystem": filesystem(bench.path())});
    let proxies = [bench.proxy(&servers), bench.proxy(&servers)];
    let agents: Vec<Agent> = proxies
        .iter()
        .flat_map(|proxy| {
            [Era::Sessions, Era::Sessions, Era::Stateless].map(|era| Agent::connect(&proxy.url, era))
        })
        .collect();
    let asked: Vec<_> = agents
        .iter()
        .flat_map(|agent| {
            agent.has_tool("mcp__everything__echo");
            agent.has_tool("mcp__filesystem__list_directory");
            let folder = json!({"path": bench.path()});
            [
                agent.start_call("mcp__everything__echo", json!({"message": "hi"})),
                agent.start_call("mcp__filesystem__list_directory", folder),
            ]
        })
        .collect();
    for answer in asked {
        let answer = serde_json::to_value(runtime().block_on(answer.await_response()).unwrap()).unwrap();
        assert_ne!(answer["isError"], true, "{answer}");
    }
    for proxy in &proxies {
        assert_eq!(processes(proxy, "mcp-server-everything").len(), 1);
        assert_eq!(processes(proxy, "mcp-server-filesystem").len(), 1);
    }
}

#[test]
fn a_server_killed_with_9_keeps_its_tools_and_comes_back() {
    let bench = Workbench::new();
    let broken = bench.path().join("broken");
    // While the file is there, the server doesn't start.
    let script = r#"test ! -e "$1" || { echo "not today" >&2; exit 3; }; exec "$2" "$3" stdio"#;
    let args = json!(["-c", script, "sh", broken, node(), npm("mcp-server-everything")]);
    let proxy = bench.proxy(&json!({"everything": {"command": "sh", "args": args}}));
    let agent = Agent::connect(&proxy.url, Era::Sessions);
    agent.has_tool("mcp__everything__echo");
    let listed = agent.tool_names();
    let long = json!({"duration": 1000, "steps": 10_000});
    let running = agent.start_call("mcp__everything__trigger-long-running-operation", long);
    eventually("the call is under way", || (!agent.progress().is_empty()).then_some(()));
    fs::write(&broken, "").unwrap();
    let [pid] = processes(&proxy, "mcp-server-everything")[..] else { panic!("one process") };
    signal(pid, "9");
    let lost = serde_json::to_value(runtime().block_on(running.await_response()).unwrap()).unwrap();
    assert_eq!(lost["isError"], true, "{lost}");
    assert!(lost.to_string().contains("was killed (SIGKILL)"), "{lost}");
    let hi = json!({"message": "hi"});
    // During a restart there is no next attempt.
    let message = eventually("it can't be started again", || {
        let message = agent.failure("mcp__everything__echo", hi.clone());
        (message.contains("not today") && message.contains("the next attempt is in")).then_some(message)
    });
    assert!(message.contains("\"everything\" is down"), "{message}");
    let from_code =
        agent.failure("pml_execute", json!({"code": "return await mcp.everything.echo({message: 'hi'})"}));
    assert!(from_code.contains("is down"), "{from_code}");
    assert_eq!(agent.tool_names(), listed);
    fs::remove_file(&broken).unwrap();
    let echo = eventually("it is back", || {
        let result = agent.call("mcp__everything__echo", hi.clone());
        (result.is_error != Some(true)).then_some(result)
    });
    assert_eq!(text(&echo), "Echo: hi");
}

#[test]
fn a_servers_changed_list_reaches_the_clients() {
    let bench = Workbench::new();
    let proxy = bench.proxy(&json!({"moody": moody(bench.path())}));
    let agents = Era::BOTH.map(|era| Agent::connect(&proxy.url, era));
    agents.iter().for_each(|agent| agent.has_tool("mcp__moody__add_tools"));
    for (number, agent) in agents.iter().enumerate() {
        let new = format!("mcp__moody__new_{number}");
        for agent in &agents {
            assert!(!agent.tool_names().contains(&new));
        }
        let before = agents.each_ref().map(Agent::list_changes);
        agent.call("mcp__moody__add_tools", json!({"names": [format!("new_{number}")]}));
        for (agent, before) in agents.iter().zip(before) {
            agent.hears_of_change(before);
            eventually("the new tool", || agent.tool_names().contains(&new).then_some(()));
        }
    }
}

#[test]
fn a_tools_own_progress_arrives_also_after_a_long_silence() {
    let bench = Workbench::new();
    let proxy = bench.proxy(&json!({"moody": moody(bench.path())}));
    for era in Era::BOTH {
        let agent = Agent::connect(&proxy.url, era);
        agent.has_tool("mcp__moody__late");
        let proceed = bench.path().join(format!("{era:?}"));
        let running = agent.start_call("mcp__moody__late", json!({"file": proceed}));
        // The proxy reports for a tool without progress.
        eventually("signs of life", || (agent.progress().len() >= 2).then_some(()));
        fs::write(&proceed, "").unwrap();
        runtime().block_on(running.await_response()).unwrap();
        let own = eventually("all of its progress", || {
            let heard = agent.progress();
            let (own, signs): (Vec<_>, Vec<_>) = heard.into_iter().partition(|step| step.total.is_some());
            assert!(signs.iter().all(|step| step.progress < 0.0), "below all of the tool's: {signs:?}");
            (own.len() >= 4).then_some(own)
        });
        // This client handles notifications concurrently, so their order says nothing.
        let mut own: Vec<f64> = own.iter().map(|step| step.progress).collect();
        own.sort_by(f64::total_cmp);
        assert_eq!(own, [0.0, 1.0, 2.0, 3.0], "{era:?}");
    }
}
