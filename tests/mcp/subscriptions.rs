//! Subscriptions to resources of servers behind the proxy: of each client only its own, kept when a server restarts.

use pml_tests::mcp::{Agent, Era, eventually, new_token};
use serde_json::json;

use crate::resources::{Library, error};

fn hears(agent: &Agent, uri: &str, times: usize) {
    eventually(&format!("{times} updates of {uri}"), || {
        (agent.updates().iter().filter(|updated| *updated == uri).count() >= times).then_some(())
    });
}

#[test]
fn updates_go_to_subscribers_only() {
    let library = Library::of_three();
    let (_, token) = new_token(&library.database, "elsewhere", "mallory");
    for (server, other) in [("a", "b"), ("newer", "a")] {
        let uri = format!("pml://{server}/shelf://book/one");
        for era in Era::BOTH {
            let [first, second] = [library.agent(era), library.agent(era)];
            let stranger = Agent::with_token(&library.proxy.url, era, &token);
            first.has_resource(&uri);
            first.subscribe(&uri);
            stranger.subscribe("pml://b/shelf://book/one");
            let update = |server: &str, own: &str| {
                first.call(&format!("mcp__{server}__update"), json!({"uri": own}));
            };
            let before = first.updates().len();
            // The same URI at another server, another one at the same.
            update(other, "shelf://book/one");
            update(server, "shelf://book/two");
            update(server, "shelf://book/one");
            hears(&first, &uri, 1);
            assert!(first.updates()[before..].iter().all(|updated| *updated == uri), "{:?}", first.updates());
            assert!(second.updates().is_empty(), "{:?}", second.updates());
            second.subscribe(&uri);
            let heard = first.updates().len();
            update(server, "shelf://book/one");
            hears(&second, &uri, 1);
            hears(&first, &uri, heard + 1);
            second.unsubscribe(&uri);
            // The other one's subscription stays. Updates are in order: one of the later would come after one of these.
            let heard = first.updates().len();
            update(server, "shelf://book/one");
            hears(&first, &uri, heard + 1);
            assert!(!stranger.updates().contains(&uri), "{:?}", stranger.updates());
            first.unsubscribe(&uri);
        }
    }
    eventually("the server's own subscription ends", || {
        library.journal("a").lines().any(|line| line == "unsubscribe shelf://book/one").then_some(())
    });
}

#[test]
fn a_session_that_ends_leaves_no_subscription() {
    let library = Library::of_three();
    for (number, era) in Era::BOTH.into_iter().enumerate() {
        let agent = library.agent(era);
        agent.has_resource("pml://a/shelf://book/two");
        agent.subscribe("pml://a/shelf://book/two");
        agent.close();
        let ends =
            || library.journal("a").lines().filter(|line| *line == "unsubscribe shelf://book/two").count();
        eventually("it ends at the server", || (ends() > number).then_some(()));
    }
}

#[test]
fn subscriptions_outlive_the_server() {
    let library = Library::of_three();
    let agents = Era::BOTH.map(|era| library.agent(era));
    let uri = "pml://a/shelf://book/three";
    for agent in &agents {
        agent.has_resource(uri);
        agent.subscribe(uri);
    }
    agents[0].failure("mcp__a__die", json!({}));
    // They may have missed one.
    agents.iter().for_each(|agent| hears(agent, uri, 1));
    let heard = agents.each_ref().map(|agent| agent.updates().len());
    agents[0].call("mcp__a__update", json!({"uri": "shelf://book/three"}));
    for (agent, heard) in agents.iter().zip(heard) {
        hears(agent, uri, heard + 1);
    }
}

#[test]
fn a_part_of_a_resource_and_refused_subscriptions() {
    let library = Library::of_three();
    let agent = library.agent(Era::Sessions);
    agent.has_resource("pml://a/shelf://book/one");
    agent.subscribe("pml://a/shelf://book");
    agent.call("mcp__a__update", json!({"uri": "shelf://book/one"}));
    hears(&agent, "pml://a/shelf://book/one", 1);
    let (code, message, data) = error(agent.try_subscribe("pml://a/shelf://forbidden"));
    assert_eq!((code, data), (-32050, json!({"uri": "pml://a/shelf://forbidden"})), "{message}");
    assert_eq!(error(agent.try_subscribe("other://none")).0, -32002);
    let stateless = library.agent(Era::Stateless);
    assert!(stateless.try_subscribe("other://none").is_err(), "it isn't acknowledged");
}
