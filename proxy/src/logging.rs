//! Logs on standard error, as text or JSON. Values of arguments are never logged; other crates log only warnings.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// How logs look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people
    #[default]
    Human,
    /// One JSON object a line
    Json,
}

#[derive(Clone, Debug, Default)]
pub struct LogConfig {
    pub format: LogFormat,
    pub level: String,
}

/// Crates that log whole messages, and with them arguments, below this level.
const QUIET: [&str; 5] =
    ["rmcp=error", "hyper=warn", "tokio_postgres=warn", "reqwest=warn", "deadpool=error"];

/// The filter for `level`: a level for this program, or directives for crates.
pub(crate) fn filter(level: &str) -> Result<EnvFilter, String> {
    // EnvFilter takes any other word for the name of a crate.
    let is_level = |word: &str| word == "off" || word.parse::<tracing::Level>().is_ok();
    let words = level.split(',').filter(|directive| !directive.contains(['=', '[']));
    if let Some(word) = words.map(str::trim).find(|word| !is_level(word)) {
        return Err(format!("{word:?} isn't one of error, warn, info, debug, trace, off"));
    }
    let mut filter = EnvFilter::try_new(level).map_err(|error| error.to_string())?;
    for directive in QUIET {
        let crate_name = directive.split('=').next().unwrap_or(directive);
        if !level.contains(crate_name)
            && let Ok(directive) = directive.parse()
        {
            filter = filter.add_directive(directive);
        }
    }
    Ok(filter)
}

/// Starts logging; the first call wins.
pub fn start(config: &LogConfig) {
    let Ok(filter) = filter(&config.level) else { return };
    let registry = tracing_subscriber::registry().with(filter);
    let started = match config.format {
        LogFormat::Human => {
            let layer = fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false);
            registry.with(layer).try_init()
        }
        LogFormat::Json => {
            let layer = fmt::layer().json().flatten_event(true).with_writer(std::io::stderr);
            registry.with(layer).try_init()
        }
    };
    if started.is_err() {
        tracing::debug!("logging is started already");
    }
}
