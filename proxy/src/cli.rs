//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::GivenSettings;

const AFTER_HELP: &str = "\
Every setting comes from the configuration file (database_url), the environment (PML_DATABASE_URL) or a flag \
(--database-url); a flag wins over the environment, and the environment over the file. \
Exit status: 0 done, 1 failed, 64 wrong configuration or usage.";

/// A memory of code that worked, for AI agents: MCP in front, Postgres behind.
#[derive(Debug, Parser)]
#[command(name = "pml", version, after_help = AFTER_HELP, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve MCP over streamable HTTP, at http://127.0.0.1:7410/mcp unless told otherwise
    Serve(GivenSettings),
    /// Serve MCP on standard input and output, for a client that starts programs
    Stdio(GivenSettings),
    /// Check database, extension, role, sandbox and downstream servers, and say what to do
    Doctor(DoctorArgs),
    /// Make, list and revoke the bearer tokens that HTTP clients use
    #[command(subcommand)]
    Token(TokenCommand),
    /// Print what to paste into Claude Code, Claude Desktop, Cursor and VS Code
    Clients(ClientsArgs),
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub settings: GivenSettings,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it, once; Postgres keeps only its hash
    Create(TokenCreateArgs),
    /// List tokens: whose they are and when they were used
    List(TokenListArgs),
    /// Revoke a token; it stops working at once, on every proxy
    Revoke(TokenRevokeArgs),
}

#[derive(Debug, Args)]
pub struct TokenCreateArgs {
    #[command(flatten)]
    pub settings: GivenSettings,
    /// What the token is for
    #[arg(long)]
    pub label: Option<String>,
    /// Days until it stops working [default: never]
    #[arg(long, value_name = "DAYS")]
    pub expires_in: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct TokenListArgs {
    #[command(flatten)]
    pub settings: GivenSettings,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct TokenRevokeArgs {
    /// The token's id, from `pml token list`
    pub id: uuid::Uuid,
    #[command(flatten)]
    pub settings: GivenSettings,
}

#[derive(Debug, Args)]
pub struct ClientsArgs {
    #[command(flatten)]
    pub settings: GivenSettings,
    /// One client only
    #[arg(long, value_name = "CLIENT")]
    pub client: Option<Client>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A program that speaks MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
}
