//! The command line: the commands with their own options, and the settings that each of them shows.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::config::{self, GivenSettings};

const AFTER_HELP: &str = "\
Every setting comes from the configuration file (database_url), the environment (PML_DATABASE_URL) or a flag \
(--database-url); a flag wins over the environment, and the environment over the file. \
Exit status: 0 done, 1 failed, 64 wrong configuration or usage.";

/// A memory of code that worked, for AI agents: MCP in front, Postgres behind.
#[derive(Debug, Parser)]
#[command(name = "pml", version, after_help = AFTER_HELP, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: AnyCommand,
}

#[derive(Debug, Subcommand)]
enum AnyCommand {
    #[command(flatten)]
    Configured(Command),
    /// Write man pages and shell completions into a folder, for packages
    #[command(hide = true)]
    Manual(ManualArgs),
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve MCP over streamable HTTP, by default at http://127.0.0.1:7410/mcp
    Serve,
    /// Serve MCP on standard input and output, for clients that start programs
    Stdio,
    /// Check database, extension, role, sandbox and downstream servers, and say how to fix them
    Doctor(OutputArgs),
    /// Create, list and revoke bearer tokens for HTTP clients
    #[command(subcommand)]
    Token(TokenCommand),
    /// Print the configuration for Claude Code, Claude Desktop, Cursor and VS Code
    Clients(ClientsArgs),
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print it once; Postgres stores only its hash
    Create(TokenCreateArgs),
    /// List tokens with their scopes and when they were last used
    List(OutputArgs),
    /// Revoke a token at once, on every proxy
    Revoke(TokenRevokeArgs),
}

#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct TokenCreateArgs {
    /// What the token is for
    #[arg(long)]
    pub label: Option<String>,
    /// Days until the token expires [default: never]
    #[arg(long, value_name = "DAYS")]
    pub expires_in: Option<u32>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
pub struct TokenRevokeArgs {
    /// The token's id, from `pml token list`
    pub id: uuid::Uuid,
}

#[derive(Debug, Args)]
pub struct ClientsArgs {
    /// Only this client
    #[arg(long, value_name = "CLIENT")]
    pub client: Option<ClientProgram>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
pub struct ManualArgs {
    /// Created if it doesn't exist
    pub folder: PathBuf,
}

/// A program that speaks MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClientProgram {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
}

/// What the program was asked to do.
pub enum Invocation {
    /// A command and the settings that it was given.
    Configured(Command, Box<GivenSettings>),
    /// Needs no configuration.
    Manual(ManualArgs),
}

impl Invocation {
    pub fn parse() -> Result<Invocation, clap::Error> {
        let mut line = command_line();
        let matches = line.try_get_matches_from_mut(std::env::args_os())?;
        Invocation::from_matches(&matches).map_err(|error| error.format(&mut line))
    }

    fn from_matches(matches: &ArgMatches) -> Result<Invocation, clap::Error> {
        let command = match Cli::from_arg_matches(matches)?.command {
            AnyCommand::Configured(command) => command,
            AnyCommand::Manual(args) => return Ok(Invocation::Manual(args)),
        };
        let settings = GivenSettings::from_matches(innermost(matches))?;
        // The doctor's report says what a log would.
        let settings = if matches!(command, Command::Doctor(_)) { settings.without_logs() } else { settings };
        Ok(Invocation::Configured(command, Box::new(settings)))
    }
}

/// The matches of the subcommand that was given.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, inner)| innermost(inner))
}

/// The settings in a command's help.
enum Shown {
    All,
    Only(&'static [&'static str]),
}

const TOKEN_SETTINGS: Shown =
    Shown::Only(&["config", "database_url", "database_patience", "log_format", "log_level"]);
const TOKEN_CREATE_SETTINGS: Shown = Shown::Only(&[
    "config",
    "database_url",
    "database_patience",
    "org",
    "project",
    "actor",
    "log_format",
    "log_level",
]);
const CLIENTS_SETTINGS: Shown =
    Shown::Only(&["config", "database_url", "bind", "require_token", "tls_certificate", "tls_key"]);

pub(crate) fn command_line() -> clap::Command {
    Cli::command()
        .mut_subcommand("serve", |serve| with_settings(serve, &Shown::All))
        .mut_subcommand("stdio", |stdio| with_settings(stdio, &Shown::All))
        .mut_subcommand("doctor", |doctor| with_settings(doctor, &Shown::All))
        .mut_subcommand("clients", |clients| with_settings(clients, &CLIENTS_SETTINGS))
        .mut_subcommand("token", |token| {
            token
                .mut_subcommand("create", |create| with_settings(create, &TOKEN_CREATE_SETTINGS))
                .mut_subcommand("list", |list| with_settings(list, &TOKEN_SETTINGS))
                .mut_subcommand("revoke", |revoke| with_settings(revoke, &TOKEN_SETTINGS))
        })
}

/// Adds all settings, because the configuration is checked as a whole, but hides those that the command doesn't use.
fn with_settings(command: clap::Command, shown: &Shown) -> clap::Command {
    let is_hidden = |arg: &Arg| match shown {
        Shown::All => false,
        Shown::Only(names) => !names.contains(&arg.get_id().as_str()),
    };
    command.args(config::arguments().into_iter().map(|arg| {
        let is_hidden = is_hidden(&arg);
        arg.hide(is_hidden)
    }))
}

#[cfg(test)]
mod tests {
    use super::{CLIENTS_SETTINGS, Shown, TOKEN_CREATE_SETTINGS, TOKEN_SETTINGS, command_line};
    use crate::config;

    #[test]
    fn the_command_line_is_sound() {
        command_line().debug_assert();
    }

    #[test]
    fn the_shown_settings_are_settings() {
        let settings: Vec<String> = config::arguments().iter().map(|arg| arg.get_id().to_string()).collect();
        for shown in [TOKEN_SETTINGS, TOKEN_CREATE_SETTINGS, CLIENTS_SETTINGS] {
            let Shown::Only(names) = shown else { panic!("all are shown") };
            assert!(names.iter().all(|name| settings.iter().any(|setting| setting == name)), "{names:?}");
        }
    }
}
