//! Errors speak the reader's language: what an agent is told names tools that it has, never SQL.

use std::time::{Duration, Instant};

use pml_tests::{
    Ask, Database,
    mcp::{Agent, Era, Proxy, new_token},
};
use serde_json::{Value, json};

const TOOLS: [&str; 3] = ["pml_execute", "pml_discover", "pml_get_task_result"];

/// What an agent can't use: a function that is no tool, a statement, a setting.
fn speaks_sql(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.contains("SELECT ")
        || ["pml.org", "pml.project", "_ttl"].iter().any(|setting| text.contains(setting))
        || text.split(|c| !is_word(c)).any(|word| word.starts_with("pml_") && !TOOLS.contains(&word))
}

#[test]
fn sql_is_recognised() {
    for text in ["change it with pml_update.", "SELECT pml_execute", "scope (pml.org)", "pml_list()"] {
        assert!(speaks_sql(text), "{text}");
    }
    assert!(!speaks_sql("pml_execute needs \"code\"; cap_list shows what there is. pml-capabilities"));
}

#[test]
fn no_error_names_what_an_agent_cannot_call() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute(
        r#"SELECT pml_register_tools('filesystem', '[{"name": "read_text_file"}]');
           SELECT pml_register_server('mine', visibility => 'public');
           SET pml.actor = 'proxy';
           SELECT pml_register('return 1', 'p:one'); SELECT pml_register('return { n: 2 }', 'p:two', visibility => 'public');
           SELECT pml_register('return args.n', 'p:three', visibility => 'project');
           SELECT pml_register('return 4', 'p:former'); SELECT pml_rename('p:former', 'p:now');
           SELECT pml_register('return 5', 'p:gone'); SELECT pml_delete('p:gone');
           SELECT pml_register('return 6', 'p:hidden');
           SELECT pml_merge(ARRAY['p:two', 'p:three'], 'p:pipe');
           UPDATE pml.capability_records SET visibility = 'project' WHERE visibility = 'private' AND deleted_at IS NULL AND display_name <> 'p:hidden'"#,
    )
    .unwrap();
    let (_, own) = new_token(&database, "local", "ada");
    let (_, foreign) = new_token(&database, "other", "bob");
    let proxy = Proxy::start(&database);
    let [ada, bob] = [own, foreign].map(|token| Agent::with_token(&proxy.url, Era::Stateless, &token));
    let unknown = "00000000-0000-4000-8000-000000000000";
    let mut calls: Vec<(&Agent, &str, Value)> = Vec::new();
    for spec in [
        "zz:nothing",
        "cap:zz:nothing",
        "p:oone",
        "p:one@v9",
        "p:one@v9.9.9",
        "p:one@nonsense",
        "p:one@2001-01-01",
        "",
        "a b",
        "local.default:zz:nothing",
        "local.default.zz.nothing.abcd",
        "mcp:nothing",
        "mcp__zz__nothing",
        "p:hidden",
        "p:gone",
        "filesystem:read_text_file",
        "mcp__filesystem__read_text_file",
        "mcp:mine@v9",
    ] {
        for tool in ["cap_lookup", "cap_whois", "cap_history"] {
            calls.push((&ada, tool, json!({"name": spec})));
        }
        calls.push((&ada, "cap_rename", json!({"name": spec, "description": "x"})));
        calls.push((&ada, "cap_fork", json!({"source": spec, "name": "new:copy"})));
        calls.push((&ada, "cap_merge", json!({"sources": [spec, "p:two"], "name": "new:pipe"})));
        calls.push((&ada, "pml_execute", json!({"capability": spec})));
    }
    for (place, name) in [
        "p:one",
        "p:two",
        "p:former",
        "p:gone",
        "p:hidden",
        "filesystem:read_text_file",
        "filesystem:readTextFile",
        "mcp:foo",
        "mcp:mine",
        "a b",
        "unnamed_12345678",
        "",
    ]
    .iter()
    .enumerate()
    {
        calls.push((&ada, "pml_execute", json!({"code": format!("return 'new {place}'"), "name": name})));
        calls.push((&ada, "pml_execute", json!({"code": "return { n: 2 }", "name": format!("other{name}")})));
        calls.push((&ada, "cap_rename", json!({"name": "p:three", "new_name": name})));
        calls.push((&ada, "cap_fork", json!({"source": "p:three", "name": name})));
        calls.push((&ada, "cap_merge", json!({"sources": ["p:two", "p:three"], "name": name, "code": format!("return 'merged {place}'")})));
    }
    calls.extend([
        (&ada, "cap_merge", json!({"sources": ["p:two", "p:three"], "name": "p:other"})),
        (&ada, "cap_merge", json!({"sources": ["p:two"], "name": "p:other"})),
        (&ada, "cap_merge", json!({"sources": ["p:two", "mcp:mine"], "name": "p:other"})),
        (&ada, "cap_merge", json!({"sources": ["p:two", "p:three"], "name": "p:other", "code": "return ("})),
        (&ada, "cap_rename", json!({"name": "p:one", "visibility": "private"})),
        (&ada, "cap_rename", json!({"name": "p:one", "visibility": "nonsense"})),
        (&ada, "cap_rename", json!({"name": "mcp:mine", "new_name": "p:server"})),
        (&ada, "cap_rename", json!({"name": "mcp:mine", "visibility": "private"})),
        (&bob, "cap_rename", json!({"name": "local.default:p:two", "new_name": "p:mine"})),
        (&bob, "cap_rename", json!({"name": "local.default:p:two", "description": "mine"})),
        (&ada, "cap_list", json!({"limit": 501})),
        (&ada, "cap_list", json!({"named_only": true, "unnamed_only": true})),
        (&ada, "cap_list", json!({"sort_by": "nonsense"})),
        (&ada, "pml_discover", json!({"intent": "x", "limit": 0})),
        (&ada, "pml_discover", json!({"intent": "x", "type": "nonsense"})),
        (&ada, "pml_get_task_result", json!({"workflow_id": unknown, "task_id": "t1"})),
        (&ada, "pml_get_task_result", json!({"workflow_id": "nonsense", "task_id": "t1"})),
        (&ada, "pml_execute", json!({"capability": "mcp:mine"})),
        (&ada, "pml_execute", json!({"capability": "p:one", "capabilityId": "p:two"})),
        (&ada, "pml_execute", json!({"capability": "p:one", "code": "return 1"})),
        (&ada, "pml_execute", json!({"code": "return await mcp.p.self({})", "name": "p:self"})),
        (&ada, "pml_execute", json!({"code": "return ("})),
        (&ada, "pml_execute", json!({"code": "return await mcp.zz.nothing({})"})),
        (&ada, "pml_execute", json!({"code": "return await capabilities['zz:nothing']({})"})),
        (&ada, "pml_execute", json!({"source": {"type": "nonsense"}})),
        (&ada, "pml_execute", json!({"source": {"type": "code"}})),
        (&ada, "pml_execute", json!({"source": {"type": "tool"}})),
        (&ada, "pml_execute", json!({})),
    ]);
    // Runs of which only the state is left.
    let run = ada.ask("pml_execute", json!({"code": "return 'expired'"}));
    let id = run["workflowId"].as_str().unwrap();
    db.batch_execute("DELETE FROM pml.task_results; UPDATE pml.execution_trace SET executed_at = now() - interval '2 hours'").unwrap();
    calls.push((&ada, "pml_get_task_result", json!({"workflow_id": id, "task_id": "result"})));
    let mut told = Vec::new();
    for (agent, tool, arguments) in calls {
        let shown = arguments.to_string();
        let Ok(answer) = agent.try_call(tool, arguments) else { continue };
        let seen = format!(
            "{} {}",
            serde_json::to_string(&answer.content).unwrap(),
            answer.structured_content.unwrap_or_default()
        );
        if speaks_sql(&seen) {
            told.push(format!("{tool} {shown}: {seen}"));
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
    // In SQL the same errors speak SQL.
    for (statement, hint) in [
        ("SELECT pml_register('return 99', 'p:two')", "pml_update"),
        ("SELECT pml_resolve('zz:nothing')", "pml_list()"),
        ("SELECT pml_task_result(gen_random_uuid(), 't1')", "pml_begin"),
    ] {
        let error = db.refusal(statement);
        assert!(error.hint().unwrap().contains(hint), "{error:?}");
    }
}

#[test]
fn a_servers_tool_that_is_called_as_a_capability_is_shown_as_what_it_is() {
    let database = Database::new();
    database
        .connect()
        .batch_execute(
            r#"SELECT pml_register_tools('filesystem', '[{"name": "read_text_file"}]');
               SELECT pml_register('return 1', 'filesystem:read_text_fil')"#,
        )
        .unwrap();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    for spec in ["filesystem:read_text_file", "filesystem:readTextFile", "cap:filesystem:read_text_file"] {
        for (tool, arguments) in
            [("pml_execute", json!({"capability": spec})), ("cap_lookup", json!({"name": spec}))]
        {
            let told = agent.failure(tool, arguments);
            for part in [
                "not found",
                "a tool of the server \"filesystem\"",
                "mcp__filesystem__read_text_file",
                "mcp.filesystem.read_text_file(",
            ] {
                assert!(told.contains(part), "{tool} {spec}: {told}");
            }
        }
    }
    let both = agent.failure("pml_execute", json!({"capability": "a:b", "capabilityId": "a:c"}));
    assert!(both.contains("Give either \"capability\" or \"capabilityId\", not both"), "{both}");
}

#[test]
fn a_built_in_tool_does_not_wait_for_progress_that_it_never_reports() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let fastest = (0..10).map(|_| {
        let started = Instant::now();
        agent.ask("cap_list", json!({}));
        started.elapsed()
    });
    // All would wait for half a second.
    assert!(fastest.min().unwrap() < Duration::from_millis(400));
}
