//! One tenant tries to block another, whose runs succeed while the attack is running.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::PathBuf,
    time::Duration,
};

use pml_tests::{
    Database,
    mcp::{Agent, Era, Person, Proxy, ProxySetup, eventually, new_token, runtime},
    peers::{node, program, servers_file},
};
use rmcp::{RoleClient, service::RequestHandle};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A proxy, an attacker, and a quiet tenant of another organisation.
struct Place {
    database: Database,
    folder: TempDir,
    proxy: Proxy,
    attacker: String,
    quiet: String,
}

impl Place {
    fn new(args: &[&str]) -> Place {
        let database = Database::new();
        database.create_role("proxy", &["pml_proxy"]);
        let folder = tempfile::tempdir().expect("a folder");
        let servers = json!({"moody": {"command": node(), "args": [program("moody_server.mjs")]}});
        let file: PathBuf = servers_file(folder.path(), &servers);
        let (_, attacker) = new_token(&database, "attackers", "mallory");
        let (_, quiet) = new_token(&database, "others", "ann");
        let proxy = ProxySetup::new(&database)
            .args(&["--require-token", "--worker-slots", "4"])
            .args(&["--mcp-servers", file.to_str().expect("a readable path")])
            .args(args)
            .start();
        proxy.is_ready();
        Place { database, folder, proxy, attacker, quiet }
    }

    fn attacker(&self) -> Agent {
        Agent::with_token(&self.proxy.url, Era::Sessions, &self.attacker)
    }

    fn quiet(&self, era: Era) -> Agent {
        Agent::with_token(&self.proxy.url, era, &self.quiet)
    }

    fn metric(&self, name: &str) -> f64 {
        metric(&self.proxy, name)
    }

    fn waits_for(&self, metric: &str, least: f64) {
        eventually(metric, || (self.metric(metric) >= least).then_some(()));
    }

    /// Ten runs of the quiet tenant in each era, all of which succeed.
    fn others_can_work(&self) {
        for era in Era::BOTH {
            let agent = self.quiet(era);
            for n in 0..10 {
                let answer = agent.ask("pml_execute", json!({"code": "return args.n + 1", "args": {"n": n}}));
                assert_eq!(answer["result"], json!(n + 1), "{era:?}");
            }
        }
    }
}

/// A number of `/metrics`.
fn metric(proxy: &Proxy, name: &str) -> f64 {
    let text = runtime().block_on(async {
        let answer = reqwest::get(proxy.page("/metrics")).await.expect("an answer");
        answer.text().await.expect("a text")
    });
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0.0, |number| number.parse().expect("a number"))
}

fn start(agent: &Agent, count: usize, code: &str) -> Vec<RequestHandle<RoleClient>> {
    (0..count).map(|_| agent.start_call("pml_execute", json!({"code": code}))).collect()
}

/// How many have been answered.
fn answered(calls: &[RequestHandle<RoleClient>]) -> usize {
    calls.iter().filter(|call| !call.rx.is_empty()).count()
}

/// Arguments of the moody server's tool with which it asks a person.
fn question() -> Value {
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"requests": [{"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": form}}]})
}

#[test]
fn sleepers_hold_up_nobody_else() {
    let place = Place::new(&["--run-timeout", "3600"]);
    let attacker = place.attacker();
    let calls = start(&attacker, 20, "await new Promise(done => setTimeout(done, 3500000))");
    place.waits_for("pml_worker_waiting", 16.0);
    place.others_can_work();
    assert_eq!(answered(&calls), 0, "they still sleep");
    assert_eq!(place.metric("pml_worker_slots_used"), 4.0);
}

#[test]
fn the_sleepers_of_one_principal_leave_room_for_its_colleagues() {
    let place = Place::new(&["--run-timeout", "3600"]);
    let attacker = place.attacker();
    let calls = start(&attacker, 20, "await new Promise(done => setTimeout(done, 3500000))");
    place.waits_for("pml_worker_waiting", 16.0);
    let (_, colleague) = new_token(&place.database, "attackers", "bob");
    let colleague = Agent::with_token(&place.proxy.url, Era::Sessions, &colleague);
    assert_eq!(colleague.ask("pml_execute", json!({"code": "return 1"}))["result"], 1);
    assert_eq!(answered(&calls), 0);
}

#[test]
fn loops_hold_up_nobody_else() {
    let place = Place::new(&["--run-timeout", "600"]);
    let attacker = place.attacker();
    let calls = start(&attacker, 20, "for (;;);");
    place.waits_for("pml_worker_waiting", 15.0);
    let before = answered(&calls);
    place.others_can_work();
    // Each loop has its five seconds of computing, and there are four at a time.
    assert!(answered(&calls) <= before + 12, "the attack is over before the others could work");
}

#[test]
fn a_flood_holds_up_nobody_else() {
    let place = Place::new(&[
        "--rate",
        "0",
        "--limit-runs",
        "0",
        "--limit-runs-per-minute",
        "0",
        "--run-timeout",
        "600",
    ]);
    let attacker = place.attacker();
    let calls = start(&attacker, 90, "return await mcp.moody.once()");
    place.waits_for("pml_worker_waiting", 80.0);
    place.others_can_work();
    assert_eq!(answered(&calls), 0);
}

#[test]
fn whoever_waits_for_people_holds_up_nobody_not_even_itself() {
    let place = Place::new(&["--run-timeout", "600"]);
    let person = Person::thoughtful("mallory");
    let attacker = Agent::of_person(&place.proxy.url, Era::Sessions, Some(&place.attacker), &person);
    attacker.has_tool("mcp__moody__ask");
    let ask = question();
    let code = "return JSON.parse(await mcp.moody.ask(args))";
    let call = || attacker.start_call("pml_execute", json!({"code": code, "args": ask}));
    let mut calls: Vec<_> = (0..8).map(|_| call()).collect();
    place.waits_for("pml_worker_aside", 8.0);
    eventually("their slots are free", || (place.metric("pml_worker_slots_used") == 0.0).then_some(()));
    assert_eq!(place.metric("pml_questions_open"), 8.0);
    place.others_can_work();
    assert_eq!(attacker.ask("pml_execute", json!({"code": "return 1"}))["result"], 1);
    assert_eq!(answered(&calls), 0);
    // One more than it may ask at the same time is declined, with the reason.
    let declined = attacker.ask("pml_execute", json!({"code": code, "args": ask}));
    assert_eq!(declined["result"][0]["action"], "decline", "{declined:#}");
    assert!(declined.to_string().contains("limit_questions"), "{declined:#}");
    // They go on when they are answered.
    (0..8).for_each(|_| person.answer());
    let first = runtime().block_on(calls.remove(0).await_response()).expect("an answer");
    let rmcp::model::ServerResult::CallToolResult(first) = first else { panic!("another answer") };
    let result = first.structured_content.unwrap_or_default();
    assert_eq!(result["result"][0]["content"]["name"], "mallory", "{result:#}");
}

#[test]
fn a_question_ends_with_the_client_that_has_gone() {
    let place = Place::new(&["--run-timeout", "600", "--limit-absent-seconds", "1"]);
    let agent = place.attacker();
    agent.has_tool("mcp__moody__ask");
    let client = reqwest::Client::new();
    let post = |session: Option<&str>, message: Value| {
        let request = client.post(&place.proxy.url).bearer_auth(&place.attacker).json(&message);
        let request = request.header("accept", "application/json, text/event-stream");
        session.into_iter().fold(request, |request, id| request.header("mcp-session-id", id)).send()
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "1"}}});
    let opened = runtime().block_on(post(None, hello)).expect("an answer");
    let session = opened.headers()["mcp-session-id"].to_str().expect("an id").to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    runtime().block_on(post(Some(&session), ready)).expect("an answer");
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "pml_execute",
        "arguments": {"code": "return await mcp.moody.ask(args)", "args": question()}}});
    let stream = runtime().block_on(post(Some(&session), call)).expect("a stream");
    place.waits_for("pml_worker_aside", 1.0);
    // It neither ends its session nor cancels its call.
    drop(stream);
    eventually("the question is withdrawn", || (place.metric("pml_questions_open") == 0.0).then_some(()));
    eventually("the run has ended", || (place.metric("pml_worker_aside") == 0.0).then_some(()));
    eventually("the run is recorded as cancelled", || {
        place.proxy.log().iter().any(|line| line.contains("\"error\":\"cancelled\"")).then_some(())
    });
}

#[test]
fn queued_runs_are_refused_once_the_allowance_is_used_up() {
    // A quarter of the 16 MiB may be used at once: four runs, those in the slots then, and those that get a slot between
    // the end of a run and its charge. Without the second check sixteen would run.
    let place = Place::new(&["--limit-result-mib-per-minute", "16"]);
    let attacker = place.attacker();
    let calls = start(&attacker, 20, "return 'x'.repeat(1 << 20)");
    let answers = calls.into_iter().map(|call| runtime().block_on(call.await_response()));
    let succeeded = answers
        .filter(|answer| match answer {
            Ok(rmcp::model::ServerResult::CallToolResult(result)) => result.is_error != Some(true),
            other => panic!("not an answer: {other:?}"),
        })
        .count();
    assert!((1..=12).contains(&succeeded), "{succeeded} of 20 ran");
}

#[test]
fn big_results_hold_up_nobody_else_and_are_bounded() {
    let place = Place::new(&["--limit-result-mib-per-minute", "40"]);
    let attacker = place.attacker();
    let _calls = start(&attacker, 8, "return 'x'.repeat(4 << 20)");
    place.others_can_work();
    let refused = eventually("a refusal", || {
        let result = attacker.call("pml_execute", json!({"code": "return 1"}));
        (result.is_error == Some(true)).then(|| result.structured_content.unwrap_or_default())
    });
    let error = &refused["error"];
    assert_eq!(error["limit"], "result_mib_per_minute", "{refused:#}");
    assert_eq!(
        (&error["kind"], &error["of"], &error["allowed"]),
        (&json!("limit"), &json!("token"), &json!(40.0))
    );
    assert!(error["retryAfterSeconds"].as_u64().is_some_and(|seconds| seconds > 0), "{refused:#}");
    assert!(error["message"].as_str().is_some_and(|said| said.contains("--limit-result-mib-per-minute")));
    let counted = "pml_limit_refused_total{limit=\"result_mib_per_minute\",of=\"token\"}";
    assert!(place.metric(counted) >= 1.0);
}

#[test]
fn slow_bodies_hold_up_nobody() {
    let place = Place::new(&["--body-timeout", "3600"]);
    let host = place.proxy.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let mut streams: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = TcpStream::connect(&host).expect("a connection");
            let head = format!(
                "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
                 accept: application/json, text/event-stream\r\ncontent-length: 1000\r\n\r\n ",
                place.attacker
            );
            stream.write_all(head.as_bytes()).expect("it is taken");
            stream
        })
        .collect();
    place.waits_for("pml_http_connections", 100.0);
    // Not even their sender: an unfinished body holds no permit.
    let answer = place.attacker().ask("pml_execute", json!({"code": "return 1"}));
    assert_eq!(answer["result"], 1);
    place.others_can_work();
    for stream in &mut streams {
        stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
        assert!(stream.read(&mut [0; 16]).is_err(), "it still sends its body");
    }
}

#[test]
fn each_limit_says_what_it_is_and_what_to_do() {
    let limits = json!({"limit_runs": 2, "limit_runs_per_minute": 4000, "limit_cpu_seconds_per_minute": 0.8, "limit_organisation": 1});
    let place = Place::new(&[]);
    let config = place.folder.path().join("config.json");
    std::fs::write(&config, limits.to_string()).expect("a file");
    let proxy = ProxySetup::new(&place.database)
        .args(&[
            "--require-token",
            "--limit-runs-per-minute",
            "8",
            "--run-timeout",
            "600",
            "--config",
            config.to_str().expect("a path"),
        ])
        .start();
    let agent = Agent::with_token(&proxy.url, Era::Sessions, &place.attacker);
    let sleeping = start(&agent, 2, "await new Promise(done => setTimeout(done, 20000))");
    eventually("both sleep", || (metric(&proxy, "pml_worker_slots_used") == 2.0).then_some(()));
    let error = |agent: &Agent| -> Value {
        eventually("a refusal", || {
            let result = agent.call("pml_execute", json!({"code": "return 1"}));
            (result.is_error == Some(true))
                .then(|| result.structured_content.unwrap_or_default()["error"].clone())
        })
    };
    let refused = error(&agent);
    assert_eq!(refused["limit"], "runs", "{refused:#}");
    assert!(
        refused["message"].as_str().unwrap_or_default().contains("2 runs at the same time"),
        "{refused:#}"
    );
    for call in sleeping {
        runtime().block_on(call.cancel(None)).expect("it is cancelled");
    }
    // The flag wins over the file. Two runs at once and one in 7.5 s: no machine is too slow to reach that.
    let refused = eventually("the next limit", || {
        let refused = error(&agent);
        (refused["limit"] == "runs_per_minute").then_some(refused)
    });
    assert_eq!(refused["allowed"], 8.0, "{refused:#}");
    // Another token of the organisation shares the organisation's part.
    let (_, colleague) = new_token(&place.database, "attackers", "bob");
    let refused = error(&Agent::with_token(&proxy.url, Era::Stateless, &colleague));
    assert_eq!((&refused["limit"], &refused["of"]), (&json!("runs_per_minute"), &json!("organisation")));
    // Another organisation has its own.
    let quiet = Agent::with_token(&proxy.url, Era::Sessions, &place.quiet);
    assert_eq!(quiet.ask("pml_execute", json!({"code": "return 1"}))["result"], 1);
    // A loop uses five seconds of CPU time, more than a quarter of a minute's allowance.
    quiet.failure("pml_execute", json!({"code": "for (;;);"}));
    let refused =
        quiet.call("pml_execute", json!({"code": "return 1"})).structured_content.unwrap_or_default();
    assert_eq!(refused["error"]["limit"], "cpu_seconds_per_minute", "{refused:#}");
}

#[test]
fn a_scope_that_holds_too_much_keeps_no_new_code() {
    let place = Place::new(&["--limit-stored-rows", "10"]);
    let agent = place.quiet(Era::Sessions);
    agent.ask("pml_execute", json!({"code": "return 1", "name": "test:one"}));
    drop(agent);
    let mut sql = place.database.connect();
    sql.batch_execute(
        "CREATE OR REPLACE FUNCTION pml_stored_rows() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT 11::bigint'",
    )
    .expect("a function");
    // Another proxy: this one has counted already, and counts again in a minute.
    let proxy =
        ProxySetup::new(&place.database).args(&["--require-token", "--limit-stored-rows", "10"]).start();
    let agent = Agent::with_token(&proxy.url, Era::Sessions, &place.quiet);
    let refused = eventually("the rows are counted", || {
        let result = agent.call("pml_execute", json!({"code": "return 2"}));
        (result.is_error == Some(true))
            .then(|| result.structured_content.unwrap_or_default()["error"].clone())
    });
    assert_eq!(refused["limit"], "stored_rows", "{refused:#}");
    assert!(refused["message"].as_str().unwrap_or_default().contains("delete"), "{refused:#}");
    assert_eq!(
        agent.ask("pml_execute", json!({"capability": "test:one"}))["result"],
        1,
        "what is kept can be used"
    );
}
