//! Malformed HTTP is rejected with a reason.

use pml_tests::{
    Database,
    mcp::{Proxy, Wire},
};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// A request with these lines in its head, and its answer.
fn post(proxy: &Proxy, target: &str, lines: &[&str], body: &str) -> (u16, String) {
    let mut request = format!(
        "POST {target} HTTP/1.1\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
    );
    for line in lines {
        request.push_str(line);
        request.push_str("\r\n");
    }
    Wire::to(proxy).ask(&format!("{request}\r\n{body}"))
}

fn with_length(lines: &[&str]) -> Vec<String> {
    let length = format!("Content-Length: {}", PING.len());
    lines.iter().map(|line| (*line).to_owned()).chain([length]).collect()
}

fn status(proxy: &Proxy, target: &str, lines: &[&str]) -> (u16, String) {
    let lines = with_length(lines);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    post(proxy, target, &lines, PING)
}

#[test]
fn a_request_names_one_host() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    for (target, lines, expected, says) in [
        ("/mcp", &["Host: localhost"][..], 200, "serverInfo"),
        ("http://localhost:80/mcp", &["Host: LOCALHOST"], 200, "serverInfo"),
        ("/mcp", &["Host: localhost", "Host: localhost"], 400, "more than one Host"),
        ("/mcp", &["Host: localhost", "Host: evil.example"], 400, "more than one Host"),
        ("/mcp", &[], 400, "no Host"),
        ("/mcp", &["Host: localhost:80.evil.com"], 400, "isn't a host"),
        ("/mcp", &["Host: user@localhost"], 400, "isn't a host"),
        ("http://evil.example/mcp", &["Host: localhost"], 400, "differs from its Host"),
        ("http://localhost/mcp", &["Host: evil.example"], 400, "differs from its Host"),
        ("http://evil.example/mcp", &["Host: evil.example"], 403, "allowed_hosts"),
        ("/healthz", &["Host: localhost", "Host: localhost"], 400, "more than one Host"),
    ] {
        let (status, answer) = status(&proxy, target, lines);
        assert_eq!(status, expected, "{target} {lines:?}: {answer}");
        assert!(answer.contains(says), "{target} {lines:?}: {answer}");
    }
}

#[test]
fn pages_whose_origin_only_looks_alike_get_nothing() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    for (origin, expected) in [
        ("http://localhost:3000", 200),
        ("http://127.0.0.1", 200),
        ("http://[::1]:80", 200),
        ("http://localhost:80.evil.com", 403),
        ("http://localhost.evil.com", 403),
        ("http://localhost:80/", 403),
        ("http://localhost@evil.com", 403),
        ("http://localhost:", 403),
        ("http://localhost http://evil.com", 403),
        ("null", 403),
        ("", 403),
    ] {
        let (status, answer) = status(&proxy, "/mcp", &["Host: localhost", &format!("Origin: {origin}")]);
        assert_eq!(status, expected, "{origin}: {answer}");
        assert!(status == 200 || answer.contains("allowed_origins"), "{origin}: {answer}");
    }
    let twice = ["Host: localhost", "Origin: http://localhost", "Origin: http://evil.com"];
    assert_eq!(status(&proxy, "/mcp", &twice).0, 403);
}

#[test]
fn a_malformed_body_is_said_to_be_one() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let chunked = ["Host: localhost", "Transfer-Encoding: chunked"];
    let whole = format!("{:x}\r\n{PING}\r\n0\r\n\r\n", PING.len());
    assert_eq!(post(&proxy, "/mcp", &chunked, &whole).0, 200);
    for body in ["zz\r\n{}\r\n0\r\n\r\n", "2\r\n{}x\r\n0\r\n\r\n", "-2\r\n{}\r\n", "2;a\nb\r\n{}\r\n"] {
        let (status, answer) = post(&proxy, "/mcp", &chunked, body);
        assert_eq!(status, 400, "{body:?}: {answer}");
        assert!(answer.contains("\"jsonrpc\"") && answer.contains("chunks"), "{body:?}: {answer}");
    }
    let both = ["Host: localhost", "Content-Length: 2", "Transfer-Encoding: chunked"];
    let (status, answer) = post(&proxy, "/mcp", &both, &whole);
    assert!(
        status == 200 && answer.contains("connection: close"),
        "the chunks count, and nothing follows: {answer}"
    );
    let mut early = Wire::to(&proxy);
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{";
    assert!(early.send(head));
    early.end();
    let answer = early.answer();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("ended early"), "{answer}");
}
