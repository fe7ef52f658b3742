//! Subscriptions to resources of servers behind the proxy: of each client only its own, kept when a server restarts.

use pml_tests::mcp::{Agent, Era, eventually, new_token};
use serde_json::json;

use crate::{
    questions::Everything,
    resources::{Library, error},
};

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
            if era == Era::Stateless {
                // The one that a stream begins with.
                hears(&second, &uri, 1);
            }
            let [heard, heard_by_second] = [&first, &second].map(|agent| agent.updates().len());
            update(server, "shelf://book/one");
            hears(&second, &uri, heard_by_second + 1);
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
    // By the listed URI, also what was subscribed to by the server's own.
    agent.call("mcp__b__put", json!({"name": "only"}));
    agent.has_resource("pml://b/shelf://book/only");
    agent.subscribe("shelf://book/only");
    agent.unsubscribe("pml://b/shelf://book/only");
    eventually("it ends at the server", || {
        library.journal("b").lines().any(|line| line == "unsubscribe shelf://book/only").then_some(())
    });
    let stateless = library.agent(Era::Stateless);
    assert!(stateless.try_subscribe("other://none").is_err(), "it isn't acknowledged");
}

#[test]
fn a_server_behind_http() {
    let server = Everything::start();
    let url = format!("http://127.0.0.1:{}/mcp", server.1);
    let library = Library::new(|_| json!({"web": {"type": "http", "url": url}}));
    let agents = Era::BOTH.map(|era| library.agent(era));
    let uri = "pml://web/demo://resource/dynamic/text/7";
    for agent in &agents {
        agent.has_tool("mcp__web__get-resource-links");
        // Twice: the second call of a client with a session takes the fast path.
        for _ in 0..2 {
            let result = json!(agent.call("mcp__web__get-resource-links", json!({"count": 2})));
            let links = result["content"]
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(|block| block["uri"].as_str());
            let links: Vec<&str> = links.collect();
            assert_eq!(links.len(), 2, "{result}");
            links.iter().for_each(|link| {
                assert!(link.starts_with("pml://web/demo://") && agent.try_read(link).is_ok(), "{link}");
            });
        }
        agent.subscribe(uri);
    }
    agents[0].call("mcp__web__toggle-subscriber-updates", json!({}));
    agents.iter().for_each(|agent| hears(agent, uri, 1));
}

#[test]
fn a_proxy_behind_a_proxy() {
    let inner = Library::of_three();
    let url = inner.proxy.url.clone();
    let outer = Library::new(|_| json!({"inner": {"type": "http", "url": url}}));
    let direct = inner.agent(Era::Sessions);
    for (number, era) in Era::BOTH.into_iter().enumerate() {
        let agent = outer.agent(era);
        for server in ["a", "newer"] {
            let uri = format!("pml://inner/pml://{server}/shelf://book/one");
            agent.has_resource(&uri);
            assert_eq!(agent.read(&uri), format!("{server}: shelf://book/one"));
            assert_eq!(agent.read("pml://inner/pml://b/shelf://page/1"), "b: shelf://page/1");
            agent.subscribe(&uri);
            direct.call(&format!("mcp__{server}__update"), json!({"uri": "shelf://book/one"}));
            hears(&agent, &uri, 1);
            let before = agent.resource_changes();
            direct.call(&format!("mcp__{server}__put"), json!({"name": format!("new_{number}")}));
            eventually("a changed list", || (agent.resource_changes() > before).then_some(()));
            agent.has_resource(&format!("pml://inner/pml://{server}/shelf://book/new_{number}"));
            agent.unsubscribe(&uri);
        }
        let prompts = agent.prompts();
        let summary = prompts.iter().find(|prompt| prompt["_meta"]["pml"]["name"] == "mcp__b__summary");
        let name = summary.expect("listed")["name"].as_str().expect("a name");
        assert_eq!(agent.prompt(name, json!({"length": "1"})), "b: summary {\"length\":\"1\"}");
    }
}
