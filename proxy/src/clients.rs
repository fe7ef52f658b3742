//! `pml clients`: the configuration to paste into programs that speak MCP.

use std::{borrow::Cow, env, path::PathBuf};

use serde_json::{Value, json};

use crate::{cli::ClientProgram, config::ClientsConfig, output::print_line};

/// The configuration of one program.
struct Snippet {
    client: ClientProgram,
    title: &'static str,
    /// Where to paste it.
    target: &'static str,
    http: String,
    stdio: String,
}

/// Prints the configuration of one client, or of all.
pub fn print(config: &ClientsConfig, client: Option<ClientProgram>, as_json: bool) {
    let snippets = snippets(config);
    let wanted = snippets.iter().filter(|snippet| client.is_none_or(|client| client == snippet.client));
    if as_json {
        let all: serde_json::Map<String, Value> = wanted
            .map(|snippet| {
                let value = json!({"place": snippet.target, "http": snippet.http, "stdio": snippet.stdio});
                (snippet.title.to_owned(), value)
            })
            .collect();
        print_line(format_args!("{}", Value::Object(all)));
        return;
    }
    for snippet in wanted {
        print_line(format_args!(
            "{} ({})\n  HTTP:  {}\n  stdio: {}\n",
            snippet.title, snippet.target, snippet.http, snippet.stdio
        ));
    }
    if config.http.require_token {
        print_line(format_args!("Replace <token> by one that `pml token create` prints."));
    }
    if !config.has_database {
        print_line(format_args!(
            "For stdio, add PML_DATABASE_URL to the environment: `pml clients --database-url postgres://user@host/database` \
             prints it with one."
        ));
    }
}

fn snippets(config: &ClientsConfig) -> Vec<Snippet> {
    let scheme = if config.http.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}/mcp", config.http.bind);
    let authorization = config.http.require_token.then_some("Authorization: Bearer <token>");
    let program = env::current_exe().unwrap_or_else(|_| PathBuf::from("pml")).display().to_string();
    let mut started = json!({"command": program, "args": ["stdio"]});
    if !config.environment.is_empty() {
        started["env"] = json!(config.environment);
    }
    let with_headers = |mut entry: Value| {
        if let Some((name, value)) = authorization.and_then(|header| header.split_once(": ")) {
            entry["headers"] = json!({name: value});
        }
        entry
    };
    // Claude Desktop's file takes only programs; mcp-remote is the usual bridge to a URL.
    let mut bridge = vec!["-y", "mcp-remote", &url];
    bridge.extend(authorization.into_iter().flat_map(|header| ["--header", header]));
    let with_type = |kind: &str, mut entry: Value| {
        entry["type"] = json!(kind);
        entry
    };
    vec![
        Snippet {
            client: ClientProgram::ClaudeCode,
            title: "Claude Code",
            target: "in a shell",
            http: claude_over_http(&url, authorization),
            stdio: claude_over_stdio(config, &program),
        },
        Snippet {
            client: ClientProgram::ClaudeDesktop,
            title: "Claude Desktop",
            target: "claude_desktop_config.json",
            http: json!({"mcpServers": {"pml": {"command": "npx", "args": bridge}}}).to_string(),
            stdio: json!({"mcpServers": {"pml": started}}).to_string(),
        },
        Snippet {
            client: ClientProgram::Cursor,
            title: "Cursor",
            target: ".cursor/mcp.json",
            http: json!({"mcpServers": {"pml": with_headers(json!({"url": url}))}}).to_string(),
            stdio: json!({"mcpServers": {"pml": started}}).to_string(),
        },
        Snippet {
            client: ClientProgram::VsCode,
            title: "VS Code",
            target: ".vscode/mcp.json",
            http: json!({"servers": {"pml": with_type("http", with_headers(json!({"url": url})))}})
                .to_string(),
            stdio: json!({"servers": {"pml": with_type("stdio", started.clone())}}).to_string(),
        },
    ]
}

fn claude_over_http(url: &str, authorization: Option<&str>) -> String {
    let mut words = vec!["claude", "mcp", "add", "--transport", "http", "pml", url];
    words.extend(authorization.into_iter().flat_map(|header| ["--header", header]));
    shell(words)
}

/// The name comes first, because `--env` takes every word up to the next option.
fn claude_over_stdio(config: &ClientsConfig, program: &str) -> String {
    let variables: Vec<String> =
        config.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut words = vec!["claude", "mcp", "add", "pml"];
    words.extend(variables.iter().flat_map(|variable| ["--env", variable]));
    words.extend(["--", program, "stdio"]);
    shell(words)
}

/// A line for a shell.
fn shell(words: Vec<&str>) -> String {
    // Only a NUL can't be quoted, and no argument or path has one.
    let quoted = words.into_iter().map(|word| shlex::try_quote(word).unwrap_or(Cow::Borrowed(word)));
    quoted.collect::<Vec<_>>().join(" ")
}
