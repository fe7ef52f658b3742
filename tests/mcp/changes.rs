//! notifications/tools/list_changed: to all clients of the scope, of both eras, whoever made the change.

use pml_tests::{
    Database,
    mcp::{Agent, Era, Proxy, ProxySetup},
};
use serde_json::json;

#[test]
fn a_change_in_psql_reaches_every_client_of_every_proxy() {
    let database = Database::new();
    let one = Proxy::start(&database);
    let other = ProxySetup::new(&database).start();
    one.is_ready();
    other.is_ready();
    let agents: Vec<Agent> = [&one, &other]
        .into_iter()
        .flat_map(|proxy| Era::BOTH.map(|era| Agent::connect(&proxy.url, era)))
        .collect();
    for agent in &agents {
        assert!(!agent.tool_names().contains(&"mcp__made__by_hand".to_owned()));
    }
    let before: Vec<usize> = agents.iter().map(Agent::list_changes).collect();
    let mut client = database.connect();
    client
        .execute("SELECT pml_register('return 1', name => 'made:by_hand', visibility => 'project')", &[])
        .unwrap();
    for (agent, before) in agents.iter().zip(before) {
        agent.hears_of_change(before);
        assert!(agent.tool_names().contains(&"mcp__made__by_hand".to_owned()));
    }
    // What one agent renames, the others are notified of.
    let before: Vec<usize> = agents.iter().map(Agent::list_changes).collect();
    agents[0].ask("cap_rename", json!({"name": "made:by_hand", "new_name": "made:by_agent"}));
    for (agent, before) in agents.iter().zip(before) {
        agent.hears_of_change(before);
    }
}

#[test]
fn other_scopes_hear_nothing() {
    let database = Database::new();
    let here = Proxy::start(&database);
    let there = ProxySetup::new(&database).args(&["--project", "elsewhere"]).start();
    here.is_ready();
    there.is_ready();
    for era in Era::BOTH {
        let (near, far) = (Agent::connect(&here.url, era), Agent::connect(&there.url, era));
        near.tools();
        far.tools();
        let (near_before, far_before) = (near.list_changes(), far.list_changes());
        let code = format!("return {:?}", format!("{era:?}"));
        near.ask("pml_execute", json!({"code": code, "name": format!("era:{era:?}")}));
        near.hears_of_change(near_before);
        // Notifications are in order: once a later one for the other scope has arrived, an earlier one would have too.
        far.ask("pml_execute", json!({"code": code, "name": format!("era:{era:?}")}));
        far.hears_of_change(far_before);
        assert_eq!(far.list_changes(), far_before + 1, "{era:?}");
    }
}
