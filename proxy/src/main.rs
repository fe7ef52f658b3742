//! Reads the command line, checks the configuration, and does what is asked.

use std::{num::NonZeroUsize, process::ExitCode};

use clap::Parser;
use pml_proxy::{
    cli::{Cli, Command, CommonArgs, HttpArgs, TokenCommand},
    clients,
    config::{Config, ConfigError},
    doctor, logging,
    serve::{self, ServeError},
    token_command,
};
use tokio::runtime::Runtime;

/// Wrong usage or configuration, as `sysexits.h` has it.
const USAGE: u8 = 64;

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
        Err(error) => return failed(&error),
    };
    let status = runtime.block_on(run(cli.command));
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

async fn run(command: Command) -> ExitCode {
    match command {
        Command::Serve(args) => match load(Config::load(args.common, args.http)) {
            Ok(config) => match serve::over_http(config).await {
                Err(error @ ServeError::Tls(_)) => wrong(&error),
                served => finished(served),
            },
            Err(status) => status,
        },
        Command::Stdio(common) => match load(Config::load(common, HttpArgs::default())) {
            Ok(config) => finished(serve::over_stdio(config).await),
            Err(status) => status,
        },
        Command::Doctor(args) => match load(Config::load(reporting_itself(args.common), HttpArgs::default()))
        {
            Ok(config) => doctor::run(config, args.json).await,
            Err(status) => status,
        },
        Command::Token(TokenCommand::Create(args)) => {
            match load(Config::load(args.common, HttpArgs::default())) {
                Ok(config) => finished(
                    token_command::create(&config, args.label.as_deref(), args.expires_in, args.json).await,
                ),
                Err(status) => status,
            }
        }
        Command::Token(TokenCommand::List(args)) => {
            match load(Config::load(args.common, HttpArgs::default())) {
                Ok(config) => finished(token_command::list(&config, args.json).await),
                Err(status) => status,
            }
        }
        Command::Token(TokenCommand::Revoke(args)) => {
            match load(Config::load(args.common, HttpArgs::default())) {
                Ok(config) => finished(token_command::revoke(&config, args.id).await),
                Err(status) => status,
            }
        }
        Command::Clients(args) => finished(clients::run(args)),
    }
}

/// What is wrong is in its report, so the log is silent unless somebody wants it.
fn reporting_itself(mut common: CommonArgs) -> CommonArgs {
    common.log_level.get_or_insert_with(|| "off".to_owned());
    common
}

/// Starts the logs, or says what is wrong with the configuration.
fn load(config: Result<Config, ConfigError>) -> Result<Config, ExitCode> {
    match config {
        Ok(config) => {
            logging::start(&config.log);
            for warning in &config.warnings {
                tracing::warn!("{warning}");
            }
            Ok(config)
        }
        Err(error) => Err(wrong(&error)),
    }
}

fn wrong(error: &impl std::fmt::Display) -> ExitCode {
    eprintln!("pml: {error}");
    ExitCode::from(USAGE)
}

fn finished(result: Result<(), impl std::fmt::Display>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &impl std::fmt::Display) -> ExitCode {
    eprintln!("pml: {error}");
    ExitCode::FAILURE
}
