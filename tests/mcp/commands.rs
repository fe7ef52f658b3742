//! The command line: help, configuration, tokens, doctor.

use std::{
    fs,
    process::{Output, Stdio},
};

use pml_tests::{
    Database,
    mcp::{Proxy, pml_by_itself},
};
use serde_json::Value;

fn run(args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = pml_by_itself();
    command.args(args);
    for (name, value) in env {
        command.env(name, value);
    }
    command.output().expect("pml starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_command_has_help() {
    for command in [
        &["--help"][..],
        &["serve", "--help"],
        &["stdio", "--help"],
        &["doctor", "--help"],
        &["token", "--help"],
        &["token", "create", "--help"],
        &["token", "list", "--help"],
        &["token", "revoke", "--help"],
        &["clients", "--help"],
    ] {
        let output = run(command, &[]);
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
        assert!(stdout(&output).contains("Usage:"), "{command:?}");
    }
}

#[test]
fn help_lists_only_the_settings_that_a_command_uses() {
    let help = |command: &[&str]| stdout(&run(command, &[]));
    let create = help(&["token", "create", "--help"]);
    for used in ["--label", "--expires-in", "--json", "--config", "--database-url", "--org", "--actor"] {
        assert!(create.contains(used), "{used} isn't in {create}");
    }
    for unused in ["--bind", "--worker", "--run-timeout", "--limit-runs", "--mcp-servers", "--listen-url"] {
        assert!(!create.contains(unused), "{unused} is in {create}");
        assert!(help(&["serve", "--help"]).contains(unused), "{unused}");
    }
    assert!(!help(&["token", "list", "--help"]).contains("--org"));
    assert!(help(&["clients", "--help"]).contains("--bind"));
}

#[test]
fn bad_configuration_is_said_and_exits_with_64() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let unknown_key = file("unknown.json", r#"{"databse_url": ""}"#);
    let broken = file("broken.json", "{");
    let list = file("list.json", "[]");
    let servers = file("servers.json", r#"{"mcpServers": {"x": {}}}"#);
    let no_servers = file("none.json", r#"{"x": {"command": "y"}}"#);
    let database = ("PML_DATABASE_URL", "postgres://localhost/x");
    type Case<'c> = (&'c [&'c str], &'c [(&'c str, &'c str)], &'c str);
    let cases: [Case<'_>; 19] = [
        (&["serve"], &[], "No database is configured"),
        (
            &["serve"],
            &[("PML_DATABASE_URL", "nonsense")],
            "database_url: expected the URL of a Postgres database",
        ),
        (
            &["serve", "--config", "/nonexistent/pml.json"],
            &[database],
            "/nonexistent/pml.json: can't be read",
        ),
        (&["serve", "--config", &unknown_key], &[database], "unknown field `databse_url`"),
        (&["serve", "--config", &broken], &[database], "broken.json"),
        (&["serve", "--mcp-servers", &servers, "--strict"], &[database], "mcpServers.x: \"command\""),
        (&["serve", "--mcp-servers", &servers], &[database, ("PML_STRICT", "true")], "mcpServers.x"),
        (&["serve", "--mcp-servers", &no_servers], &[database], "no servers found"),
        (&["serve", "--bind", "0.0.0.0:0", "--require-token", "false"], &[database], "other machines"),
        (&["serve", "--org", "not a name"], &[database], "not a name"),
        (
            &["serve", "--run-timeout", "0"],
            &[database],
            "run_timeout: expected more than 0 and at most 86400 seconds, found 0",
        ),
        (&["stdio", "--log-level", "no=such=level"], &[database], "log_level: invalid level"),
        (&["serve", "--no-such-flag"], &[database], "--no-such-flag"),
        (&["serve", "--log-level", "loud"], &[database], "\"loud\" isn't one of error, warn, info"),
        (&["serve", "--config", &list], &[database], "list.json: expected a JSON object, found a list"),
        (
            &["serve", "--allowed-hosts", "https://a.example/x"],
            &[database],
            "allowed_hosts: expected a name or address, such as",
        ),
        (&["serve", "--allowed-hosts", ""], &[database], "found \"\""),
        (
            &["serve", "--allowed-origins", "a.example"],
            &[database],
            "allowed_origins: expected a scheme and a host, such as",
        ),
        (&["serve", "--project", "a.b"], &[database], "It starts with a letter or underscore"),
    ];
    for (args, env, expected) in cases {
        let output = run(args, env);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("pml.json");
    let text = r#"{"database_url": "postgres://file/x", "bind": "127.0.0.1:1"}"#;
    fs::write(&config, text).unwrap();
    let config = config.to_str().unwrap();
    let shown = |args: &[&str], env: &[(&str, &str)]| stdout(&run(args, env));
    assert!(shown(&["clients", "--config", config], &[]).contains("127.0.0.1:1/mcp"));
    let env = [("PML_CONFIG", config), ("PML_BIND", "127.0.0.1:2")];
    assert!(shown(&["clients"], &env).contains("127.0.0.1:2/mcp"));
    assert!(shown(&["clients", "--bind", "127.0.0.1:3"], &env).contains("127.0.0.1:3/mcp"));
}

#[test]
fn what_to_paste_is_there_for_every_client() {
    let env = [("PML_DATABASE_URL", "postgres://localhost/x")];
    let text = stdout(&run(&["clients"], &env));
    for client in ["Claude Code", "Claude Desktop", "Cursor", "VS Code"] {
        assert!(text.contains(client), "{text}");
    }
    let all: Value = serde_json::from_str(&stdout(&run(&["clients", "--json"], &env))).unwrap();
    for client in ["Claude Desktop", "Cursor", "VS Code"] {
        for way in ["http", "stdio"] {
            let snippet: Value = serde_json::from_str(all[client][way].as_str().unwrap()).unwrap();
            assert!(snippet.is_object());
        }
    }
}

#[test]
fn a_reader_may_have_seen_enough() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = pml_by_itself();
    let started = command.arg("clients").stdout(writer).stderr(Stdio::piped()).spawn().expect("pml starts");
    let output = started.wait_with_output().expect("its output");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let database = Database::new();
    let admin = database.admin_url();
    let env = [("PML_DATABASE_URL", admin.as_str())];
    let made =
        run(&["token", "create", "--org", "acme", "--project", "web", "--actor", "ann", "--json"], &env);
    let made: Value = serde_json::from_str(&stdout(&made)).unwrap_or_else(|_| panic!("{}", stderr(&made)));
    let token = made["token"].as_str().unwrap();
    let dump = stdout(&run(&["token", "list", "--json"], &env));
    assert!(!dump.contains(token) && dump.contains("acme"), "{dump}");
    let stored: String = database
        .connect()
        .query_one("SELECT string_agg(t::text, ' ') FROM pml.tokens t", &[])
        .unwrap()
        .get(0);
    assert!(!stored.contains(token.trim_start_matches("pml_")), "{stored}");
    let id = made["id"].as_str().unwrap();
    assert!(run(&["token", "revoke", id], &env).status.success());
    assert_eq!(run(&["token", "revoke", id], &env).status.code(), Some(1));
    // A proxy's own role may check tokens, not make them.
    database.create_role("proxy", &["pml_proxy"]);
    let refused = run(&["token", "create"], &[("PML_DATABASE_URL", &database.url_of("proxy"))]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("Only an admin may add tokens"), "{}", stderr(&refused));
}

#[test]
fn the_doctor_tells_what_is_wrong() {
    let database = Database::new();
    database.create_role("proxy", &["pml_proxy"]);
    database.create_role("stranger", &[]);
    let examined = |url: &str| {
        let output = run(&["doctor", "--json"], &[("PML_DATABASE_URL", url)]);
        let report: Value =
            serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let found = |what: &str| {
            let findings = report["findings"].as_array().unwrap();
            findings.iter().find(|finding| finding["what"] == what).map(|finding| finding["health"].clone())
        };
        let healths: Vec<_> =
            ["database", "extension", "role", "LISTEN", "confinement", "sandbox"].map(found).into();
        (output.status.code(), healths, report)
    };
    let (status, healths, report) = examined(&database.url_of("proxy"));
    assert_eq!(status, Some(0), "{report}");
    assert!(healths.iter().all(|health| *health == Some("ok".into())), "{report}");
    let (status, healths, report) = examined(&database.url_of("stranger"));
    assert_eq!((status, healths[2].clone()), (Some(1), Some("broken".into())), "{report}");
    let nowhere = "host=/nonexistent user=nobody dbname=nothing";
    let (status, healths, report) = examined(nowhere);
    assert_eq!((status, healths[0].clone()), (Some(1), Some("broken".into())), "{report}");
    let output = run(&["doctor"], &[("PML_DATABASE_URL", nowhere)]);
    assert_eq!(stderr(&output), "", "its report says it all");
}

#[test]
fn a_schema_that_the_role_may_not_use_is_said() {
    let database = Database::new();
    let role = database.create_role("proxy", &["pml_proxy"]);
    let mut db = database.connect();
    db.batch_execute(
        "DROP EXTENSION pml; CREATE SCHEMA \"my Tools\"; CREATE EXTENSION pml SCHEMA \"my Tools\"",
    )
    .unwrap();
    let url = database.url_of("proxy");
    let grant = "GRANT USAGE ON SCHEMA \"my Tools\" TO pml_proxy;";
    let doctor = || stdout(&run(&["doctor"], &[("PML_DATABASE_URL", &url)]));
    let report = doctor();
    assert!(
        report.contains(&format!("BROKEN  functions: {role} may not use schema \"my Tools\"")),
        "{report}"
    );
    assert!(report.contains(&format!("Run: {grant}")), "{report}");
    let refused = stderr(&run(&["token", "list"], &[("PML_DATABASE_URL", &url)]));
    assert!(refused.contains("may not use schema \"my Tools\"") && refused.contains(grant), "{refused}");
    db.batch_execute(grant).unwrap();
    let report = doctor();
    assert!(report.contains("ok      functions: callable"), "{report}");
}

#[test]
fn a_taken_port_is_said() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let address = proxy.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let output = run(&["serve", "--bind", &address], &[("PML_DATABASE_URL", &database.url_of("proxy"))]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("taken by another program"), "{}", stderr(&output));
}
