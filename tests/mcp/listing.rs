//! tools/list: its content, and that everything in it can be called.

use pml_tests::{
    Database,
    mcp::{Agent, Era, Proxy, ProxySetup, text},
};
use serde_json::json;

const BUILT_IN: [&str; 10] = [
    "pml_execute",
    "pml_discover",
    "pml_get_task_result",
    "cap_lookup",
    "cap_list",
    "cap_rename",
    "cap_whois",
    "cap_history",
    "cap_fork",
    "cap_merge",
];

#[test]
fn the_built_in_tools_are_there_in_both_eras() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    for era in Era::BOTH {
        let tools = Agent::connect(&proxy.url, era).tools();
        assert_eq!(tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>(), BUILT_IN);
        for tool in tools {
            assert!(tool.description.as_deref().is_some_and(|text| text.len() > 40), "{}", tool.name);
            assert!(tool.annotations.is_some() && tool.input_schema["type"] == "object", "{}", tool.name);
        }
    }
}

#[test]
fn every_listed_name_is_callable() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let mut client = database.connect();
    let long = format!("long:{}", "x".repeat(123));
    let names = [
        "plain:name",
        "With-Hyphen:And_Capital",
        "many:colons:in:it",
        "no_colon",
        "a:b-c",
        "a:b_c",
        "A:b_c",
        &long,
    ];
    for (number, name) in names.iter().enumerate() {
        let code = format!("return {number}");
        let query = "SELECT pml_register($1, name => $2, visibility => 'project')";
        client.execute(query, &[&code, name]).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    }
    let listed: Vec<_> =
        agent.tools().into_iter().filter(|tool| !BUILT_IN.contains(&tool.name.as_ref())).collect();
    assert_eq!(listed.len(), names.len());
    for tool in listed {
        assert!(
            tool.name.len() <= 64
                && tool.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        );
        let name = tool.title.clone().unwrap();
        let number = names.iter().position(|given| *given == name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(text(&agent.call(&tool.name, json!({}))), number.to_string(), "{}", tool.name);
        let meta = serde_json::to_value(tool.meta.unwrap()).unwrap();
        assert!(meta["pml"]["fqdn"].is_string(), "{meta}");
    }
}

#[test]
fn the_cap_tools_answer_in_both_spellings() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Sessions);
    agent.ask("pml_execute", json!({"code": "return 1", "name": "num:one"}));
    for tool in ["cap_lookup", "cap:lookup", "cap_whois", "cap:whois", "cap_history"] {
        let result = agent.call(tool, json!({"name": "num:one"}));
        assert_ne!(result.is_error, Some(true), "{tool}: {}", text(&result));
        assert!(!text(&result).contains("local.default."), "{tool}: {}", text(&result));
    }
    agent.ask("cap_rename", json!({"name": "num:one", "new_name": "num:uno"}));
    assert!(agent.tool_names().contains(&"mcp__num__uno".to_owned()));
    // The old name still works; the answer and the log warn once.
    let answer = text(&agent.call("mcp__num__one", json!({})));
    let warning = "Warning: Deprecated: using alias \"num:one\" for capability \"num:uno\"";
    assert_eq!(answer, format!("1\n{warning}"));
    assert!(proxy.log().iter().any(|line| line.contains("Deprecated: using alias")), "{:#?}", proxy.log());
    agent.ask("cap_fork", json!({"source": "num:uno", "name": "num:copy"}));
    assert!(agent.ask("cap_list", json!({"pattern": "num:*"})).to_string().contains("num:copy"));
    let message = agent.failure("cap_lookup", json!({"name": "num:none"}));
    assert!(message.contains("not found"), "{message}");
    let message = agent.failure("cap_lookup", json!({"nonsense": 1}));
    assert!(message.contains("nonsense"), "{message}");
}

#[test]
fn of_many_capabilities_the_most_used_are_listed_and_all_are_found() {
    let database = Database::new();
    let mut client = database.connect();
    client
        .batch_execute(
            "SELECT pml_register('return ' || i, 'many:n' || i, visibility => 'project') FROM generate_series(1, 5) AS i;
             SELECT pml_register('return 4'); SELECT pml_register('return 2'); SELECT pml_register('return 2')",
        )
        .unwrap();
    database.create_role("proxy", &["pml_proxy"]);
    let proxy = ProxySetup::new(&database).args(&["--list-limit", "2"]).start();
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let listed: Vec<_> = agent
        .tools()
        .into_iter()
        .filter_map(|tool| tool.title)
        .filter(|name| name.starts_with("many:"))
        .collect();
    assert_eq!(listed, ["many:n2", "many:n4"]);
    assert_eq!(text(&agent.call("mcp__many__n5", json!({}))), "5", "what isn't listed can be called");
}
