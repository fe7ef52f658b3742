//! `pml clients`: what to paste into the programs that speak MCP.

use std::{env, path::PathBuf};

use serde_json::{Value, json};

use crate::{cli::Client, config::Config};

/// One way to connect one program.
struct Snippet {
    client: Client,
    title: &'static str,
    /// Where it goes.
    place: &'static str,
    http: String,
    stdio: String,
}

/// Prints it for one client, or for all.
pub fn print(config: &Config, client: Option<Client>, as_json: bool) {
    let scheme = if config.http.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}/mcp", config.http.bind);
    let program = env::current_exe().unwrap_or_else(|_| PathBuf::from("pml"));
    let snippets = snippets(&url, &program.display().to_string(), config.http.require_token);
    let wanted = snippets.iter().filter(|snippet| client.is_none_or(|client| client == snippet.client));
    if as_json {
        let all: serde_json::Map<String, Value> = wanted
            .map(|snippet| {
                let value = json!({"place": snippet.place, "http": snippet.http, "stdio": snippet.stdio});
                (snippet.title.to_owned(), value)
            })
            .collect();
        println!("{}", Value::Object(all));
        return;
    }
    for snippet in wanted {
        println!(
            "{} ({})\n  HTTP:  {}\n  stdio: {}\n",
            snippet.title, snippet.place, snippet.http, snippet.stdio
        );
    }
    println!("For stdio, PML_DATABASE_URL (or PML_CONFIG) must be set where the program starts pml.");
}

fn snippets(url: &str, program: &str, token: bool) -> Vec<Snippet> {
    let authorization = json!({"Authorization": "Bearer <token>"});
    let with_headers = |mut entry: Value| {
        if token {
            entry["headers"] = authorization.clone();
        }
        entry
    };
    let header_flag = if token { " --header 'Authorization: Bearer <token>'" } else { "" };
    let command = json!({"command": program, "args": ["stdio"]});
    // Claude Desktop's file takes programs only; mcp-remote is the usual bridge to a URL.
    let mut bridge = vec!["-y".to_owned(), "mcp-remote".to_owned(), url.to_owned()];
    if token {
        bridge.extend(["--header".to_owned(), "Authorization: Bearer <token>".to_owned()]);
    }
    vec![
        Snippet {
            client: Client::ClaudeCode,
            title: "Claude Code",
            place: "in a shell",
            http: format!("claude mcp add --transport http pml {url}{header_flag}"),
            stdio: format!("claude mcp add pml -- {program} stdio"),
        },
        Snippet {
            client: Client::ClaudeDesktop,
            title: "Claude Desktop",
            place: "claude_desktop_config.json",
            http: json!({"mcpServers": {"pml": {"command": "npx", "args": bridge}}}).to_string(),
            stdio: json!({"mcpServers": {"pml": command}}).to_string(),
        },
        Snippet {
            client: Client::Cursor,
            title: "Cursor",
            place: ".cursor/mcp.json",
            http: json!({"mcpServers": {"pml": with_headers(json!({"url": url}))}}).to_string(),
            stdio: json!({"mcpServers": {"pml": command}}).to_string(),
        },
        Snippet {
            client: Client::VsCode,
            title: "VS Code",
            place: ".vscode/mcp.json",
            http: json!({"servers": {"pml": with_headers(json!({"type": "http", "url": url}))}}).to_string(),
            stdio: json!({"servers": {"pml": {"type": "stdio", "command": program, "args": ["stdio"]}}})
                .to_string(),
        },
    ]
}
