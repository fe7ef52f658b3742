//! Reads the command line, checks the configuration, and does what is asked.

use std::{fmt::Display, num::NonZeroUsize, process::ExitCode};

use clap::Parser;
use pml_proxy::{
    cli::{Cli, Command, TokenCommand},
    clients,
    config::{Config, ConfigError, GivenSettings},
    doctor, logging,
    serve::{self, ServeError},
    token_command::{self, TokenError},
};
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::of(error).report(),
    };
    let status = runtime.block_on(run(cli.command)).map_or_else(Failure::report, |()| ExitCode::SUCCESS);
    // Not waited for: reading standard input can't be interrupted.
    runtime.shutdown_background();
    status
}

/// Threads for half of the cores: the others do the work that is passed on, in Postgres, the sandbox and the servers.
/// More of them would only wake each other (`TOKIO_WORKER_THREADS` says otherwise).
fn runtime() -> std::io::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        builder.worker_threads(cores.div_ceil(2));
    }
    builder.enable_all().build()
}

async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(settings) => serve::over_http(load(settings)?).await?,
        Command::Stdio(settings) => serve::over_stdio(load(settings)?).await?,
        Command::Doctor(args) => {
            if !doctor::run(load(args.settings.without_logs())?, args.json).await {
                return Err(Failure::reported());
            }
        }
        Command::Token(TokenCommand::Create(args)) => {
            let config = load(args.settings)?;
            token_command::create(&config, args.label.as_deref(), args.expires_in, args.json).await?;
        }
        Command::Token(TokenCommand::List(args)) => {
            token_command::list(&load(args.settings)?, args.json).await?;
        }
        Command::Token(TokenCommand::Revoke(args)) => {
            token_command::revoke(&load(args.settings)?, args.id).await?;
        }
        Command::Clients(args) => clients::print(&load(args.settings)?, args.client, args.json),
    }
    Ok(())
}

/// Checks the configuration and starts the logs.
fn load(settings: GivenSettings) -> Result<Config, ConfigError> {
    let config = Config::load(settings)?;
    logging::start(&config.log);
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    Ok(config)
}

/// Wrong usage or configuration, as `sysexits.h` has it.
const USAGE: u8 = 64;
const FAILED: u8 = 1;

/// How the program ends if not well.
struct Failure {
    status: u8,
    /// None if it has been printed.
    message: Option<String>,
}

impl Failure {
    fn of(error: impl Display) -> Failure {
        Failure { status: FAILED, message: Some(error.to_string()) }
    }

    fn of_usage(error: impl Display) -> Failure {
        Failure { status: USAGE, message: Some(error.to_string()) }
    }

    fn reported() -> Failure {
        Failure { status: FAILED, message: None }
    }

    fn report(self) -> ExitCode {
        if let Some(message) = self.message {
            eprintln!("pml: {message}");
        }
        ExitCode::from(self.status)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::of_usage(error)
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        match error {
            ServeError::Tls(error) => Failure::of_usage(error),
            error => Failure::of(error),
        }
    }
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Failure {
        Failure::of(error)
    }
}
