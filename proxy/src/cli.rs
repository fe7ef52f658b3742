//! The command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

const AFTER_HELP: &str = "\
Every setting comes from the configuration file, the environment or a flag; a flag wins over the environment, and the \
environment over the file. Exit status: 0 done, 1 failed, 64 wrong configuration or usage.";

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
    Serve(ServeArgs),
    /// Serve MCP on standard input and output, for a client that starts programs
    Stdio(CommonArgs),
    /// Check database, extension, role, sandbox and downstream servers, and say what to do
    Doctor(DoctorArgs),
    /// Make, list and revoke the bearer tokens that HTTP clients use
    #[command(subcommand)]
    Token(TokenCommand),
    /// Print what to paste into Claude Code, Claude Desktop, Cursor and VS Code
    Clients(ClientsArgs),
}

/// Settings that every command knows.
#[derive(Debug, Default, Args)]
pub struct CommonArgs {
    /// Configuration file (JSON) [default: pml/config.json in $XDG_CONFIG_HOME or ~/.config, if it is there]
    #[arg(long, value_name = "FILE", env = "PML_CONFIG", help_heading = "Configuration")]
    pub config: Option<PathBuf>,

    /// Where Postgres is: postgres://user:password@host/database, or key=value pairs
    #[arg(
        long,
        value_name = "URL",
        env = "PML_DATABASE_URL",
        hide_env_values = true,
        help_heading = "Database"
    )]
    pub database_url: Option<String>,

    /// A direct way to the same database for LISTEN, if the other goes through a transaction pooler such as pgbouncer
    #[arg(
        long,
        value_name = "URL",
        env = "PML_LISTEN_URL",
        hide_env_values = true,
        help_heading = "Database"
    )]
    pub listen_url: Option<String>,

    /// Connections to Postgres at most [default: 16]
    #[arg(long, value_name = "N", env = "PML_DATABASE_CONNECTIONS", help_heading = "Database")]
    pub database_connections: Option<usize>,

    /// How long a request waits for Postgres to come back or a connection to be free [default: 10]
    #[arg(long, value_name = "SECONDS", env = "PML_DATABASE_PATIENCE", help_heading = "Database")]
    pub database_patience: Option<f64>,

    /// Organisation of requests without a token [default: local]
    #[arg(long, env = "PML_ORG", help_heading = "Scope")]
    pub org: Option<String>,

    /// Project of requests without a token [default: default]
    #[arg(long, env = "PML_PROJECT", help_heading = "Scope")]
    pub project: Option<String>,

    /// Actor of requests without a token [default: the name of the user who runs this]
    #[arg(long, env = "PML_ACTOR", help_heading = "Scope")]
    pub actor: Option<String>,

    /// File with the MCP servers behind this one, in the usual `mcpServers` form; instead of those in the configuration
    #[arg(long, value_name = "FILE", env = "PML_MCP_SERVERS", help_heading = "Downstream servers")]
    pub mcp_servers: Option<PathBuf>,

    /// Whether simple tool calls are passed through to their servers unparsed, which is faster [default: true]
    #[arg(
        long,
        value_name = "BOOL",
        env = "PML_PASSTHROUGH",
        num_args = 0..=1,
        default_missing_value = "true",
        help_heading = "Downstream servers"
    )]
    pub passthrough: Option<bool>,

    /// The sandbox program [default: pml-worker beside this one]
    #[arg(long, value_name = "FILE", env = "PML_WORKER", help_heading = "Sandbox")]
    pub worker: Option<PathBuf>,

    /// Runs at the same time [default: two for each core, at least 4]
    #[arg(long, value_name = "N", env = "PML_WORKER_SLOTS", help_heading = "Sandbox")]
    pub worker_slots: Option<usize>,

    /// How long a run may take, waiting for tools included [default: 30]
    #[arg(long, value_name = "SECONDS", env = "PML_RUN_TIMEOUT", help_heading = "Sandbox")]
    pub run_timeout: Option<f64>,

    /// Memory of a run, in MiB [default: 64]
    #[arg(long, value_name = "MIB", env = "PML_RUN_MEMORY", help_heading = "Sandbox")]
    pub run_memory: Option<u64>,

    /// A layer of the confinement that this kernel may lack; see docs/worker.md first
    #[arg(
        long,
        value_name = "LAYER",
        env = "PML_ALLOW_MISSING",
        value_delimiter = ',',
        help_heading = "Sandbox"
    )]
    pub allow_missing: Option<Vec<Layer>>,

    #[command(flatten)]
    pub limits: LimitArgs,

    /// How logs look on standard error [default: human]
    #[arg(long, value_name = "FORMAT", env = "PML_LOG_FORMAT", help_heading = "Logs")]
    pub log_format: Option<LogFormat>,

    /// error, warn, info, debug, trace, or directives such as `info,pml_proxy=debug` [default: info]
    #[arg(long, value_name = "LEVEL", env = "PML_LOG", help_heading = "Logs")]
    pub log_level: Option<String>,
}

/// What one token may use; 0 is no limit.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Limits of each token (0 is none)")]
pub struct LimitArgs {
    /// Runs at the same time, those that wait included [default: 100]
    #[arg(long, value_name = "N", env = "PML_LIMIT_RUNS")]
    pub limit_runs: Option<usize>,

    /// Runs a minute, a quarter of them at once [default: 3000]
    #[arg(long, value_name = "N", env = "PML_LIMIT_RUNS_PER_MINUTE")]
    pub limit_runs_per_minute: Option<u32>,

    /// Computing time of runs a minute, a quarter of it at once [default: 30]
    #[arg(long, value_name = "SECONDS", env = "PML_LIMIT_CPU_SECONDS_PER_MINUTE")]
    pub limit_cpu_seconds_per_minute: Option<f64>,

    /// Results of runs a minute, a quarter of them at once [default: 64]
    #[arg(long, value_name = "MIB", env = "PML_LIMIT_RESULT_MIB_PER_MINUTE")]
    pub limit_result_mib_per_minute: Option<f64>,

    /// Rows that its scope may hold before new code is refused [default: 1000000]
    #[arg(long, value_name = "N", env = "PML_LIMIT_STORED_ROWS")]
    pub limit_stored_rows: Option<u64>,

    /// Questions to people at the same time, and ten times that in all; further ones are declined [default: 8]
    #[arg(long, value_name = "N", env = "PML_LIMIT_QUESTIONS")]
    pub limit_questions: Option<usize>,

    /// The tokens of one organisation together may use so many times what one may [default: 4]
    #[arg(long, value_name = "N", env = "PML_LIMIT_ORGANISATION")]
    pub limit_organisation: Option<usize>,

    /// A client that has been away for so long isn't asked any more, and its call ends; not 0 [default: 30]
    #[arg(long, value_name = "SECONDS", env = "PML_LIMIT_ABSENT_SECONDS")]
    pub limit_absent_seconds: Option<f64>,
}

#[derive(Debug, Default, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub http: HttpArgs,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "HTTP")]
pub struct HttpArgs {
    /// Address and port to listen on [default: 127.0.0.1:7410]
    #[arg(long, value_name = "ADDRESS:PORT", env = "PML_BIND")]
    pub bind: Option<SocketAddr>,

    /// Whether every request needs a token; must be so unless the address is a loopback one [default: only then]
    #[arg(long, value_name = "BOOL", env = "PML_REQUIRE_TOKEN", num_args = 0..=1, default_missing_value = "true")]
    pub require_token: Option<bool>,

    /// A further name under which clients reach this server (its `Host` header); loopback names are always allowed
    #[arg(long = "allowed-host", value_name = "HOST", env = "PML_ALLOWED_HOSTS", value_delimiter = ',')]
    pub allowed_hosts: Option<Vec<String>>,

    /// A further web origin whose pages may use this server, such as https://app.example.com
    #[arg(
        long = "allowed-origin",
        value_name = "ORIGIN",
        env = "PML_ALLOWED_ORIGINS",
        value_delimiter = ','
    )]
    pub allowed_origins: Option<Vec<String>>,

    /// Largest request body, in bytes [default: 4194304]
    #[arg(long, value_name = "BYTES", env = "PML_MAX_BODY")]
    pub max_body: Option<usize>,

    /// Requests a second for each token (without tokens: each address); 0 is no limit [default: 200, loopback 0]
    #[arg(long, value_name = "N", env = "PML_RATE")]
    pub rate: Option<u32>,

    /// Requests under way at the same time, for each token and ten times that in all [default: 100]
    #[arg(long, value_name = "N", env = "PML_CONCURRENCY")]
    pub concurrency: Option<usize>,

    /// How long running calls may go on after SIGTERM or SIGINT [default: 30]
    #[arg(long, value_name = "SECONDS", env = "PML_DRAIN")]
    pub drain: Option<f64>,

    /// Open connections at most; when all are taken, the one that waited longest without a request goes [default: 1000]
    #[arg(long, value_name = "N", env = "PML_MAX_CONNECTIONS")]
    pub max_connections: Option<usize>,

    /// Open connections of one address (IPv6: of one /64) at most, trusted proxies apart; 0 is no limit [default: 100,
    /// on a loopback address 0]
    #[arg(long, value_name = "N", env = "PML_MAX_CONNECTIONS_PER_ADDRESS")]
    pub max_connections_per_address: Option<usize>,

    /// How long a TLS handshake may take, and the head of a request [default: 10]
    #[arg(long, value_name = "SECONDS", env = "PML_HEADER_TIMEOUT")]
    pub header_timeout: Option<f64>,

    /// How long the body of a request may take, plus a second for every `body-rate` bytes that came [default: 10]
    #[arg(long, value_name = "SECONDS", env = "PML_BODY_TIMEOUT")]
    pub body_timeout: Option<f64>,

    /// Slowest pace of a body after its `body-timeout`, in bytes a second [default: 16384]
    #[arg(long, value_name = "BYTES", env = "PML_BODY_RATE")]
    pub body_rate: Option<u64>,

    /// How long a connection stays open between requests [default: 120]
    #[arg(long, value_name = "SECONDS", env = "PML_IDLE_TIMEOUT")]
    pub idle_timeout: Option<f64>,

    /// How long a client may take none of an answer that is there [default: 30]
    #[arg(long, value_name = "SECONDS", env = "PML_SEND_TIMEOUT")]
    pub send_timeout: Option<f64>,

    /// A reverse proxy (an address, or a network such as 10.0.0.0/8) whose `Forwarded` and `X-Forwarded-…` are believed
    #[arg(long, value_name = "ADDRESS", env = "PML_TRUSTED_PROXIES", value_delimiter = ',')]
    pub trusted_proxies: Option<Vec<String>>,

    /// Certificate chain for TLS, a PEM file; it and the key are read again on SIGHUP [default: no TLS]
    #[arg(long, value_name = "FILE", env = "PML_TLS_CERTIFICATE")]
    pub tls_certificate: Option<PathBuf>,

    /// Private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", env = "PML_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub common: CommonArgs,
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
    pub common: CommonArgs,
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
    pub common: CommonArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct TokenRevokeArgs {
    /// The token's id, from `pml token list`
    pub id: uuid::Uuid,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub struct ClientsArgs {
    #[command(flatten)]
    pub serve: ServeArgs,
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

/// How logs look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people
    #[default]
    Human,
    /// One JSON object a line
    Json,
}

/// A part of the confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    Landlock,
    Seccomp,
}
