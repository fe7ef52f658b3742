//! Prompts of servers behind the proxy: listed, got, completed; two servers have the same ones.

use pml_tests::mcp::{Agent, Era, Person, eventually, new_token, runtime};
use rmcp::model::Reference;
use serde_json::{Value, json};

use crate::resources::{Library, error, newer_shelf, shelf};

#[test]
fn prompts_of_all_servers_are_listed_and_got_at_their_own() {
    let library = Library::of_three();
    for era in Era::BOTH {
        let agent = library.agent(era);
        ["a", "b", "newer"].iter().for_each(|server| agent.has_prompt(&format!("mcp__{server}__summary")));
        let prompts = agent.prompts();
        let named =
            |name: &str| prompts.iter().find(|prompt| prompt["name"] == name).expect("a prompt").clone();
        for server in ["a", "b"] {
            let name = format!("mcp__{server}__summary");
            let expected = json!({
                "name": name, "title": "Summary", "description": "For tests",
                "arguments": [{"name": "length", "required": true}],
                "icons": [{"src": "https://example.com/icon.png", "mimeType": "image/png"}],
                "_meta": {"example.com/shelf": 1, "pml": {"server": server, "name": "summary"}},
            });
            assert_eq!(named(&name), expected);
            let got = agent.try_prompt(&name, json!({"length": "short"})).unwrap();
            assert_eq!(got["description"], server);
            let text = format!("{server}: summary {{\"length\":\"short\"}}");
            assert_eq!(
                got["messages"][0],
                json!({"role": "user", "content": {"type": "text", "text": text}})
            );
            for block in [&got["messages"][1]["content"]["resource"], &got["messages"][2]["content"]] {
                let read = agent.read(block["uri"].as_str().expect("a URI"));
                assert!(read.starts_with(&format!("{server}: shelf://")), "{read}");
            }
        }
        assert_eq!(agent.prompt("mcp__newer__summary", json!({"length": "long"})), "newer: summary long");
        // A name that isn't allowed on the wire.
        let odd = prompts
            .iter()
            .find(|prompt| prompt["_meta"]["pml"] == json!({"server": "b", "name": "with space"}));
        let odd = odd.expect("listed")["name"].as_str().expect("a name");
        assert!(odd.starts_with("mcp__b__with_space_") && odd.len() <= 64, "{odd}");
        assert_eq!(agent.prompt(odd, json!({})), "b: with space {}");
    }
}

#[test]
fn an_unknown_prompt_and_a_servers_own_error() {
    let library = Library::of_three();
    for era in Era::BOTH {
        let agent = library.agent(era);
        agent.has_prompt("mcp__newer__summary");
        for name in ["", "nothing", "mcp__nobody__summary", "mcp__a_b__c_d"] {
            let (code, message, _) = error(agent.try_prompt(name, json!({})));
            assert_eq!((code, message), (-32602, format!("Unknown prompt: {name}")));
        }
        let (code, message, _) = error(agent.try_prompt("summary", json!({})));
        assert!(code == -32602 && message.contains("did you mean mcp__"), "{message}");
        let (code, message, _) = error(agent.try_prompt("mcp__a__none", json!({})));
        assert!(code == -32602 && message.contains("No such prompt"), "{message}");
    }
}

#[test]
fn questions_are_asked_of_the_client_that_gets_the_prompt() {
    let library = Library::of_three();
    let older = Agent::of_person(&library.proxy.url, Era::Sessions, None, &Person::new("ann"));
    assert_eq!(older.prompt("mcp__b__ask", json!({})), "b for ann");
    assert_eq!(older.prompt("mcp__newer__ask", json!({})), "newer for ann");
    let newer = Agent::of_person(&library.proxy.url, Era::Stateless, None, &Person::new("bob"));
    assert_eq!(newer.prompt("mcp__newer__ask", json!({})), "newer for bob");
    let asked = newer.prompt_once("mcp__newer__ask", None, None).unwrap();
    let state = asked["requestState"].as_str().expect("a state");
    let answers = || Some(json!({"who": {"action": "accept", "content": {"name": "eve"}}}));
    let got = newer.prompt_once("mcp__newer__ask", answers(), Some(state)).unwrap();
    assert_eq!(got["messages"][0]["content"]["text"], "newer for eve");
    let (_, token) = new_token(&library.database, "elsewhere", "mallory");
    let mallory = Agent::with_token(&library.proxy.url, Era::Stateless, &token);
    let (code, message, _) = error(mallory.prompt_once("mcp__newer__ask", answers(), Some(state)));
    assert!(code == -32602 && message.contains("requestState"), "{code} {message}");
}

#[test]
fn changed_prompts_are_announced_and_cancelling_reaches_the_server() {
    let library = Library::new(|folder| json!({"a": shelf("a", folder), "newer": newer_shelf()}));
    let agents = Era::BOTH.map(|era| library.agent(era));
    for server in ["a", "newer"] {
        agents.iter().for_each(|agent| agent.has_prompt(&format!("mcp__{server}__summary")));
        let before = agents.each_ref().map(Agent::prompt_changes);
        agents[1].call(&format!("mcp__{server}__write"), json!({"name": "new"}));
        for (agent, before) in agents.iter().zip(before) {
            eventually("notifications/prompts/list_changed", || {
                (agent.prompt_changes() > before).then_some(())
            });
            let names: Vec<Value> = agent.prompts().iter().map(|prompt| prompt["name"].clone()).collect();
            assert!(names.contains(&json!(format!("mcp__{server}__new"))), "{names:?}");
        }
    }
    for (number, agent) in agents.iter().enumerate() {
        let getting = agent.start_prompt("mcp__a__wait");
        eventually("progress", || agent.progress().iter().any(|step| step.total == Some(2.0)).then_some(()));
        runtime().block_on(getting.cancel(None)).expect("cancelled");
        let count = |journal: String| journal.lines().filter(|line| line.starts_with("cancelled")).count();
        eventually("the server knows", || (count(library.journal("a")) > number).then_some(()));
    }
}

#[test]
fn arguments_are_completed_by_their_server() {
    let library = Library::new(|folder| {
        let moody = json!({"command": pml_tests::peers::node(), "args": [pml_tests::peers::program("moody_server.mjs"), folder.join("m")]});
        json!({"a": shelf("a", folder), "newer": newer_shelf(), "moody": moody})
    });
    for era in Era::BOTH {
        let agent = library.agent(era);
        let complete = |name: &str| agent.complete(Reference::for_prompt(name), "length", "sh");
        let expected = json!({"values": ["a", "summary", "sh", "{}"], "total": 4, "hasMore": false});
        assert_eq!(complete("mcp__a__summary").unwrap(), expected);
        assert_eq!(complete("mcp__newer__summary").unwrap()["values"], json!(["newer", "sh"]));
        assert_eq!(complete("mcp__moody__any").unwrap()["values"], json!([]), "it has no completions");
        assert_eq!(error(complete("any")).0, -32602);
    }
}
