use std::time::Duration;

use serde_json::{Value, json};

use super::super::{LeftOut, ParsedServers, ServerConfig, TransportConfig, foreign_fields, parse_servers};

fn parse(entries: Value) -> ParsedServers {
    parse_servers(&entries, |name| (name == "TOKEN").then(|| "s3cret-value".to_owned())).unwrap()
}

fn problems(entries: Value) -> Vec<String> {
    let parsed = parse(entries);
    assert!(parsed.servers.is_empty(), "{parsed:?}");
    parsed.left_out.into_iter().flat_map(|left_out| left_out.problems).collect()
}

fn program(server: &ServerConfig) -> (&str, Vec<&str>) {
    let TransportConfig::Stdio { command, args, .. } = &server.transport else { panic!("{server:?}") };
    (command, args.iter().map(String::as_str).collect())
}

fn env(server: &ServerConfig) -> Vec<(&str, &str)> {
    let TransportConfig::Stdio { env, .. } = &server.transport else { panic!("{server:?}") };
    env.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

fn url(server: &ServerConfig) -> &str {
    let TransportConfig::Http { url, .. } = &server.transport else { panic!("{server:?}") };
    url.as_str()
}

#[test]
fn reads_both_kinds() {
    let parsed = parse(json!({
        "files": {"command": "npx", "args": ["-y", "files", "${HOME:-/root}"], "env": {"API_TOKEN": "${TOKEN}"},
                  "cwd": "/tmp", "eager": true, "timeout": 1.5, "startupTimeout": 5},
        "web": {"type": "streamable-http", "url": "https://example.org/mcp",
                "headers": {"Authorization": "Bearer ${TOKEN}"}, "disabled": true},
    }));
    let files = &parsed.servers["files"];
    assert!(files.eager && !files.disabled);
    assert_eq!(files.timeout, Duration::from_millis(1500));
    assert_eq!(files.startup_timeout, Duration::from_secs(5));
    assert_eq!(program(files), ("npx", vec!["-y", "files", "/root"]));
    assert_eq!(env(files), [("API_TOKEN", "s3cret-value")]);
    assert_eq!(files.secrets, ["s3cret-value"]);
    let TransportConfig::Http { headers, .. } = &parsed.servers["web"].transport else { panic!() };
    assert_eq!(headers["Authorization"], "Bearer s3cret-value");
    assert!(!format!("{parsed:?}").contains("s3cret"), "{parsed:?}");
    assert!(parsed.warnings.is_empty() && parsed.left_out.is_empty());
}

#[test]
fn reads_the_entries_of_many_clients() {
    let parsed = parse(json!({
        "cline": {"type": "streamableHttp", "url": "http://x/mcp", "disabled": false, "timeout": 60},
        "vscode": {"type": "stdio", "command": "x", "env": {"PORT": 80, "DEBUG": true, "HOME": null}, "args": null},
        "windsurf": {"serverUrl": "http://x/mcp", "disabledTools": ["drop"]},
        "gemini": {"httpUrl": "http://x/mcp", "timeout": 30000, "includeTools": ["a", "b"], "excludeTools": ["b"]},
        "zed": {"command": {"path": "x", "args": ["y"], "env": {"K": "v"}}},
        "zed_empty": {"command": {"path": "x", "args": null, "env": null, "timeout": 20}},
        "opencode": {"type": "local", "command": ["npx", "-y", "x"], "enabled": true},
        "copilot": {"type": "local", "command": "x", "args": ["y"], "tools": ["*"]},
        "cherry": {"type": "Streamable_HTTP", "baseUrl": "http://x/mcp", "isActive": true},
    }));
    assert_eq!(parsed.left_out, []);
    assert_eq!(parsed.warnings, ["mcpServers.gemini.timeout: 30000 is read as milliseconds, 30 s; write 30"]);
    let server = |name: &str| &parsed.servers[name];
    for name in ["cline", "windsurf", "gemini", "cherry"] {
        assert_eq!(url(server(name)), "http://x/mcp", "{name}");
    }
    assert_eq!(env(server("vscode")), [("DEBUG", "true"), ("PORT", "80")]);
    assert_eq!((program(server("zed")), env(server("zed"))), (("x", vec!["y"]), vec![("K", "v")]));
    assert_eq!(program(server("zed_empty")), ("x", vec![]));
    assert_eq!(server("zed_empty").timeout, Duration::from_secs(20));
    assert_eq!(program(server("opencode")), ("npx", vec!["-y", "x"]));
    assert_eq!(server("gemini").timeout, Duration::from_secs(30));
    let allowed = |name: &str| ["a", "b", "drop"].map(|tool| server(name).tools.allows(tool));
    assert_eq!(allowed("gemini"), [true, false, false]);
    assert_eq!(allowed("windsurf"), [true, true, false]);
    assert_eq!(allowed("copilot"), [true, true, true]);
}

#[test]
fn explains_each_field_that_it_ignores() {
    let parsed = parse(json!({"a": {"command": "x", "autoApprove": ["y"], "gallery": true, "frob": 1},
                              "b": {"httpUrl": "http://x/mcp", "url": "http://x/sse", "oauth": {}},
                              "c": {"url": "http://x/sse", "headers": {"Authorization": "Bearer $TOKEN"}},
                              "d": {"command": "x", "frob": 1, "disabled": true}}));
    let warnings = [
        "mcpServers.a.autoApprove: ignored: which calls a person has to approve is up to your client",
        "mcpServers.a.gallery: ignored: it is for display only",
        "mcpServers.a.frob: unknown, ignored",
        "mcpServers.b.url: ignored: \"httpUrl\" is given too",
        "mcpServers.b.oauth: ignored: the proxy doesn't log in by itself. Put a token",
        "mcpServers.c.url: looks like the transport SSE of 2024",
        "mcpServers.c.headers.Authorization: $TOKEN is used as it stands; write ${TOKEN} for the variable",
    ];
    assert_eq!(parsed.warnings.len(), warnings.len(), "{:#?}", parsed.warnings);
    for (warning, expected) in parsed.warnings.iter().zip(warnings) {
        assert!(warning.starts_with(expected), "{warning}");
    }
    assert_eq!(foreign_fields::explanation("trust"), foreign_fields::explanation("alwaysAllow"));
}

#[test]
fn a_bad_entry_is_left_out_with_each_of_its_problems() {
    let parsed = parse(json!({"good": {"command": "x"}, "bad one": {"command": "x", "args": 1, "env": 2}}));
    assert!(parsed.servers.contains_key("good") && parsed.servers.len() == 1);
    let problems = [
        "mcpServers.\"bad one\".args: expected a list of strings, found a number",
        "mcpServers.\"bad one\".env: expected an object of strings, found a number",
    ];
    let bad = LeftOut { configured_name: "bad one".into(), problems: problems.map(str::to_owned).into() };
    assert_eq!(parsed.left_out, [bad]);
}

#[test]
fn names_server_and_field_of_each_problem() {
    assert_eq!(
        problems(json!({
            "a": {"command": 5},
            "b": {"command": "x", "args": "y", "env": {"PORT": []}, "disabled": "no", "timeout": "5s"},
            "c": {"url": "ftp://x", "headers": {"Accept": "x"}},
            "d": {"command": "x", "env": {"KEY": "${MISSING}"}},
            "e": {"command": "x", "url": "http://x"},
            "f": {},
            "h": 5,
            "i": {"command": "x", "timeout": 0},
            "j": {"type": "carrier pigeon", "url": "http://x"},
            "k": {"url": "http://x", "headers": {"Accept": "x", "a b": "y"}},
            "l": {"command": {"args": []}},
            "m": {"command": []},
            "n": {"command": "x", "args": ["${input:key}"]},
        })),
        [
            "mcpServers.a.command: expected a string, found a number",
            "mcpServers.a: \"command\" (a program) or \"url\" (an HTTP server) is missing",
            "mcpServers.b.disabled: expected true or false, found a string",
            "mcpServers.b.timeout: expected a number of seconds, found a string",
            "mcpServers.b.args: expected a list of strings, found a string",
            "mcpServers.b.env.PORT: expected a string, found a list",
            "mcpServers.c.url: must start with http:// or https:// and name a host",
            "mcpServers.d.env.KEY: the environment variable MISSING isn't set: set it, or write \
             ${MISSING:-default}",
            "mcpServers.e.command: can't be combined with \"url\": use one of them",
            "mcpServers.f: \"command\" (a program) or \"url\" (an HTTP server) is missing",
            "mcpServers.h: expected an object, found a number",
            "mcpServers.i.timeout: expected more than 0 and at most 86400 seconds",
            "mcpServers.j.type: expected \"stdio\" or \"http\", found \"carrier pigeon\"",
            "mcpServers.k.headers.Accept: is set by the transport itself; remove it",
            "mcpServers.k.headers.a b: invalid name of a header",
            "mcpServers.l.command.path: missing; it is the program to start",
            "mcpServers.l: \"command\" (a program) or \"url\" (an HTTP server) is missing",
            "mcpServers.m.command: is empty",
            "mcpServers.n.args[0]: VS Code asks a person for this input; here, set the environment variable INPUT_KEY",
        ]
    );
}

#[test]
fn a_transport_that_is_not_supported_is_explained() {
    let [sse, socket] = &problems(json!({
        "a": {"type": "sse", "url": "http://x/sse"}, "b": {"transport": "websocket", "url": "ws://x"},
    }))[..] else {
        panic!("two problems")
    };
    assert!(
        sse.contains("mcpServers.a.type: the transport SSE of 2024 isn't supported: use \"http\""),
        "{sse}"
    );
    assert!(sse.contains("mcp-remote"), "{sse}");
    assert!(socket.contains("mcpServers.b.transport: WebSockets aren't part of MCP"), "{socket}");
}

#[test]
fn names_that_are_no_identifiers_are_mapped() {
    let names = ["12306-mcp", "brave search", "Brave Search", "搜索", "a.b", "pml-capabilities", "plain"];
    let entries = names.iter().map(|name| ((*name).to_owned(), json!({"command": "x"})));
    let parsed = parse(Value::Object(entries.collect()));
    assert_eq!((parsed.servers.len(), parsed.left_out.len()), (names.len(), 0));
    for (identifier, server) in &parsed.servers {
        assert_eq!(*identifier, pml_core::server_name::server_identifier(&server.configured_name));
        let shown = server.shown_as(identifier);
        assert!(shown.contains(&server.configured_name) && shown.contains(identifier.as_str()), "{shown}");
    }
    assert_eq!(parsed.servers["plain"].shown_as("plain"), "plain");
}

#[test]
fn an_environment_file_is_read_and_env_wins() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = file("good", "# a comment\nAPI_KEY=\"from the file\"\nexport PLAIN=1\n\nPORT=80\n");
    let bad = file("bad", "GOOD=1\nsecret words without an equals sign\n");
    let missing = folder.path().join("missing");
    let parsed = parse(json!({
        "good": {"command": "x", "envFile": good, "env": {"PORT": "81"}},
        "bad": {"command": "x", "envFile": bad},
        "missing": {"command": "x", "envFile": missing},
    }));
    let good = &parsed.servers["good"];
    assert_eq!(env(good), [("API_KEY", "from the file"), ("PLAIN", "1"), ("PORT", "81")]);
    assert_eq!(good.secrets, ["from the file"]);
    let [bad, missing] = &parsed.left_out[..] else { panic!("{parsed:?}") };
    assert!(
        bad.problems[0].contains("has a line that isn't NAME=value") && !bad.problems[0].contains("secret")
    );
    assert!(missing.problems[0].contains("mcpServers.missing.envFile: "), "{missing:?}");
    assert!(missing.problems[0].contains("can't be read"), "{missing:?}");
}

#[test]
fn a_disabled_server_may_be_anything() {
    let parsed = parse(json!({"a": {"command": "x", "args": ["${MISSING}"], "disabled": true},
                              "b": {"type": "sse", "url": "http://x", "enabled": false}}));
    assert!(parsed.servers["a"].disabled && parsed.left_out.is_empty() && parsed.warnings.is_empty());
}

#[test]
fn the_whole_must_be_an_object() {
    let error = parse_servers(&json!([]), |_| None).unwrap_err();
    assert_eq!(error.0, ["mcpServers: expected an object of servers by name, found a list"]);
}
