//! Parses the command line, loads the configuration, runs the command.

use std::{fmt::Display, num::NonZeroUsize, process::ExitCode};

use pml_proxy::{
    cli::{Command, Invocation, TokenCommand},
    clients,
    config::{ClientsConfig, Config, ConfigError, GivenSettings},
    doctor, logging, manual,
    serve::{self, ServeError},
    token_command::{self, TokenError},
};
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    start().map_or_else(Failure::report, |()| ExitCode::SUCCESS)
}

fn start() -> Result<(), Failure> {
    let (command, settings) = match Invocation::parse()? {
        Invocation::Configured(command, settings) => (command, *settings),
        Invocation::Manual(args) => return manual::write(&args.folder).map_err(Failure::new),
    };
    if let Command::Clients(args) = command {
        clients::print(&ClientsConfig::load(settings)?, args.client, args.output.json);
        return Ok(());
    }
    let config = load(settings)?;
    let runtime = runtime().map_err(Failure::new)?;
    let done = runtime.block_on(run(command, config));
    // Without waiting for its threads: reading standard input can't be interrupted.
    runtime.shutdown_background();
    done
}

/// Checks the configuration and starts the logs.
fn load(settings: GivenSettings) -> Result<Config, ConfigError> {
    let config = Config::load(settings)?;
    logging::start(&config.log);
    Ok(config)
}

/// Logs what the configuration says about servers.
fn tell_of_servers(config: &Config) {
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    for problem in config.left_out.iter().flat_map(|left_out| &left_out.problems) {
        tracing::warn!("{problem}. The server is left out.");
    }
    for (identifier, server) in &config.servers {
        if server.configured_name != *identifier {
            tracing::info!(
                "the server {:?} is called {identifier} in code and tools",
                server.configured_name
            );
        }
    }
}

/// Threads for half of the cores. The other half is for Postgres, the sandbox and the servers, which do most of the work;
/// more threads here would only wake each other. `TOKIO_WORKER_THREADS` overrides it.
fn runtime() -> std::io::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        builder.worker_threads(cores.div_ceil(2));
    }
    builder.enable_all().build()
}

async fn run(command: Command, config: Config) -> Result<(), Failure> {
    if matches!(command, Command::Serve | Command::Stdio) {
        tell_of_servers(&config);
    }
    match command {
        Command::Serve => serve::over_http(config).await?,
        Command::Stdio => serve::over_stdio(config).await?,
        Command::Doctor(output) => {
            if !doctor::run(config, output.json).await {
                return Err(Failure::reported(FAILED));
            }
        }
        Command::Token(TokenCommand::Create(token)) => token_command::create(&config, &token).await?,
        Command::Token(TokenCommand::List(output)) => token_command::list(&config, output.json).await?,
        Command::Token(TokenCommand::Revoke(token)) => token_command::revoke(&config, token.id).await?,
        Command::Clients(_) => unreachable!("printed without a database"),
    }
    Ok(())
}

const SUCCESS: u8 = 0;
const FAILED: u8 = 1;
/// Wrong usage or configuration: `EX_USAGE` of `sysexits.h`.
const USAGE: u8 = 64;

/// Why the program ends early, with its exit status.
struct Failure {
    status: u8,
    /// None if it has been printed.
    message: Option<String>,
}

impl Failure {
    fn new(error: impl Display) -> Failure {
        Failure { status: FAILED, message: Some(error.to_string()) }
    }

    fn usage(error: impl Display) -> Failure {
        Failure { status: USAGE, message: Some(error.to_string()) }
    }

    fn reported(status: u8) -> Failure {
        Failure { status, message: None }
    }

    fn report(self) -> ExitCode {
        if let Some(message) = self.message {
            eprintln!("pml: {message}");
        }
        ExitCode::from(self.status)
    }
}

impl From<clap::Error> for Failure {
    /// `--help` and `--version` are errors of clap's that are none.
    fn from(error: clap::Error) -> Failure {
        let _ = error.print();
        Failure::reported(if error.use_stderr() { USAGE } else { SUCCESS })
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::usage(error)
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        match error {
            ServeError::Tls(error) => Failure::usage(error),
            error => Failure::new(error),
        }
    }
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Failure {
        Failure::new(error)
    }
}
