//! HTTP: authentication, limits, and the isolation of tenants.

use pml_tests::{
    Database,
    mcp::{Agent, Era, Proxy, ProxySetup, eventually, new_token, pml, runtime},
};
use reqwest::{Method, Response};
use serde_json::{Value, json};

const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");

fn send(method: Method, url: &str, headers: &[(&str, &str)], body: Option<Value>) -> Response {
    let mut request = reqwest::Client::new().request(method, url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    runtime().block_on(async { request.send().await }).expect("an answer")
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
}

fn list_tools() -> Value {
    json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}}})
}

const MODERN: [(&str, &str); 2] = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];

fn status(headers: &[(&str, &str)], url: &str) -> u16 {
    let headers: Vec<_> = [ACCEPT].into_iter().chain(MODERN).chain(headers.iter().copied()).collect();
    send(Method::POST, url, &headers, Some(list_tools())).status().as_u16()
}

fn proxy_with_tokens(database: &Database, args: &[&str]) -> Proxy {
    database.create_role("proxy", &["pml_proxy"]);
    ProxySetup::new(database).args(&["--require-token"]).args(args).start()
}

#[test]
fn pages_of_other_sites_get_nothing() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    assert_eq!(status(&[], &proxy.url), 200);
    assert_eq!(status(&[("host", "evil.example.com")], &proxy.url), 403);
    assert_eq!(status(&[("origin", "https://evil.example.com")], &proxy.url), 403);
    assert_eq!(status(&[("origin", "null")], &proxy.url), 403);
    assert_eq!(status(&[("origin", "http://localhost:3000")], &proxy.url), 200);
    let named = ProxySetup::new(&database)
        .args(&["--allowed-hosts", "pml.example.com", "--allowed-origins", "https://app.example.com"])
        .start();
    assert_eq!(status(&[("host", "pml.example.com")], &named.url), 200);
    assert_eq!(status(&[("origin", "https://app.example.com")], &named.url), 200);
}

#[test]
fn a_wrong_token_is_refused_also_where_none_is_needed() {
    let database = Database::new();
    let open = Proxy::start(&database);
    assert_eq!(status(&[("authorization", "Bearer pml_wrong")], &open.url), 401);
    assert_eq!(status(&[("authorization", "Basic eA==")], &open.url), 401);
    let closed = ProxySetup::new(&database).args(&["--require-token"]).start();
    let answer = send(Method::POST, &closed.url, &[ACCEPT], Some(initialize()));
    assert_eq!(answer.status().as_u16(), 401);
    assert!(answer.headers()["www-authenticate"].to_str().unwrap().starts_with("Bearer"));
    assert!(runtime().block_on(answer.text()).unwrap().contains("pml token create"));
    // Guessing is slowed down.
    let refused = (0..100).map(|_| status(&[("authorization", "Bearer pml_guess")], &closed.url));
    assert!(refused.into_iter().any(|status| status == 429));
}

#[test]
fn two_orgs_share_a_proxy_and_never_meet() {
    let database = Database::new();
    let (_, acme_token) = new_token(&database, "acme", "ann");
    let (_, rival_token) = new_token(&database, "rival", "rob");
    let proxy = proxy_with_tokens(&database, &[]);
    proxy.is_ready();
    for era in Era::BOTH {
        let acme = Agent::with_token(&proxy.url, era, &acme_token);
        let rival = Agent::with_token(&proxy.url, era, &rival_token);
        let name = format!("secret:{era:?}");
        let tool = format!("mcp__secret__{era:?}");
        let (acme_before, rival_before) = (acme.list_changes(), rival.list_changes());
        let code = format!("return 'the plans of acme, {era:?}'");
        let answer = acme.ask("pml_execute", json!({"code": code, "name": name, "intent": "plans"}));
        acme.hears_of_change(acme_before);
        assert!(acme.tool_names().contains(&tool));
        assert!(!rival.tool_names().contains(&tool), "{era:?}");
        for message in
            [rival.failure(&tool, json!({})), rival.failure("pml_execute", json!({"capability": name}))]
        {
            assert!(message.contains("Capability not found") && !message.contains("acme"), "{message}");
        }
        let found = rival.ask("pml_discover", json!({"intent": "plans"}));
        assert!(!found.to_string().contains(&name), "{found}");
        let fetch = json!({"workflow_id": answer["workflowId"], "task_id": "t1"});
        assert!(rival.failure("pml_get_task_result", fetch).to_lowercase().contains("not found"));
        // The same name and the same code are free for them.
        let mine = rival.ask("pml_execute", json!({"code": code, "name": name, "intent": "plans"}));
        assert_eq!(mine["capabilityName"], json!(name));
        rival.hears_of_change(rival_before);
        assert_eq!(rival.list_changes(), rival_before + 1, "{era:?}");
    }
}

#[test]
fn a_session_belongs_to_its_token() {
    let database = Database::new();
    let (_, ann) = new_token(&database, "acme", "ann");
    let (_, rob) = new_token(&database, "acme", "rob");
    let proxy = proxy_with_tokens(&database, &[]);
    let bearer = |token: &str| format!("Bearer {token}");
    let opened =
        send(Method::POST, &proxy.url, &[ACCEPT, ("authorization", &bearer(&ann))], Some(initialize()));
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let uses = |token: &str, method: Method| {
        let headers = [ACCEPT, ("authorization", &bearer(token)), ("mcp-session-id", &session)];
        let body = (method == Method::POST).then(|| ping.clone());
        send(method, &proxy.url, &headers, body).status().as_u16()
    };
    assert_eq!(uses(&ann, Method::POST), 200);
    for method in [Method::POST, Method::GET, Method::DELETE] {
        assert_eq!(uses(&rob, method.clone()), 404, "{method}");
    }
    assert_eq!(uses(&ann, Method::POST), 200);
    // What the SDKs accept.
    assert_eq!(uses(&ann, Method::DELETE), 204);
    assert_eq!(uses(&ann, Method::POST), 404);
}

#[test]
fn a_revoked_token_ends_at_once() {
    let database = Database::new();
    let (id, token) = new_token(&database, "acme", "ann");
    let proxy = proxy_with_tokens(&database, &[]);
    let bearer = format!("Bearer {token}");
    assert_eq!(status(&[("authorization", &bearer)], &proxy.url), 200);
    let output =
        pml().args(["token", "revoke", &id]).env("PML_DATABASE_URL", database.admin_url()).output().unwrap();
    assert!(output.status.success());
    // Tokens are cached for half a minute; the notification makes this fast.
    eventually("the token is refused", || {
        (status(&[("authorization", &bearer)], &proxy.url) == 401).then_some(())
    });
}

#[test]
fn limits_answer_with_their_own_codes() {
    let database = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    let small = ProxySetup::new(&database).args(&["--max-body", "1000", "--rate", "1"]).start();
    let large = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "x".repeat(2000)}});
    assert_eq!(send(Method::POST, &small.url, &[ACCEPT], Some(large)).status().as_u16(), 413);
    let refused = (0..50).find_map(|_| {
        let headers: Vec<_> = [ACCEPT].into_iter().chain(MODERN).collect();
        let answer = send(Method::POST, &small.url, &headers, Some(list_tools()));
        (answer.status().as_u16() == 429).then_some(answer)
    });
    let wait = refused.expect("a refusal").headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap();
    assert!((1..=5).contains(&wait));

    let narrow = ProxySetup::new(&database).args(&["--concurrency", "1"]).start();
    let agent = Agent::connect(&narrow.url, Era::Stateless);
    let code = "await new Promise(done => setTimeout(done, 20000))";
    let _running = agent.start_call("pml_execute", json!({"code": code}));
    eventually("the only place is taken", || (status(&[], &narrow.url) == 503).then_some(()));
    assert_eq!(send(Method::PUT, &small.page("/healthz"), &[], None).status().as_u16(), 405);
}

#[test]
fn what_cannot_be_understood_is_said_to_be_so() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let json = [ACCEPT, ("content-type", "application/json")];
    let sent = |headers: &[(&str, &str)], body: &'static [u8]| {
        let mut request = reqwest::Client::new().post(&proxy.url).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        runtime().block_on(async {
            let answer = request.send().await.expect("an answer");
            (answer.status().as_u16(), answer.text().await.expect("a text"))
        })
    };
    for (body, code, why) in [
        (b"{\"a\":".as_slice(), -32700, "isn't JSON (EOF while parsing"),
        (b"\xff\xfe", -32700, "isn't JSON"),
        (b"", -32700, "isn't JSON"),
        (b"{\"a\":1}", -32600, "isn't one JSON-RPC message"),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600, "isn't one JSON-RPC message"),
    ] {
        let (status, said) = sent(&json, body);
        assert_eq!(status, 400, "{said}");
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!((&said["error"]["code"], said.get("id")), (&code.into(), Some(&Value::Null)));
        assert!(said["error"]["message"].as_str().is_some_and(|said| said.contains(why)), "{said}");
    }
    assert_eq!(sent(&[ACCEPT, ("content-type", "text/plain")], b"{}").0, 415);

    let opened = send(Method::POST, &proxy.url, &[ACCEPT], Some(initialize()));
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let headers = [ACCEPT, ("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    for (method, params, code) in [
        ("tools/call", json!({}), -32602),
        ("logging/setLevel", json!({"level": "loud"}), -32602),
        ("no/such", json!({}), -32601),
    ] {
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let answer = send(Method::POST, &proxy.url, &headers, Some(request));
        let said = runtime().block_on(answer.text()).unwrap();
        assert!(said.contains(&format!("\"code\":{code}")), "{method}: {said}");
    }
}

#[test]
fn health_readiness_and_metrics_are_there() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let get = |path: &str| {
        let answer = send(Method::GET, &proxy.page(path), &[], None);
        (answer.status().as_u16(), runtime().block_on(answer.text()).unwrap())
    };
    assert_eq!(get("/healthz").0, 200);
    eventually("readiness", || (get("/readyz").0 == 200).then_some(()));
    Agent::connect(&proxy.url, Era::Stateless).ask("pml_execute", json!({"code": "return 1"}));
    let (status, metrics) = get("/metrics");
    assert_eq!(status, 200);
    assert!(metrics.contains("pml_tool_calls_total{kind=\"code\",outcome=\"success\"} 1"), "{metrics}");
    assert!(metrics.contains("pml_worker_processes") && metrics.contains("pml_listening 1"), "{metrics}");
    assert_eq!(get("/nowhere").0, 404);
    let rebound = send(Method::GET, &proxy.page("/metrics"), &[("host", "evil.example")], None);
    assert_eq!(rebound.status().as_u16(), 403);
}

#[test]
fn logs_have_a_request_id_and_no_values() {
    let database = Database::new();
    let (_, token) = new_token(&database, "acme", "ann");
    let proxy = proxy_with_tokens(&database, &[]);
    let agent = Agent::with_token(&proxy.url, Era::Stateless, &token);
    agent.ask("pml_execute", json!({"code": "return args.password", "args": {"password": "hunter2"}}));
    agent.failure(
        "pml_execute",
        json!({"code": "throw new Error(args.password)", "args": {"password": "hunter2"}}),
    );
    let headers = [
        ACCEPT,
        MODERN[0],
        MODERN[1],
        ("authorization", &format!("Bearer {token}")),
        ("x-request-id", "my-own-id"),
    ];
    let answer = send(Method::POST, &proxy.url, &headers, Some(list_tools()));
    assert_eq!(answer.headers()["x-request-id"], "my-own-id");
    let log = proxy.log();
    assert!(log.iter().any(|line| line.contains("request_id")), "{log:#?}");
    assert!(!log.iter().any(|line| line.contains("hunter2") || line.contains(&token)), "{log:#?}");
}
