//! `Forwarded` headers are trusted only from configured reverse proxies.

use pml_tests::{
    Database,
    mcp::{Proxy, ProxySetup, Wire},
};

fn get(proxy: &Proxy, from: &str, path: &str, lines: &[&str]) -> (u16, String) {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    Wire::from_address(from, proxy).ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"))
}

fn wrong_token(proxy: &Proxy, client: &str) -> u16 {
    let lines = [&*format!("X-Forwarded-For: {client}"), "Authorization: Bearer pml_wrong"];
    get(proxy, "127.0.0.1", "/mcp", &lines).0
}

#[test]
fn metrics_are_for_this_machine_also_behind_a_reverse_proxy() {
    let database = Database::new();
    let plain = Proxy::start(&database);
    let behind = ProxySetup::new(&database).args(&["--trusted-proxies", "127.0.0.1,10.0.0.0/8"]).start();
    let metrics = |proxy: &Proxy, from: &str, lines: &[&str]| get(proxy, from, "/metrics", lines).0;
    let outside = ["X-Forwarded-For: 192.0.2.1"];
    assert_eq!(metrics(&behind, "127.0.0.1", &[]), 200);
    assert_eq!(metrics(&behind, "127.0.0.1", &outside), 403);
    assert_eq!(metrics(&behind, "127.0.0.1", &["Forwarded: for=192.0.2.1;proto=https"]), 403);
    assert_eq!(metrics(&behind, "127.0.0.1", &["X-Forwarded-For: 127.0.0.1, 192.0.2.1"]), 403);
    assert_eq!(metrics(&behind, "127.0.0.1", &["Forwarded: for=unknown"]), 403);
    // Others aren't trusted.
    assert_eq!(metrics(&behind, "127.0.0.2", &outside), 200);
    assert_eq!(metrics(&plain, "127.0.0.1", &outside), 200);
    let (status, answer) =
        get(&behind, "127.0.0.1", "/healthz", &["X-Forwarded-For: 192.0.2.1", "Forwarded: for=127.0.0.1"]);
    assert_eq!(status, 400, "{answer}");
    assert!(answer.contains("name different clients"), "{answer}");
}

#[test]
fn limits_by_address_count_the_client_behind_the_reverse_proxy() {
    let database = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    let args = ["--require-token", "--trusted-proxies", "127.0.0.1", "--max-connections-per-address", "1"];
    let proxy = ProxySetup::new(&database).args(&args).start();
    let guesses = (0..100).map(|_| wrong_token(&proxy, "192.0.2.1"));
    assert!(guesses.into_iter().any(|status| status == 429));
    assert_eq!(wrong_token(&proxy, "192.0.2.2"), 401);
    assert!(proxy.log().iter().any(|line| line.contains("\"client\":\"192.0.2.1\"")));
    // The reverse proxy stands for many clients: its connections don't count by address.
    let mut held: Vec<Wire> = (0..5).map(|_| Wire::from_address("127.0.0.1", &proxy)).collect();
    for wire in &mut held {
        assert_eq!(wire.ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").0, 200);
    }
    for wire in &mut held {
        assert_eq!(wire.ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").0, 200);
    }
}
