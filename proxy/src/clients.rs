//! `pml clients`: the configuration to paste into programs that speak MCP.

use std::{env, path::PathBuf};

use serde_json::{Value, json};

use crate::{cli::ClientProgram, config::Config};

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
pub fn print(config: &Config, client: Option<ClientProgram>, as_json: bool) {
    let scheme = if config.http.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}/mcp", config.http.bind);
    let program = env::current_exe().unwrap_or_else(|_| PathBuf::from("pml"));
    let snippets = snippets(&url, &program.display().to_string(), config.http.require_token);
    let wanted = snippets.iter().filter(|snippet| client.is_none_or(|client| client == snippet.client));
    if as_json {
        let all: serde_json::Map<String, Value> = wanted
            .map(|snippet| {
                let value = json!({"place": snippet.target, "http": snippet.http, "stdio": snippet.stdio});
                (snippet.title.to_owned(), value)
            })
            .collect();
        println!("{}", Value::Object(all));
        return;
    }
    for snippet in wanted {
        println!(
            "{} ({})\n  HTTP:  {}\n  stdio: {}\n",
            snippet.title, snippet.target, snippet.http, snippet.stdio
        );
    }
    println!(
        "For stdio, set PML_DATABASE_URL (or PML_CONFIG) in the environment of the program that starts pml."
    );
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
    // Claude Desktop's file takes only programs; mcp-remote is the usual bridge to a URL.
    let mut bridge = vec!["-y".to_owned(), "mcp-remote".to_owned(), url.to_owned()];
    if token {
        bridge.extend(["--header".to_owned(), "Authorization: Bearer <token>".to_owned()]);
    }
    vec![
        Snippet {
            client: ClientProgram::ClaudeCode,
            title: "Claude Code",
            target: "in a shell",
            http: format!("claude mcp add --transport http pml {url}{header_flag}"),
            stdio: format!("claude mcp add pml -- {program} stdio"),
        },
        Snippet {
            client: ClientProgram::ClaudeDesktop,
            title: "Claude Desktop",
            target: "claude_desktop_config.json",
            http: json!({"mcpServers": {"pml": {"command": "npx", "args": bridge}}}).to_string(),
            stdio: json!({"mcpServers": {"pml": command}}).to_string(),
        },
        Snippet {
            client: ClientProgram::Cursor,
            title: "Cursor",
            target: ".cursor/mcp.json",
            http: json!({"mcpServers": {"pml": with_headers(json!({"url": url}))}}).to_string(),
            stdio: json!({"mcpServers": {"pml": command}}).to_string(),
        },
        Snippet {
            client: ClientProgram::VsCode,
            title: "VS Code",
            target: ".vscode/mcp.json",
            http: json!({"servers": {"pml": with_headers(json!({"type": "http", "url": url}))}}).to_string(),
            stdio: json!({"servers": {"pml": {"type": "stdio", "command": program, "args": ["stdio"]}}})
                .to_string(),
        },
    ]
}
