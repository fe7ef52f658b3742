//! Resources of servers behind the proxy: listed, read, linked to; two servers have the same ones.

use std::{fs, path::Path};

use pml_tests::{
    Database,
    mcp::{Agent, Era, Person, Proxy, ProxySetup, eventually, new_token, pml, runtime},
    peers::{node, npm, program, python, servers_file},
};
use rmcp::{ServiceError, model::Reference, transport::TokioChildProcess};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) fn shelf(title: &str, folder: &Path) -> Value {
    let journal = folder.join(title);
    json!({"command": node(), "args": [program("shelf_server.mjs"), title, journal]})
}

pub(crate) fn newer_shelf() -> Value {
    json!({"command": python("mcp2"), "args": [program("shelf_newer_server.py")]})
}

/// A database, and a proxy in front of servers.
pub(crate) struct Library {
    pub(crate) database: Database,
    pub(crate) folder: TempDir,
    pub(crate) proxy: Proxy,
}

impl Library {
    pub(crate) fn new(servers: impl FnOnce(&Path) -> Value) -> Library {
        let database = Database::new();
        database.create_role("proxy", &["pml_proxy"]);
        let folder = tempfile::tempdir().expect("a folder");
        let file = servers_file(folder.path(), &servers(folder.path()));
        let proxy =
            ProxySetup::new(&database).args(&["--mcp-servers", file.to_str().expect("a path")]).start();
        proxy.is_ready();
        Library { database, folder, proxy }
    }

    /// Two servers of the older era with the same resources and prompts, and one of the newer.
    pub(crate) fn of_three() -> Library {
        Library::new(
            |folder| json!({"a": shelf("a", folder), "b": shelf("b", folder), "newer": newer_shelf()}),
        )
    }

    pub(crate) fn agent(&self, era: Era) -> Agent {
        Agent::connect(&self.proxy.url, era)
    }

    pub(crate) fn journal(&self, title: &str) -> String {
        fs::read_to_string(self.folder.path().join(title)).unwrap_or_default()
    }
}

/// The code, message and data of a JSON-RPC error.
pub(crate) fn error<T: std::fmt::Debug>(answer: Result<T, ServiceError>) -> (i32, String, Value) {
    match answer {
        Err(ServiceError::McpError(error)) => {
            (error.code.0, error.message.into_owned(), error.data.unwrap_or_default())
        }
        other => panic!("{other:?}"),
    }
}

fn by_uri<'a>(list: &'a [Value], uri: &str) -> &'a Value {
    list.iter()
        .find(|item| item["uri"] == uri || item["uriTemplate"] == uri)
        .unwrap_or_else(|| panic!("no {uri}"))
}

#[test]
fn all_pages_of_all_servers_are_listed_with_all_fields() {
    let library = Library::of_three();
    for era in Era::BOTH {
        let agent = library.agent(era);
        ["a", "b", "newer"]
            .iter()
            .for_each(|server| agent.has_resource(&format!("pml://{server}/shelf://book/one")));
        let resources = agent.resources();
        for server in ["a", "b"] {
            let listed = by_uri(&resources, &format!("pml://{server}/shelf://book/three"));
            let expected = json!({
                "uri": format!("pml://{server}/shelf://book/three"), "name": "three", "title": "Book three",
                "description": "For tests", "mimeType": "text/plain", "size": 3,
                "annotations": {"audience": ["user"], "priority": 0.5},
                "icons": [{"src": "https://example.com/icon.png", "mimeType": "image/png"}],
                "_meta": {"example.com/shelf": 1, "pml": {"server": server, "uri": "shelf://book/three"}},
            });
            assert_eq!(*listed, expected, "{era:?}");
        }
        assert_eq!(resources.len(), 7, "{resources:#?}");
        let templates = agent.templates();
        let template = by_uri(&templates, "pml://b/shelf://page/{number}{?as}");
        assert_eq!((&template["name"], &template["title"]), (&json!("page"), &json!("A page")));
        assert_eq!(template["_meta"]["pml"], json!({"server": "b", "uri": "shelf://page/{number}{?as}"}));
    }
}

#[test]
fn a_resource_is_read_at_its_own_server() {
    let library = Library::of_three();
    for era in Era::BOTH {
        let agent = library.agent(era);
        for server in ["a", "b", "newer"] {
            let uri = format!("pml://{server}/shelf://book/one");
            let read = agent.try_read(&uri).unwrap();
            assert_eq!(read["contents"][0]["uri"], uri, "{era:?}");
            assert_eq!(read["contents"][0]["text"], format!("{server}: shelf://book/one"));
        }
        // What a client makes of a template.
        assert_eq!(agent.read("pml://b/shelf://page/a%2Fb?as=x"), "b: shelf://page/a%2Fb?as=x");
        let blob = agent.try_read("pml://a/shelf://blob").unwrap();
        let expected = json!({
            "uri": "pml://a/shelf://blob", "mimeType": "image/png", "blob": "AAEC/w==", "_meta": {"width": 1},
        });
        assert_eq!((&blob["contents"], &blob["_meta"]), (&json!([expected]), &json!({"of": "a"})));
        assert_eq!(agent.read("pml://a/shelf://large").len(), 3_000_000);
    }
}

#[test]
fn a_servers_own_uri_works_if_it_can_only_be_one_servers() {
    let library = Library::of_three();
    for era in Era::BOTH {
        let agent = Agent::of_person(&library.proxy.url, era, None, &Person::new("ann"));
        ["a", "b", "newer"]
            .iter()
            .for_each(|server| agent.has_resource(&format!("pml://{server}/shelf://book/one")));
        let (code, message, data) = error(agent.try_read("shelf://book/two"));
        assert_eq!((code, &data["uri"]), (-32602, &json!("shelf://book/two")), "{message}");
        assert!(message.contains("pml://a/shelf://book/two, pml://b/shelf://book/two."), "{message}");
        let unique = format!("unique_{era:?}");
        agent.call("mcp__b__put", json!({"name": unique}));
        let uri = format!("shelf://book/{unique}");
        agent.has_resource(&format!("pml://b/{uri}"));
        let read = agent.try_read(&uri).unwrap();
        assert_eq!(read["contents"][0]["uri"], format!("pml://b/{uri}"));
        // A template that only one server has.
        assert_eq!(agent.read("shelf://asking/tea"), "tea for ann");
        let not_found = if era == Era::Sessions { -32002 } else { -32602 };
        for uri in ["other://none", "pml://nobody/shelf://book/one", "", "pml://a"] {
            let (code, message, data) = error(agent.try_read(uri));
            assert_eq!((code, &data["uri"]), (not_found, &json!(uri)), "{message}");
            assert!(message.contains(&format!("pml://newer/{uri}")), "{message}");
        }
    }
}

#[test]
fn links_in_results_can_be_read() {
    let library = Library::of_three();
    for era in Era::BOTH {
        // With and without the fast path, which a client with a person doesn't take.
        for agent in
            [library.agent(era), Agent::of_person(&library.proxy.url, era, None, &Person::new("ann"))]
        {
            agent.has_tool("mcp__b__links");
            for _ in 0..2 {
                let result = json!(agent.call("mcp__b__links", json!({})));
                assert_eq!(result["content"][0], json!({"type": "text", "text": "see"}));
                assert_eq!(result["structuredContent"], json!({"uri": "shelf://page/7?as=a%2Fb"}));
                let embedded = result["content"][1]["resource"]["uri"].as_str().expect("a URI");
                assert_eq!(agent.read(embedded), "b: shelf://book/two");
                let link = result["content"][2]["uri"].as_str().expect("a URI");
                assert_eq!(agent.read(link), "b: shelf://page/7?as=a%2Fb");
            }
        }
        // Code gets the server's own, which it can give to the server's tools.
        let code = "return await mcp.b.links({})";
        let agent = library.agent(era);
        let result = agent.ask("pml_execute", json!({"code": code}));
        assert_eq!(result["result"]["uri"], "shelf://page/7?as=a%2Fb");
    }
}

#[test]
fn a_servers_errors_are_passed_on_and_a_dead_server_is_named() {
    let library = Library::of_three();
    for era in Era::BOTH {
        let agent = library.agent(era);
        let (code, message, data) = error(agent.try_read("pml://a/shelf://none"));
        let not_found = if era == Era::Sessions { -32002 } else { -32602 };
        assert_eq!((code, data), (not_found, json!({"uri": "pml://a/shelf://none"})), "{message}");
        assert!(message.contains("Resource not found"), "{message}");
        agent.has_resource("pml://a/shelf://book/one");
        let listed = agent.resources();
        let lost = agent.failure("mcp__a__die", json!({}));
        assert!(lost.contains("lost the server"), "{lost}");
        let read = agent.try_read("pml://a/shelf://book/one");
        if read.is_err() {
            let (code, message, data) = error(read);
            assert!(message.contains("the server \"a\" is down"), "{message}");
            assert_eq!((code, &data["kind"]), (-32603, &json!("down")));
        }
        assert_eq!(agent.resources(), listed, "they stay listed");
        eventually("it is back", || agent.try_read("pml://a/shelf://book/one").ok());
    }
}

#[test]
fn changed_lists_are_announced_to_clients_of_both_eras() {
    let library = Library::of_three();
    let agents = Era::BOTH.map(|era| library.agent(era));
    for server in ["a", "newer"] {
        agents.iter().for_each(|agent| agent.has_resource(&format!("pml://{server}/shelf://book/one")));
        let before = agents.each_ref().map(Agent::resource_changes);
        agents[0].call(&format!("mcp__{server}__put"), json!({"name": "new"}));
        let uri = format!("pml://{server}/shelf://book/new");
        for (agent, before) in agents.iter().zip(before) {
            eventually("notifications/resources/list_changed", || {
                (agent.resource_changes() > before).then_some(())
            });
            assert!(agent.resources().iter().any(|resource| resource["uri"] == uri), "{server}");
        }
    }
}

#[test]
fn a_client_that_came_before_the_servers_is_told_what_they_have() {
    let library = Library::new(|folder| {
        let start = folder.join("start");
        let script = r#"while ! test -e "$1"; do sleep 0.05; done; shift; exec "$@""#;
        let args =
            json!(["-c", script, "sh", start, node(), program("shelf_server.mjs"), "a", folder.join("a")]);
        json!({"a": {"command": "sh", "args": args}})
    });
    let agents = Era::BOTH.map(|era| library.agent(era));
    for agent in &agents {
        let can = agent.capabilities();
        assert!(can.resources.is_some_and(|it| it.list_changed == Some(true) && it.subscribe == Some(true)));
        assert!(can.prompts.is_some_and(|it| it.list_changed == Some(true)) && can.completions.is_some());
        assert!(agent.resources().is_empty() && agent.prompts().is_empty());
    }
    fs::write(library.folder.path().join("start"), "").unwrap();
    for agent in &agents {
        eventually("the lists", || {
            (agent.resource_changes() > 0 && agent.prompt_changes() > 0).then_some(())
        });
        assert_eq!((agent.resources().len(), agent.prompts().len()), (3, 4));
    }
}

#[test]
fn what_no_server_has_is_not_advertised() {
    let none = Library::new(|_| json!({}));
    let only_tools = Library::new(
        |folder| json!({"moody": {"command": node(), "args": [program("moody_server.mjs"), folder.join("journal")]}}),
    );
    Agent::connect(&only_tools.proxy.url, Era::Sessions).has_tool("mcp__moody__raw");
    for library in [&none, &only_tools] {
        for era in Era::BOTH {
            let agent = library.agent(era);
            let can = agent.capabilities();
            assert!(can.tools.is_some() && can.resources.is_none() && can.prompts.is_none(), "{era:?}");
            assert!(can.completions.is_none());
            assert_eq!(error(agent.try_resources()).0, -32601);
            assert_eq!(error(agent.try_read("shelf://book/one")).0, -32601);
            assert_eq!(error(agent.try_prompts()).0, -32601);
            assert_eq!(error(agent.try_prompt("mcp__a__ask", json!({}))).0, -32601);
            assert_eq!(error(agent.complete(Reference::for_prompt("x"), "a", "")).0, -32601);
        }
    }
}

#[test]
fn questions_are_asked_of_the_client_that_reads() {
    let library = Library::of_three();
    let ann = Person::new("ann");
    let older = Agent::of_person(&library.proxy.url, Era::Sessions, None, &ann);
    assert_eq!(older.read("pml://a/shelf://ask"), "a for ann");
    assert_eq!(older.read("pml://newer/shelf://asking/tea"), "tea for ann");
    let bob = Person::new("bob");
    let newer = Agent::of_person(&library.proxy.url, Era::Stateless, None, &bob);
    assert_eq!(newer.read("pml://newer/shelf://asking/tea"), "tea for bob");
    assert_eq!(newer.read("pml://a/shelf://ask"), "a for decline", "it can only be asked in an answer");
    assert_eq!((ann.asked().len(), bob.asked().len()), (2, 1));
    // The state is this client's, and for this resource.
    let asked = newer.read_once("pml://newer/shelf://asking/tea", None, None).unwrap();
    assert!(asked["inputRequests"]["who"].is_object(), "{asked}");
    let state = asked["requestState"].as_str().expect("a state");
    assert_ne!(state, "asked");
    let answers = Some(json!({"who": {"action": "accept", "content": {"name": "eve"}}}));
    let read = newer.read_once("pml://newer/shelf://asking/tea", answers.clone(), Some(state)).unwrap();
    assert_eq!(read["contents"][0]["text"], "tea for eve");
    let (_, token) = new_token(&library.database, "elsewhere", "mallory");
    let mallory = Agent::of_person(&library.proxy.url, Era::Stateless, Some(&token), &Person::new("mallory"));
    for (agent, uri) in
        [(&mallory, "pml://newer/shelf://asking/tea"), (&newer, "pml://newer/shelf://asking/milk")]
    {
        let (code, message, _) = error(agent.read_once(uri, answers.clone(), Some(state)));
        assert!(code == -32602 && message.contains("requestState"), "{code} {message}");
    }
}

#[test]
fn progress_arrives_and_cancelling_reaches_the_server() {
    let library = Library::of_three();
    for (number, era) in Era::BOTH.into_iter().enumerate() {
        let agent = library.agent(era);
        let reading = agent.start_reading("pml://a/shelf://wait");
        eventually("progress", || agent.progress().iter().any(|step| step.total == Some(2.0)).then_some(()));
        runtime().block_on(reading.cancel(Some("enough".to_owned()))).expect("cancelled");
        let count = |journal: String| journal.lines().filter(|line| line.starts_with("cancelled")).count();
        eventually("the server knows", || (count(library.journal("a")) > number).then_some(()));
    }
}

#[test]
fn a_server_that_announces_nothing_is_read_again_and_one_bad_item_hides_no_others() {
    let library = Library::new(|folder| {
        let mut server = shelf("a", folder);
        server["env"] = json!({"SHELF_SILENT": "yes", "SHELF_INVALID": "yes"});
        json!({"a": server})
    });
    for era in Era::BOTH {
        let agent = library.agent(era);
        agent.has_resource("pml://a/shelf://book/one");
        let name = format!("new_{era:?}");
        agent.call("mcp__a__put", json!({"name": name}));
        let uris: Vec<Value> = agent.resources().iter().map(|resource| resource["uri"].clone()).collect();
        assert!(uris.contains(&json!(format!("pml://a/shelf://book/{name}"))), "{uris:?}");
        assert!(!uris.contains(&json!("pml://a/shelf://nameless")), "{uris:?}");
        // With one server, its own URIs are enough.
        assert_eq!(agent.read("shelf://book/two"), "a: shelf://book/two");
    }
}

#[test]
fn arguments_of_templates_are_completed_by_their_server() {
    let library = Library::of_three();
    for era in Era::BOTH {
        let agent = library.agent(era);
        let template = Reference::for_resource("pml://b/shelf://page/{number}{?as}");
        let completion = agent.complete(template, "number", "4").unwrap();
        assert_eq!(completion["values"], json!(["b", "shelf://page/{number}{?as}", "4", "{}"]));
        let template = Reference::for_resource("pml://newer/shelf://asking/{topic}");
        assert_eq!(agent.complete(template, "topic", "t").unwrap()["values"], json!(["newer", "t"]));
    }
}

#[test]
fn a_real_server_works_over_stdio_too() {
    let database = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    let folder = tempfile::tempdir().expect("a folder");
    let everything = json!({"command": node(), "args": [npm("mcp-server-everything"), "stdio"]});
    let file = servers_file(folder.path(), &json!({"everything": everything}));
    for era in Era::BOTH {
        let mut command = tokio::process::Command::from(pml());
        command.arg("stdio").arg("--mcp-servers").arg(&file);
        command.env("PML_DATABASE_URL", database.url_of("proxy")).env("PML_LOG_LEVEL", "warn");
        let transport = {
            let _guard = runtime().enter();
            TokioChildProcess::new(command).expect("pml starts")
        };
        let agent = Agent::over(transport, era).expect("a connection");
        eventually("resources", || (!agent.resources().is_empty()).then_some(()));
        let templates = agent.templates();
        let text = by_uri(&templates, "pml://everything/demo://resource/dynamic/text/{resourceId}");
        let uri = text["uriTemplate"].as_str().expect("a template").replace("{resourceId}", "7");
        assert!(agent.read(&uri).starts_with("Resource 7:"), "{era:?}");
        let prompt = agent.try_prompt("mcp__everything__simple-prompt", json!({})).unwrap();
        assert_eq!(prompt["messages"][0]["role"], "user");
        let listed = agent.resources();
        let first = listed[0]["uri"].as_str().expect("a URI");
        agent.subscribe(first);
        agent.call("mcp__everything__toggle-subscriber-updates", json!({}));
        eventually("an update", || agent.updates().contains(&first.to_owned()).then_some(()));
        agent.close();
    }
}
