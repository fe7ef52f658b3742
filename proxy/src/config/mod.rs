//! What the proxy was told: the file, then the environment, then the flags; checked as a whole before anything starts.

mod file;
mod http;

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use pml_worker::{Limits, PoolConfig};
use tokio_postgres::Config as PostgresConfig;

use crate::{
    cli::{CommonArgs, HttpArgs, Layer, LimitArgs},
    downstream::{ConfigErrors, ParsedServers, ServerConfig, parse_servers},
    limits::LimitsConfig,
    logging::{self, LogConfig},
    scope::Scope,
};
use file::{FileConfig, FileLimits, FileWorker};
pub use http::{DoorLimits, HttpConfig, TlsFiles};

const MIB: u64 = 1024 * 1024;

/// What is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("The file {} can't be read: {source}.", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("The file {path} isn't what it should be: a list, where an object {{…}} is wanted.")]
    NotAnObject { path: PathBuf },
    #[error("The file {} isn't what it should be: {source}.", .path.display())]
    Malformed { path: PathBuf, source: serde_json::Error },
    #[error(
        "No database is given. Give --database-url, PML_DATABASE_URL, or {{\"database\": {{\"url\": …}}}} in the \
         configuration file."
    )]
    NoDatabase,
    #[error(
        "{setting} isn't an address of a Postgres database ({why}). Example: postgres://user@host/database."
    )]
    DatabaseUrl { setting: &'static str, why: String },
    #[error("{0}. {hint}", hint = .0.hint())]
    Scope(pml_core::Error),
    #[error("{setting} is {value}, but must be {expected}.")]
    Range { setting: &'static str, value: String, expected: &'static str },
    #[error(
        "{bind} can be reached from other machines, so every request needs a token. Leave require_token out, make \
         tokens with `pml token create`, or bind to a loopback address such as 127.0.0.1."
    )]
    OpenToAll { bind: SocketAddr },
    #[error("{given} is set without {missing}. TLS needs both, the certificate and its key, as PEM files.")]
    HalfOfTls { given: &'static str, missing: &'static str },
    #[error(
        "The log level \"{level}\" can't be understood ({why}). Examples: info, debug, info,pml_proxy=debug."
    )]
    LogLevel { level: String, why: String },
    #[error("{0}")]
    Servers(#[from] ConfigErrors),
}

/// Everything that is set, checked.
#[derive(Debug)]
pub struct Config {
    pub database: DatabaseConfig,
    pub scope: Scope,
    pub http: HttpConfig,
    pub worker: PoolConfig,
    /// Of one run.
    pub limits: Limits,
    /// Of one token.
    pub token_limits: LimitsConfig,
    pub servers: BTreeMap<String, ServerConfig>,
    /// Whether tool calls that need nothing of the proxy are passed through unparsed.
    pub passthrough: bool,
    /// What was ignored.
    pub warnings: Vec<String>,
    pub log: LogConfig,
}

pub struct DatabaseConfig {
    pub main: PostgresConfig,
    pub listen: PostgresConfig,
    pub connections: usize,
    pub patience: Duration,
}

impl std::fmt::Debug for DatabaseConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the addresses: they may hold passwords.
        f.debug_struct("DatabaseConfig").field("connections", &self.connections).finish_non_exhaustive()
    }
}

impl Config {
    /// Puts flags and environment (which clap has merged into `common` and `http`) over the file.
    pub fn load(common: CommonArgs, http: HttpArgs) -> Result<Config, ConfigError> {
        let file = FileConfig::read(common.config)?;
        let main_url = common
            .database_url
            .or(file.database.url)
            .filter(|url| !url.is_empty())
            .ok_or(ConfigError::NoDatabase)?;
        let main = postgres_config("The database URL", &main_url)?;
        let listen = match common.listen_url.or(file.database.listen_url) {
            Some(url) => postgres_config("The LISTEN URL", &url)?,
            None => main.clone(),
        };
        let connections = common.database_connections.or(file.database.connections).unwrap_or(16);
        positive("database connections", connections)?;
        let patience = seconds(
            "database patience",
            common.database_patience.or(file.database.patience_seconds).unwrap_or(10.0),
        )?;
        let scope = Scope {
            org: common.org.or(file.scope.org).unwrap_or_else(|| "local".into()),
            project: common.project.or(file.scope.project).unwrap_or_else(|| "default".into()),
            actor: common.actor.or(file.scope.actor).unwrap_or_else(login_name),
        };
        pml_core::name::check_part("org", &scope.org).map_err(ConfigError::Scope)?;
        pml_core::name::check_part("project", &scope.project).map_err(ConfigError::Scope)?;
        if scope.actor.is_empty() {
            return Err(range("The actor", "empty", "a name"));
        }
        let mut worker_file = file.worker;
        worker_file.program = common.worker.or(worker_file.program);
        worker_file.slots = common.worker_slots.or(worker_file.slots);
        worker_file.run_seconds = common.run_timeout.or(worker_file.run_seconds);
        worker_file.memory_mib = common.run_memory.or(worker_file.memory_mib);
        worker_file.allow_missing = common.allow_missing.or(worker_file.allow_missing);
        let servers = match common.mcp_servers.or(file.mcp_servers_file) {
            Some(path) => Some(file::read_servers(path)?),
            None => file.servers,
        };
        let servers = match servers {
            Some(entries) => parse_servers(&entries, |name| std::env::var(name).ok())?,
            None => ParsedServers::default(),
        };
        let log = LogConfig {
            format: common.log_format.or(file.log.format).unwrap_or_default(),
            level: common.log_level.or(file.log.level).unwrap_or_else(|| "info".into()),
        };
        logging::filter(&log.level).map_err(|why| ConfigError::LogLevel { level: log.level.clone(), why })?;
        Ok(Config {
            database: DatabaseConfig { main, listen, connections, patience },
            scope,
            http: http::checked(http, file.http)?,
            limits: limits(&worker_file)?,
            token_limits: token_limits(common.limits, file.limits)?,
            worker: pool_config(worker_file)?,
            servers: servers.servers,
            passthrough: common.passthrough.or(file.passthrough).unwrap_or(true),
            warnings: servers.warnings,
            log,
        })
    }
}

fn pool_config(file: FileWorker) -> Result<PoolConfig, ConfigError> {
    let default = PoolConfig::default();
    let slots = file.slots.unwrap_or(default.slots);
    positive("worker slots", slots)?;
    let layer = |layer: Layer| match layer {
        Layer::Landlock => pml_worker::Layer::Landlock,
        Layer::Seccomp => pml_worker::Layer::Seccomp,
    };
    Ok(PoolConfig {
        program: file.program.unwrap_or(default.program),
        slots,
        reserve: file.reserve.unwrap_or(3 * slots),
        spare: file.spare.unwrap_or(default.spare),
        queue: file.queue.unwrap_or(default.queue),
        queue_per_tenant: file.queue_per_tenant.unwrap_or(default.queue_per_tenant),
        queue_bytes: file.queue_bytes.unwrap_or(default.queue_bytes),
        queue_bytes_per_tenant: file.queue_bytes_per_tenant.unwrap_or(default.queue_bytes_per_tenant),
        runs_per_process: file.runs_per_process.unwrap_or(default.runs_per_process),
        deepest: file.deepest.unwrap_or(default.deepest),
        memory_ceiling: default.memory_ceiling.max(file.memory_mib.unwrap_or(0) * MIB),
        allow_missing: file.allow_missing.unwrap_or_default().into_iter().map(layer).collect(),
    })
}

fn limits(file: &FileWorker) -> Result<Limits, ConfigError> {
    let default = Limits::default();
    let time =
        |setting, given: Option<f64>, default| given.map_or(Ok(default), |given| seconds(setting, given));
    let memory_mib = file.memory_mib.unwrap_or(default.memory / MIB);
    if !(1..=4096).contains(&memory_mib) {
        return Err(range("The memory of a run", memory_mib, "from 1 to 4096 MiB"));
    }
    Ok(Limits {
        wall_time: time("run timeout", file.run_seconds, default.wall_time)?,
        cpu_time: time("cpu time", file.cpu_seconds, default.cpu_time)?,
        memory: memory_mib * MIB,
        output: file.output_mib.map_or(default.output, |mib| mib * MIB),
        calls: file.calls.unwrap_or(default.calls),
        calls_in_flight: file.calls_in_flight.unwrap_or(default.calls_in_flight),
        ..default
    })
}

fn token_limits(flags: LimitArgs, file: FileLimits) -> Result<LimitsConfig, ConfigError> {
    let default = LimitsConfig::default();
    let amount = |setting, given: f64| {
        Some(given)
            .filter(|given| given.is_finite() && *given >= 0.0)
            .ok_or_else(|| range(setting, given, "a number that isn't below 0, where 0 is no limit"))
    };
    let cpu_seconds = flags.limit_cpu_seconds_per_minute.or(file.cpu_seconds_per_minute);
    let result_mib = flags.limit_result_mib_per_minute.or(file.result_mib_per_minute);
    let absent = flags.limit_absent_seconds.or(file.absent_seconds);
    Ok(LimitsConfig {
        runs: flags.limit_runs.or(file.runs).unwrap_or(default.runs),
        runs_per_minute: flags
            .limit_runs_per_minute
            .or(file.runs_per_minute)
            .unwrap_or(default.runs_per_minute),
        cpu_seconds_per_minute: amount(
            "limits.cpu_seconds_per_minute",
            cpu_seconds.unwrap_or(default.cpu_seconds_per_minute),
        )?,
        result_mib_per_minute: amount(
            "limits.result_mib_per_minute",
            result_mib.unwrap_or(default.result_mib_per_minute),
        )?,
        stored_rows: flags.limit_stored_rows.or(file.stored_rows).unwrap_or(default.stored_rows),
        questions: flags.limit_questions.or(file.questions).unwrap_or(default.questions),
        organisation: flags.limit_organisation.or(file.organisation).unwrap_or(default.organisation),
        absent: absent.map_or(Ok(default.absent), |absent| seconds("limits.absent_seconds", absent))?,
    })
}

fn postgres_config(setting: &'static str, url: &str) -> Result<PostgresConfig, ConfigError> {
    let mut config = PostgresConfig::from_str(url)
        .map_err(|error| ConfigError::DatabaseUrl { setting, why: error.to_string() })?;
    if config.get_hosts().is_empty() {
        return Err(ConfigError::DatabaseUrl { setting, why: "it names no host".into() });
    }
    config.application_name("pml");
    config.keepalives_idle(Duration::from_secs(15));
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    Ok(config)
}

fn seconds(setting: &'static str, value: f64) -> Result<Duration, ConfigError> {
    Duration::try_from_secs_f64(value)
        .ok()
        .filter(|time| !time.is_zero() && *time <= Duration::from_secs(24 * 3600))
        .ok_or_else(|| range(setting, value, "a number of seconds above 0 and at most 86400"))
}

fn positive(setting: &'static str, value: usize) -> Result<(), ConfigError> {
    if value == 0 { Err(range(setting, value, "at least 1")) } else { Ok(()) }
}

fn range(setting: &'static str, value: impl ToString, expected: &'static str) -> ConfigError {
    ConfigError::Range { setting, value: value.to_string(), expected }
}

fn login_name() -> String {
    std::env::var("USER").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "local".into())
}
