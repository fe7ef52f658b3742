//! All settings. A field's name gives the flag (`--database-url`), the environment variable (`PML_DATABASE_URL`) and the key
//! in the configuration file (`database_url`). A test compares docs/proxy.md with this file.

use std::{
    any::TypeId,
    collections::BTreeMap,
    net::SocketAddr,
    path::{self, PathBuf},
};

use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum, parser::ValueSource};
use pml_worker::{Limits, PoolConfig};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ConfigError, MIB, file};
use crate::{limits::LimitsConfig, logging::LogFormat};

/// A help text ends in `[default: …]` if the default depends on something.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[group(skip)]
pub struct Settings {
    /// Configuration file (JSON) [default: `pml/config.json` in `$XDG_CONFIG_HOME` or `~/.config`, if it exists]
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// URL of the Postgres database, `postgres://user:password@host/database`, or key=value pairs; required
    #[arg(long, value_name = "URL", hide_env_values = true, help_heading = "Database")]
    pub database_url: Option<String>,

    /// Direct URL of the same database for `LISTEN`, if `database_url` goes through a pooler such as pgbouncer
    #[arg(long, value_name = "URL", hide_env_values = true, help_heading = "Database")]
    pub listen_url: Option<String>,

    /// Most connections to Postgres
    #[arg(long, value_name = "N", help_heading = "Database", default_value_t = 16)]
    pub database_connections: usize,

    /// How long a request waits for Postgres to be reachable or for a free connection
    #[arg(long, value_name = "SECONDS", help_heading = "Database", default_value_t = 10.0)]
    pub database_patience: f64,

    /// Organisation of requests without a token, and of a new token
    #[arg(long, help_heading = "Scope", default_value = "local")]
    pub org: String,

    /// Project of requests without a token, and of a new token
    #[arg(long, help_heading = "Scope", default_value = "default")]
    pub project: String,

    /// Actor of requests without a token, and of a new token [default: the user that runs this]
    #[arg(long, help_heading = "Scope")]
    pub actor: Option<String>,

    /// File with the downstream MCP servers, of any MCP client; replaces those in the configuration file
    #[arg(long, value_name = "FILE", help_heading = "Downstream servers")]
    pub mcp_servers: Option<PathBuf>,

    /// The servers in the configuration file.
    #[arg(skip)]
    #[serde(rename = "mcpServers", alias = "servers", alias = "context_servers")]
    pub mcp_servers_block: Option<Value>,

    /// VS Code's questions for `${input:…}`; here, the environment has the values.
    #[arg(skip)]
    #[serde(skip_serializing)]
    pub inputs: Option<Value>,

    /// Whether a wrong entry of `mcpServers` keeps the proxy from starting; if not, it is left out
    #[arg(
        long,
        value_name = "BOOL",
        help_heading = "Downstream servers",
        num_args = 0..=1,
        action = ArgAction::Set,
        default_missing_value = "true",
        default_value_t = false
    )]
    pub strict: bool,

    /// Whether simple tool calls take the fast path, unparsed
    #[arg(
        long,
        value_name = "BOOL",
        help_heading = "Downstream servers",
        action = ArgAction::Set,
        default_value_t = true
    )]
    pub passthrough: bool,

    /// Most capabilities in `tools/list`: the most used
    #[arg(long, value_name = "N", help_heading = "Tools", default_value_t = 100)]
    pub list_limit: u32,

    /// The sandbox program [default: `pml-worker` beside `pml`]
    #[arg(long, value_name = "FILE", help_heading = "Sandbox")]
    pub worker: Option<PathBuf>,

    /// Concurrent runs [default: two for each core, at least 4]
    #[arg(long, value_name = "N", help_heading = "Sandbox")]
    pub worker_slots: Option<usize>,

    /// More runs, for tenants below their share while all slots are taken [default: three times the slots]
    #[arg(long, value_name = "N", help_heading = "Sandbox")]
    pub worker_reserve: Option<usize>,

    /// Idle processes kept ready
    #[arg(long, value_name = "N", help_heading = "Sandbox", default_value_t = PoolConfig::default().spare)]
    pub worker_spare: usize,

    /// Most runs queued for a slot
    #[arg(long, value_name = "N", help_heading = "Sandbox", default_value_t = PoolConfig::default().queue)]
    pub worker_queue: usize,

    /// Most queued runs of one tenant
    #[arg(long, value_name = "N", help_heading = "Sandbox", default_value_t = PoolConfig::default().queue_per_tenant)]
    pub worker_queue_per_tenant: usize,

    /// Most bytes of code and arguments of queued runs
    #[arg(long, value_name = "BYTES", help_heading = "Sandbox", default_value_t = PoolConfig::default().queue_bytes)]
    pub worker_queue_bytes: usize,

    /// Most bytes of code and arguments of one tenant's queued runs
    #[arg(
        long,
        value_name = "BYTES",
        help_heading = "Sandbox",
        default_value_t = PoolConfig::default().queue_bytes_per_tenant
    )]
    pub worker_queue_bytes_per_tenant: usize,

    /// Runs before a process is replaced; 1 gives every run a new process
    #[arg(long, value_name = "N", help_heading = "Sandbox", default_value_t = PoolConfig::default().runs_per_process)]
    pub worker_runs_per_process: u32,

    /// Layers of the confinement (landlock, seccomp) that the kernel may lack; see docs/worker.md first
    #[arg(long, value_name = "LAYER", value_delimiter = ',', help_heading = "Sandbox")]
    pub allow_missing: Vec<Layer>,

    /// Time limit of a run, including waiting for tools
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Sandbox",
        default_value_t = Limits::default().wall_time.as_secs_f64()
    )]
    pub run_timeout: f64,

    /// CPU time limit of a run
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Sandbox",
        default_value_t = Limits::default().cpu_time.as_secs_f64()
    )]
    pub run_cpu: f64,

    /// Memory limit of a run, in MiB
    #[arg(long, value_name = "MIB", help_heading = "Sandbox", default_value_t = Limits::default().memory / MIB)]
    pub run_memory: u64,

    /// Output limit of a run, its result and the arguments of its calls, in MiB
    #[arg(long, value_name = "MIB", help_heading = "Sandbox", default_value_t = Limits::default().output / MIB)]
    pub run_output: u64,

    /// Most calls of tools and capabilities in a run
    #[arg(long, value_name = "N", help_heading = "Sandbox", default_value_t = Limits::default().calls)]
    pub run_calls: u64,

    /// Most concurrent calls of a run
    #[arg(long, value_name = "N", help_heading = "Sandbox", default_value_t = Limits::default().calls_in_flight)]
    pub run_calls_in_flight: u64,

    /// Most levels of nested capabilities
    #[arg(long, value_name = "N", help_heading = "Sandbox", default_value_t = PoolConfig::default().deepest)]
    pub run_depth: u32,

    /// Concurrent runs, including queued ones
    #[arg(long, value_name = "N", help_heading = LIMITS, default_value_t = LimitsConfig::default().runs)]
    pub limit_runs: usize,

    /// Runs a minute, with a burst of a quarter
    #[arg(long, value_name = "N", help_heading = LIMITS, default_value_t = LimitsConfig::default().runs_per_minute)]
    pub limit_runs_per_minute: u32,

    /// CPU time of runs a minute, as the kernel counts it, including cancelled runs
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = LIMITS,
        default_value_t = LimitsConfig::default().cpu_seconds_per_minute
    )]
    pub limit_cpu_seconds_per_minute: f64,

    /// Results of runs a minute; a result that exceeds the whole minute's allowance is dropped
    #[arg(
        long,
        value_name = "MIB",
        help_heading = LIMITS,
        default_value_t = LimitsConfig::default().result_mib_per_minute
    )]
    pub limit_result_mib_per_minute: f64,

    /// Stored rows of its scope (`pml_stored_rows()`) from which on new code is refused
    #[arg(long, value_name = "N", help_heading = LIMITS, default_value_t = LimitsConfig::default().stored_rows)]
    pub limit_stored_rows: u64,

    /// Open questions to people, and ten times that in all; further ones are declined
    #[arg(long, value_name = "N", help_heading = LIMITS, default_value_t = LimitsConfig::default().questions)]
    pub limit_questions: usize,

    /// How many times these limits, except stored rows, all tokens of one organisation share
    #[arg(long, value_name = "N", help_heading = LIMITS, default_value_t = LimitsConfig::default().organisation)]
    pub limit_organisation: usize,

    /// How long a client with a question may be disconnected before its call is cancelled; not 0
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = LIMITS,
        default_value_t = LimitsConfig::default().absent.as_secs_f64()
    )]
    pub limit_absent_seconds: f64,

    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = HTTP, default_value = "127.0.0.1:7410")]
    pub bind: SocketAddr,

    /// Whether every request needs a token; must be true beyond loopback [default: true beyond loopback]
    #[arg(long, value_name = "BOOL", help_heading = HTTP, num_args = 0..=1, default_missing_value = "true")]
    pub require_token: Option<bool>,

    /// More names of this server (`Host`), beside loopback names
    #[arg(long, value_name = "HOST", help_heading = HTTP, value_delimiter = ',')]
    pub allowed_hosts: Vec<String>,

    /// More web origins whose pages may use this server, such as `https://app.example.com`
    #[arg(long, value_name = "ORIGIN", help_heading = HTTP, value_delimiter = ',')]
    pub allowed_origins: Vec<String>,

    /// Largest request body, in bytes
    #[arg(long, value_name = "BYTES", help_heading = HTTP, default_value_t = 4 * MIB as usize)]
    pub max_body: usize,

    /// Requests a second of each token (without a token: each address); 0 is no limit [default: 200, loopback 0]
    #[arg(long, value_name = "N", help_heading = HTTP)]
    pub rate: Option<u32>,

    /// Concurrent requests of each token, and ten times that in all
    #[arg(long, value_name = "N", help_heading = HTTP, default_value_t = 100)]
    pub concurrency: usize,

    /// How long running calls may continue after SIGTERM or SIGINT
    #[arg(long, value_name = "SECONDS", help_heading = HTTP, default_value_t = 30.0)]
    pub drain: f64,

    /// Most open connections; lowered, with a warning, to the limit of open files (`ulimit -n`) less 200
    #[arg(long, value_name = "N", help_heading = HTTP, default_value_t = 1000)]
    pub max_connections: usize,

    /// Most open connections of one address (IPv6: one /64), except trusted proxies [default: 100, loopback 0]
    #[arg(long, value_name = "N", help_heading = HTTP)]
    pub max_connections_per_address: Option<usize>,

    /// Timeout of a TLS handshake, and of a request's head, from its first byte or from the connection
    #[arg(long, value_name = "SECONDS", help_heading = HTTP, default_value_t = 10.0)]
    pub header_timeout: f64,

    /// Timeout of a request's body, extended by a second for every `body_rate` bytes received
    #[arg(long, value_name = "SECONDS", help_heading = HTTP, default_value_t = 10.0)]
    pub body_timeout: f64,

    /// Slowest rate of a body after its `body_timeout`, in bytes a second
    #[arg(long, value_name = "BYTES", help_heading = HTTP, default_value_t = 16 * 1024)]
    pub body_rate: u64,

    /// Timeout of a connection between requests
    #[arg(long, value_name = "SECONDS", help_heading = HTTP, default_value_t = 120.0)]
    pub idle_timeout: f64,

    /// Timeout of a client that reads nothing of its answer
    #[arg(long, value_name = "SECONDS", help_heading = HTTP, default_value_t = 30.0)]
    pub send_timeout: f64,

    /// Reverse proxies (addresses or networks, `10.0.0.0/8`) whose `Forwarded` headers are trusted
    #[arg(long, value_name = "ADDRESS", help_heading = HTTP, value_delimiter = ',')]
    pub trusted_proxies: Vec<String>,

    /// Certificate chain for TLS, a PEM file; SIGHUP reloads it and the key [default: no TLS]
    #[arg(long, value_name = "FILE", help_heading = HTTP)]
    pub tls_certificate: Option<PathBuf>,

    /// Private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", help_heading = HTTP)]
    pub tls_key: Option<PathBuf>,

    /// Format of the logs on standard error
    #[arg(long, value_name = "FORMAT", help_heading = LOGS, value_enum, default_value_t)]
    pub log_format: LogFormat,

    /// `error`, `warn`, `info`, `debug`, `trace`, `off`, or directives such as `info,pml_proxy=debug`
    #[arg(long, value_name = "LEVEL", help_heading = LOGS, default_value = "info")]
    pub log_level: String,
}

const LIMITS: &str = "Limits of each token (0 is none)";
const HTTP: &str = "HTTP (pml serve)";
const LOGS: &str = "Logs";

/// A layer of the sandbox's confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    Landlock,
    Seccomp,
}

impl Default for Settings {
    fn default() -> Settings {
        let nothing = Settings::augment_args(Command::new("pml")).get_matches_from(["pml"]);
        Settings::from_arg_matches(&nothing).expect("every setting has a default or may be missing")
    }
}

/// The settings of the command line and the environment, and which of them were given.
#[derive(Clone, Debug)]
pub struct GivenSettings {
    settings: Settings,
    given: Vec<String>,
    /// Those that `pml stdio` needs too, as environment variables.
    environment: BTreeMap<String, String>,
}

impl GivenSettings {
    /// Turns logs off, unless a level was given.
    #[must_use]
    pub fn without_logs(mut self) -> GivenSettings {
        let name = "log_level";
        if !self.given.iter().any(|given| given == name) {
            "off".clone_into(&mut self.settings.log_level);
            self.given.push(name.to_owned());
        }
        self
    }

    /// The settings of the configuration file, overridden by those that were given.
    pub(super) fn over_file(self) -> Result<Settings, ConfigError> {
        let mut merged = serde_json::to_value(file::read(self.settings.config.clone())?)?;
        let mut own = serde_json::to_value(self.settings)?;
        for name in self.given {
            merged[&name] = own[&name].take();
        }
        Ok(serde_json::from_value(merged)?)
    }
}

/// All flags, each with the environment variable of its name.
pub(crate) fn arguments() -> Vec<clap::Arg> {
    let command = Settings::augment_args(Command::new("pml"));
    let named = |arg: &clap::Arg| arg.clone().env(variable(arg.get_id().as_str()));
    command.get_arguments().map(named).collect()
}

fn variable(name: &str) -> String {
    format!("PML_{}", name.to_uppercase())
}

impl GivenSettings {
    pub(crate) fn from_matches(matches: &ArgMatches) -> Result<GivenSettings, clap::Error> {
        let settings = Settings::from_arg_matches(matches)?;
        let is_given = |name: &String| {
            matches!(matches.value_source(name), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
        };
        let names = arguments().into_iter().map(|arg| arg.get_id().to_string());
        // The file can't name itself.
        let given = names.filter(|name| name != "config").filter(is_given).collect();
        let environment = arguments()
            .iter()
            .filter(|arg| !matches!(arg.get_help_heading(), Some(HTTP | LOGS)))
            .filter(|arg| is_given(&arg.get_id().to_string()))
            .map(|arg| (variable(arg.get_id().as_str()), given_value(arg, matches)))
            .collect();
        Ok(GivenSettings { settings, given, environment })
    }

    pub(super) fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }
}

/// The text of a setting, which means the same in any folder.
fn given_value(arg: &clap::Arg, matches: &ArgMatches) -> String {
    let is_path = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
    let text = |value: &std::ffi::OsStr| match path::absolute(value) {
        Ok(absolute) if is_path => absolute.to_string_lossy().into_owned(),
        _ => value.to_string_lossy().into_owned(),
    };
    let values: Vec<String> =
        matches.get_raw(arg.get_id().as_str()).into_iter().flatten().map(text).collect();
    values.join(",")
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::arguments;

    const DOCUMENTATION: &str = include_str!("../../../docs/proxy.md");

    /// A row for each setting, under its heading in `--help`.
    fn table() -> String {
        let mut table = String::new();
        let mut heading = None;
        let arguments = arguments();
        for arg in &arguments {
            if arg.get_help_heading() != heading {
                heading = arg.get_help_heading();
                let title = heading.unwrap_or_default();
                let _ = writeln!(table, "\n| {title} | default | |\n| --- | --- | --- |");
            }
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let (help, depends) = match help.split_once(" [default: ") {
                Some((help, default)) => (help, default.trim_end_matches(']')),
                None => (help.as_str(), "none"),
            };
            let values: Vec<_> = arg.get_default_values().iter().filter_map(|value| value.to_str()).collect();
            let default =
                if values.is_empty() { depends.to_owned() } else { format!("`{}`", values.join(",")) };
            let _ = writeln!(table, "| `{}` | {default} | {help} |", arg.get_id());
        }
        table
    }

    #[test]
    fn every_setting_is_documented_with_its_default() {
        let begin = "<!-- settings: as `cargo test -p pml_proxy documented` has them -->\n";
        let documented = DOCUMENTATION.split(begin).nth(1).and_then(|rest| rest.split("<!-- end -->").next());
        let (documented, wanted) = (documented.unwrap_or_default().trim(), table());
        assert!(documented == wanted.trim(), "docs/proxy.md must have between its markers:\n{wanted}");
    }

    #[test]
    fn flag_variable_and_key_have_the_same_name() {
        let keys = serde_json::to_value(super::Settings::default()).unwrap();
        let keys: Vec<&str> = keys.as_object().unwrap().keys().map(String::as_str).collect();
        for arg in arguments() {
            let name = arg.get_id().as_str();
            assert_eq!(arg.get_long(), Some(name.replace('_', "-").as_str()));
            assert_eq!(arg.get_env().unwrap().to_str().unwrap(), format!("PML_{}", name.to_uppercase()));
            assert!(keys.contains(&name) || name == "config", "{name}");
        }
        assert_eq!(keys.len(), arguments().len() - 1 + 1, "the file has no `config`, but `mcpServers`");
    }
}
