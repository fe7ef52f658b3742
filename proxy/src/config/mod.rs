//! The configuration: file, environment and flags merged, and checked as a whole before anything starts.

mod file;
mod http;
mod settings;

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use pml_worker::{Limits, PoolConfig};
use tokio_postgres::Config as PostgresConfig;

use crate::{
    downstream::{ConfigErrors, LeftOut, ParsedServers, ServerConfig, parse_servers},
    limits::LimitsConfig,
    logging::{self, LogConfig},
    scope::Scope,
};
pub use http::{DoorLimits, HttpConfig, TlsFiles};
pub(crate) use settings::arguments;
pub use settings::{GivenSettings, Layer, Settings};

const MIB: u64 = 1024 * 1024;
/// How long Postgres' machine may answer nothing at all, unless the URL says otherwise.
const UNANSWERED: Duration = Duration::from_secs(5);

/// What is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{}: can't be read: {source}.", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: expected a JSON object, found {found}.", .path.display())]
    NotAnObject { path: PathBuf, found: &'static str },
    #[error("{}: {what}.", .path.display())]
    Malformed { path: PathBuf, what: String },
    #[error(
        "{}: no servers found. They are expected under \"mcpServers\" (most clients), \"servers\" (VS Code) or \
         \"context_servers\" (Zed).", .path.display()
    )]
    NoServers { path: PathBuf },
    #[error("Invalid setting: {0}.")]
    Unusable(#[from] serde_json::Error),
    #[error(
        "No database is configured. Set --database-url, PML_DATABASE_URL, or database_url in the configuration file."
    )]
    NoDatabase,
    #[error(
        "{setting}: expected the URL of a Postgres database ({why}). Example: postgres://user@host/database."
    )]
    DatabaseUrl { setting: &'static str, why: String },
    #[error("{0}. {hint}", hint = .0.hint())]
    Scope(pml_core::Error),
    #[error("{setting}: expected {expected}, found {value}.")]
    Range { setting: &'static str, value: String, expected: &'static str },
    #[error(
        "bind: {bind} can be reached from other machines, so requests need tokens. Remove require_token and create \
         tokens with `pml token create`, or bind to a loopback address such as 127.0.0.1."
    )]
    OpenToAll { bind: SocketAddr },
    #[error("{given} is set without {missing}. TLS needs the certificate and its key, both as PEM files.")]
    HalfOfTls { given: &'static str, missing: &'static str },
    #[error("log_level: invalid level \"{level}\" ({why}). Examples: info, debug, info,pml_proxy=debug.")]
    LogLevel { level: String, why: String },
    #[error("{0}")]
    Servers(#[from] ConfigErrors),
}

/// The checked configuration.
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
    /// By their identifiers.
    pub servers: BTreeMap<String, ServerConfig>,
    /// The servers whose entries can't be used.
    pub left_out: Vec<LeftOut>,
    /// Whether simple tool calls take the fast path, unparsed.
    pub passthrough: bool,
    /// Most capabilities in a list of tools.
    pub list_limit: u32,
    /// About ignored keys.
    pub warnings: Vec<String>,
    pub log: LogConfig,
}

/// What `pml clients` needs to know: neither a database nor servers, which may come later.
#[derive(Debug)]
pub struct ClientsConfig {
    pub http: HttpConfig,
    pub has_database: bool,
    /// The settings that were given to this process, as `pml stdio` takes them.
    pub environment: BTreeMap<String, String>,
}

impl ClientsConfig {
    pub fn load(given: GivenSettings) -> Result<ClientsConfig, ConfigError> {
        let environment = given.environment().clone();
        let settings = given.over_file()?;
        let has_database = settings.database_url.as_ref().is_some_and(|url| !url.is_empty());
        Ok(ClientsConfig { http: http::checked(&settings)?, has_database, environment })
    }
}

pub struct DatabaseConfig {
    pub main: PostgresConfig,
    pub listen: PostgresConfig,
    pub connections: usize,
    pub patience: Duration,
}

impl std::fmt::Debug for DatabaseConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the URLs, which may hold passwords.
        f.debug_struct("DatabaseConfig").field("connections", &self.connections).finish_non_exhaustive()
    }
}

impl Config {
    /// Merges flags and environment into the file's settings, and checks the result.
    pub fn load(given: GivenSettings) -> Result<Config, ConfigError> {
        let settings = given.over_file()?;
        logging::filter(&settings.log_level)
            .map_err(|why| ConfigError::LogLevel { level: settings.log_level.clone(), why })?;
        let servers = match settings.mcp_servers.clone() {
            Some(path) => Some(file::read_servers(path)?),
            None => settings.mcp_servers_block.clone(),
        };
        let servers = match servers {
            Some(entries) => parse_servers(&entries, |name| std::env::var(name).ok())?,
            None => ParsedServers::default(),
        };
        if settings.strict && !servers.left_out.is_empty() {
            let problems = servers.left_out.into_iter().flat_map(|left_out| left_out.problems);
            return Err(ConfigErrors(problems.collect()).into());
        }
        Ok(Config {
            database: database(&settings)?,
            scope: scope(&settings)?,
            http: http::checked(&settings)?,
            limits: limits(&settings)?,
            token_limits: token_limits(&settings)?,
            worker: pool_config(&settings)?,
            servers: servers.servers,
            left_out: servers.left_out,
            passthrough: settings.passthrough,
            list_limit: settings.list_limit,
            warnings: servers.warnings,
            log: LogConfig { format: settings.log_format, level: settings.log_level },
        })
    }
}

fn database(settings: &Settings) -> Result<DatabaseConfig, ConfigError> {
    let url = settings.database_url.as_deref().filter(|url| !url.is_empty());
    let main = postgres_config("database_url", url.ok_or(ConfigError::NoDatabase)?)?;
    let listen = match settings.listen_url.as_deref().filter(|url| !url.is_empty()) {
        Some(url) => postgres_config("listen_url", url)?,
        None => main.clone(),
    };
    let connections = positive("database_connections", settings.database_connections)?;
    let patience = seconds("database_patience", settings.database_patience)?;
    Ok(DatabaseConfig { main, listen, connections, patience })
}

fn scope(settings: &Settings) -> Result<Scope, ConfigError> {
    let scope = Scope {
        org: settings.org.clone(),
        project: settings.project.clone(),
        actor: settings.actor.clone().unwrap_or_else(login_name),
    };
    pml_core::name::check_part("org", &scope.org).map_err(ConfigError::Scope)?;
    pml_core::name::check_part("project", &scope.project).map_err(ConfigError::Scope)?;
    if scope.actor.is_empty() {
        return Err(range("actor", "nothing", "a name"));
    }
    Ok(scope)
}

fn pool_config(settings: &Settings) -> Result<PoolConfig, ConfigError> {
    let default = PoolConfig::default();
    let slots = positive("worker_slots", settings.worker_slots.unwrap_or(default.slots))?;
    let layer = |layer: &Layer| match layer {
        Layer::Landlock => pml_worker::Layer::Landlock,
        Layer::Seccomp => pml_worker::Layer::Seccomp,
    };
    Ok(PoolConfig {
        program: settings.worker.clone().unwrap_or(default.program),
        slots,
        reserve: settings.worker_reserve.unwrap_or(3 * slots),
        spare: settings.worker_spare,
        queue: settings.worker_queue,
        queue_per_tenant: settings.worker_queue_per_tenant,
        queue_bytes: settings.worker_queue_bytes,
        queue_bytes_per_tenant: settings.worker_queue_bytes_per_tenant,
        runs_per_process: settings.worker_runs_per_process,
        deepest: settings.run_depth,
        memory_ceiling: default.memory_ceiling.max(settings.run_memory.saturating_mul(MIB)),
        allow_missing: settings.allow_missing.iter().map(layer).collect(),
    })
}

fn limits(settings: &Settings) -> Result<Limits, ConfigError> {
    if !(1..=4096).contains(&settings.run_memory) {
        return Err(range("run_memory", settings.run_memory, "from 1 to 4096 MiB"));
    }
    Ok(Limits {
        wall_time: seconds("run_timeout", settings.run_timeout)?,
        cpu_time: seconds("run_cpu", settings.run_cpu)?,
        memory: settings.run_memory * MIB,
        output: settings.run_output.saturating_mul(MIB),
        calls: settings.run_calls,
        calls_in_flight: settings.run_calls_in_flight,
        ..Limits::default()
    })
}

fn token_limits(settings: &Settings) -> Result<LimitsConfig, ConfigError> {
    let amount = |setting, given: f64| {
        Some(given)
            .filter(|given| given.is_finite() && *given >= 0.0)
            .ok_or_else(|| range(setting, given, "a number of at least 0, where 0 is no limit"))
    };
    Ok(LimitsConfig {
        runs: settings.limit_runs,
        runs_per_minute: settings.limit_runs_per_minute,
        cpu_seconds_per_minute: amount(
            "limit_cpu_seconds_per_minute",
            settings.limit_cpu_seconds_per_minute,
        )?,
        result_mib_per_minute: amount("limit_result_mib_per_minute", settings.limit_result_mib_per_minute)?,
        stored_rows: settings.limit_stored_rows,
        questions: settings.limit_questions,
        organisation: settings.limit_organisation,
        absent: seconds("limit_absent_seconds", settings.limit_absent_seconds)?,
    })
}

fn postgres_config(setting: &'static str, url: &str) -> Result<PostgresConfig, ConfigError> {
    let mut config = PostgresConfig::from_str(url)
        .map_err(|error| ConfigError::DatabaseUrl { setting, why: error.to_string() })?;
    if config.get_hosts().is_empty() {
        return Err(ConfigError::DatabaseUrl { setting, why: "it has no host".into() });
    }
    config.application_name("pml");
    // A connection whose other end has vanished fails soon, instead of holding a statement until its timeout. What the URL
    // gives wins.
    if config.get_keepalives_idle() == PostgresConfig::new().get_keepalives_idle() {
        config.keepalives_idle(Duration::from_secs(15));
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(UNANSWERED);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNANSWERED);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(UNANSWERED);
    }
    Ok(config)
}

fn seconds(setting: &'static str, value: f64) -> Result<Duration, ConfigError> {
    Duration::try_from_secs_f64(value)
        .ok()
        .filter(|time| !time.is_zero() && *time <= Duration::from_secs(24 * 3600))
        .ok_or_else(|| range(setting, value, "more than 0 and at most 86400 seconds"))
}

fn positive(setting: &'static str, value: usize) -> Result<usize, ConfigError> {
    if value == 0 { Err(range(setting, value, "at least 1")) } else { Ok(value) }
}

fn range(setting: &'static str, value: impl ToString, expected: &'static str) -> ConfigError {
    ConfigError::Range { setting, value: value.to_string(), expected }
}

fn login_name() -> String {
    std::env::var("USER").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "local".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_has_vanished_is_noticed_soon_unless_the_url_says_otherwise() {
        let read = |url| {
            let config = postgres_config("database_url", url).unwrap();
            let given = [config.get_connect_timeout(), config.get_tcp_user_timeout()].map(Option::unwrap);
            let kept_alive = [config.get_keepalives_interval().unwrap(), config.get_keepalives_idle()];
            [given[0].as_secs(), given[1].as_secs(), kept_alive[0].as_secs(), kept_alive[1].as_secs()]
        };
        assert_eq!(read("postgres://pml_app@db/pml"), [5, 5, 5, 15]);
        let given = "host=db connect_timeout=7 tcp_user_timeout=8 keepalives_idle=9 keepalives_interval=10";
        assert_eq!(read(given), [7, 8, 10, 9]);
    }
}
