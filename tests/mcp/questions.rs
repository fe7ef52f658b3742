//! A downstream server's questions and log messages during a call reach the client of that call, and no other.

#![expect(deprecated, reason = "logging is, but servers use it")]

use std::{
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use pml_tests::{
    mcp::{Agent, Era, Person, Proxy, Workbench, eventually, new_token, runtime, text},
    peers::{free_port, node, npm, program, python},
};
use rmcp::model::{LoggingLevel, ServerResult};
use serde_json::{Value, json};

/// A workbench with servers that ask.
struct Asking {
    bench: Workbench,
}

impl Asking {
    fn new() -> Asking {
        Asking { bench: Workbench::new() }
    }

    fn journal(&self) -> PathBuf {
        self.bench.path().join("journal")
    }

    fn proxy(&self, further: &[&str]) -> Proxy {
        let servers = json!({
            "everything": {"command": node(), "args": [npm("mcp-server-everything"), "stdio"]},
            "moody": {"command": node(), "args": [program("moody_server.mjs"), self.journal()]},
            "hasty": {"command": node(), "args": [program("moody_server.mjs")], "timeout": 5},
            "asking": {"command": python("mcp2"), "args": [program("asking_server.py")]},
        });
        let proxy = self.bench.proxy_with(&servers, further);
        // A project has the tools of the servers once its list was asked for.
        if !further.contains(&"--require-token") {
            let agent = Agent::connect(&proxy.url, Era::Sessions);
            for tool in ["everything__echo", "moody__ask", "hasty__ask", "asking__greet"] {
                agent.has_tool(&format!("mcp__{tool}"));
            }
        }
        proxy
    }
}

/// Arguments of the moody server's tool that asks its client.
fn questions() -> Value {
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let text = json!({"role": "user", "content": {"type": "text", "text": "Go on"}});
    json!({"requests": [
        {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": form}},
        {"method": "sampling/createMessage", "params": {"messages": [text], "maxTokens": 7}},
        {"method": "roots/list"},
    ]})
}

/// Only the first of them.
fn one_question() -> Value {
    json!({"requests": [questions()["requests"][0]]})
}

fn answers(result: &rmcp::model::CallToolResult) -> Value {
    serde_json::from_str(&text(result)).unwrap_or_else(|_| panic!("{}", text(result)))
}

fn declined(why: &str) -> Value {
    json!({"action": "decline", "_meta": {"pml": {"declinedBecause": why}}})
}

#[test]
fn a_session_is_asked_by_the_servers_that_it_calls() {
    let asking = Asking::new();
    let proxy = asking.proxy(&[]);
    let ann = Person::new("ann");
    let agent = Agent::of_person(&proxy.url, Era::Sessions, None, &ann);
    let answered = answers(&agent.call("mcp__moody__ask", questions()));
    assert_eq!(answered[0], json!({"action": "accept", "content": {"name": "ann"}}));
    assert_eq!(answered[1]["content"]["text"], "says ann");
    assert_eq!(answered[2]["roots"][0]["uri"], "file:///home/ann");
    let mut asked = ann.asked();
    asked.sort();
    assert_eq!(asked, ["7 tokens", "Who?"]);

    let elicited = text(&agent.call("mcp__everything__trigger-elicitation-request", json!({})));
    assert!(elicited.contains("ann"), "{elicited}");
    let sampled = text(&agent.call("mcp__everything__trigger-sampling-request", json!({"prompt": "hi"})));
    assert!(sampled.contains("says ann"), "{sampled}");
}

#[test]
fn code_that_calls_a_tool_waits_for_the_person_too() {
    let asking = Asking::new();
    let proxy = asking.proxy(&["--run-timeout", "5"]);
    let ann = Person::thoughtful("ann");
    let agent = Agent::of_person(&proxy.url, Era::Sessions, None, &ann);
    let code = "return JSON.parse(await mcp.moody.ask(args))";
    let running = agent.start_call("pml_execute", json!({"code": code, "args": one_question()}));
    ann.is_asked();
    // Longer than the run may take without her.
    std::thread::sleep(std::time::Duration::from_secs(6));
    ann.answer();
    let ServerResult::CallToolResult(result) = runtime().block_on(running.await_response()).unwrap() else {
        panic!("another answer")
    };
    let answer = result.structured_content.unwrap_or_default();
    assert_eq!(answer["result"][0]["content"]["name"], "ann", "{answer:#}");
}

#[test]
fn a_person_may_think_for_longer_than_the_server_may() {
    let asking = Asking::new();
    let proxy = asking.proxy(&[]);
    let ann = Person::thoughtful("ann");
    let agent = Agent::of_person(&proxy.url, Era::Sessions, None, &ann);
    let running = agent.start_call("mcp__hasty__ask", one_question());
    ann.is_asked();
    // Longer than the server's entry allows.
    std::thread::sleep(std::time::Duration::from_secs(6));
    ann.answer();
    let ServerResult::CallToolResult(result) = runtime().block_on(running.await_response()).unwrap() else {
        panic!("another answer")
    };
    assert_eq!(answers(&result)[0]["content"]["name"], "ann");
}

#[test]
fn a_cancelled_call_takes_its_question_back() {
    let asking = Asking::new();
    let proxy = asking.proxy(&[]);
    let ann = Person::thoughtful("ann");
    let agent = Agent::of_person(&proxy.url, Era::Sessions, None, &ann);
    let running = agent.start_call("mcp__moody__ask", one_question());
    ann.is_asked();
    runtime().block_on(running.cancel(None)).unwrap();
    ann.is_left_alone();
}

#[test]
fn whoever_offers_nothing_is_asked_nothing() {
    let asking = Asking::new();
    let proxy = asking.proxy(&[]);
    for era in Era::BOTH {
        let agent = Agent::connect(&proxy.url, era);
        let answered = answers(&agent.call("mcp__moody__ask", questions()));
        assert_eq!(answered[0]["action"], "decline", "{era:?}");
        assert_eq!(answered[1], json!({"code": -32601}), "{era:?}");
        assert_eq!(answered[2], json!({"roots": []}), "{era:?}");
    }
    let agent = Agent::connect(&proxy.url, Era::Sessions);
    assert_eq!(
        answers(&agent.call("mcp__moody__ask", one_question()))[0],
        declined("the client doesn't support it")
    );
}

#[test]
fn with_calls_of_several_clients_under_way_nobody_is_asked() {
    let asking = Asking::new();
    let proxy = asking.proxy(&["--require-token"]);
    let (_, of_ann) = new_token(&asking.bench.database, "acme", "ann");
    let (_, of_bob) = new_token(&asking.bench.database, "other", "bob");
    let (ann, bob) = (Person::new("ann"), Person::new("bob"));
    let anns = Agent::of_person(&proxy.url, Era::Sessions, Some(&of_ann), &ann);
    let bobs = Agent::of_person(&proxy.url, Era::Sessions, Some(&of_bob), &bob);
    [&anns, &bobs].iter().for_each(|agent| agent.has_tool("mcp__moody__ask"));
    let waiting = bobs.start_call("mcp__moody__cancellable", json!({}));
    eventually("bob's call is under way", || {
        std::fs::read_to_string(asking.journal())
            .is_ok_and(|journal| journal.contains("waiting"))
            .then_some(())
    });
    let why = "calls of several clients are running at the server, and it doesn't say which one it asks";
    assert_eq!(answers(&anns.call("mcp__moody__ask", one_question()))[0], declined(why));
    runtime().block_on(waiting.cancel(None)).unwrap();
    eventually("only ann is left", || {
        let answered = answers(&anns.call("mcp__moody__ask", one_question()));
        (answered[0]["content"]["name"] == "ann").then_some(())
    });
    assert_eq!(bob.asked(), Vec::<String>::new());
    assert_eq!(answers(&bobs.call("mcp__moody__ask", one_question()))[0]["content"]["name"], "bob");
}

/// `server-everything` behind HTTP; killed when dropped.
pub(crate) struct Everything(Child, pub(crate) u16);

impl Everything {
    pub(crate) fn start() -> Everything {
        let port = free_port();
        let server = Command::new(node())
            .args([npm("mcp-server-everything"), PathBuf::from("streamableHttp")])
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("node starts");
        eventually("it listens", || TcpStream::connect(("127.0.0.1", port)).ok());
        Everything(server, port)
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn behind_http_a_question_finds_its_client_among_several() {
    let asking = Asking::new();
    let server = Everything::start();
    let url = format!("http://127.0.0.1:{}/mcp", server.1);
    let proxy = asking.bench.proxy(&json!({"web": {"type": "http", "url": url}}));
    let (ann, bob) = (Person::new("ann"), Person::thoughtful("bob"));
    let anns = Agent::of_person(&proxy.url, Era::Sessions, None, &ann);
    let bobs = Agent::of_person(&proxy.url, Era::Sessions, None, &bob);
    let tool = "mcp__web__trigger-elicitation-request";
    anns.has_tool(tool);
    let waiting = bobs.start_call(tool, json!({}));
    bob.is_asked();
    // Bob's call is running, and older; ann gets the question of her own call.
    let answered = text(&anns.call(tool, json!({})));
    assert!(answered.contains("ann") && ann.asked().len() == 1, "{answered}");
    bob.answer();
    let ServerResult::CallToolResult(result) = runtime().block_on(waiting.await_response()).unwrap() else {
        panic!("another answer")
    };
    assert!(text(&result).contains("bob"), "{}", text(&result));
    assert_eq!(bob.asked().len(), 1);
}

#[test]
fn a_server_of_the_newer_era_asks_clients_of_both() {
    let asking = Asking::new();
    let proxy = asking.proxy(&[]);
    for era in Era::BOTH {
        let ann = Person::new("ann");
        let agent = Agent::of_person(&proxy.url, era, None, &ann);
        let greeted = agent.converse("mcp__asking__greet", json!({"greeting": "Hello"})).unwrap();
        assert_eq!(text(&greeted), "Hello, ann (ann)", "{era:?}");
        assert_eq!(ann.asked(), ["Who are you?", "Are you sure?"], "{era:?}");
        let offered = agent.ask("mcp__asking__offered", json!({}));
        assert_eq!(offered["result"], json!(["elicitation", "roots", "sampling"]), "{era:?}");
        let nobody = Agent::connect(&proxy.url, era);
        assert_eq!(nobody.ask("mcp__asking__offered", json!({}))["result"], json!([]), "{era:?}");
    }
}

#[test]
fn what_a_server_wants_to_see_again_is_worth_nothing_to_others() {
    let asking = Asking::new();
    let proxy = asking.proxy(&["--require-token"]);
    let (_, of_ann) = new_token(&asking.bench.database, "acme", "ann");
    let (_, of_bob) = new_token(&asking.bench.database, "acme", "bob");
    let ann = Agent::of_person(&proxy.url, Era::Stateless, Some(&of_ann), &Person::new("ann"));
    let bob = Agent::of_person(&proxy.url, Era::Stateless, Some(&of_bob), &Person::new("bob"));
    [&ann, &bob].iter().for_each(|agent| agent.has_tool("mcp__asking__greet"));
    let greet = |agent: &Agent, answers: Option<Value>, state: Option<&str>| {
        agent.converse_once("mcp__asking__greet", json!({"greeting": "Hi"}), answers, state)
    };
    let asked = greet(&ann, None, None).unwrap();
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    let state = asked["requestState"].as_str().unwrap();
    let name = || Some(json!({"name": {"action": "accept", "content": {"name": "ann"}}}));
    let mut forged = state.to_owned();
    forged.replace_range(forged.len() - 2.., "AA");
    for (agent, state) in [(&bob, state), (&ann, forged.as_str()), (&ann, "{}")] {
        let error = greet(agent, name(), Some(state)).unwrap_err().to_string();
        assert!(error.contains("isn't one that was given to this client"), "{error}");
    }
    // Another proxy of the same database accepts it, as this one would after a restart.
    let again = asking.proxy(&["--require-token"]);
    let ann = Agent::of_person(&again.url, Era::Stateless, Some(&of_ann), &Person::new("ann"));
    let asked = greet(&ann, name(), Some(state)).unwrap();
    assert_eq!(asked["inputRequests"]["sure"]["params"]["message"], "Are you sure?", "{asked:#}");
}

#[test]
fn a_call_is_counted_when_it_is_over() {
    let asking = Asking::new();
    let proxy = asking.proxy(&[]);
    let agent = Agent::of_person(&proxy.url, Era::Stateless, None, &Person::new("ann"));
    agent.converse("mcp__asking__greet", json!({"greeting": "Hello"})).unwrap();
    let mut sql = asking.bench.database.connect();
    let mut uses = || {
        let row = sql.query_one("SELECT count(*) FROM pml.tool_usage WHERE tool_id = 'asking:greet'", &[]);
        row.unwrap().get::<_, i64>(0)
    };
    eventually("the use is recorded", || (uses() > 0).then_some(()));
    assert_eq!(uses(), 1);
}

#[test]
fn what_a_server_logs_during_a_call_reaches_its_client() {
    let asking = Asking::new();
    let proxy = asking.proxy(&[]);
    let agent = Agent::connect(&proxy.url, Era::Sessions);
    let other = Agent::connect(&proxy.url, Era::Sessions);
    let say = |level: &str, words: &str| {
        agent.call("mcp__moody__log", json!({"level": level, "data": words}));
    };
    let hears = |words: &str| {
        eventually(words, || (agent.logs().last() == Some(&json!(words))).then_some(()));
    };
    say("emergency", "not asked for");
    agent.set_log_level(LoggingLevel::Error);
    say("warning", "not wanted");
    say("critical", "wanted");
    hears("wanted");
    agent.set_log_level(LoggingLevel::Debug);
    say("debug", "all");
    hears("all");
    assert_eq!(agent.logs(), ["wanted", "all"]);
    assert_eq!(other.logs(), Vec::<Value>::new());
}
