//! `pml doctor`: checks everything that the proxy depends on, and says how to fix what is wrong.

use std::{sync::Arc, time::Duration};

use pml_worker::{Pool, Run};
use serde_json::{Value, json};

use crate::{
    config::{Config, DatabaseConfig},
    database::{self, Database, DatabaseError, SILENT_ADVICE, Unheard, hears},
    downstream::{DownstreamOptions, Downstreams},
    output::print_line,
    scope::{Caller, Scope},
};

#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Ok,
    Warning,
    Broken,
}

#[derive(serde::Serialize)]
struct Finding {
    what: String,
    health: Health,
    seen: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

/// The version that this program was built for.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// It reports the present state, so it doesn't wait for Postgres to come back.
const PATIENCE: Duration = Duration::from_secs(3);

/// Prints the report. Whether nothing is broken.
pub async fn run(mut config: Config, as_json: bool) -> bool {
    config.database.patience = config.database.patience.min(PATIENCE);
    let mut report = Report::default();
    report.database(&config.database).await;
    report.listening(&config.database).await;
    report.sandbox(&config).await;
    report.servers(config).await;
    report.print(as_json)
}

#[derive(Default)]
struct Report(Vec<Finding>);

impl Report {
    fn add(
        &mut self,
        what: impl Into<String>,
        health: Health,
        seen: impl Into<String>,
        advice: Option<String>,
    ) {
        self.0.push(Finding { what: what.into(), health, seen: seen.into(), advice });
    }

    fn print(self, as_json: bool) -> bool {
        let broken = self.0.iter().any(|finding| finding.health == Health::Broken);
        if as_json {
            print_line(format_args!("{}", json!({"ok": !broken, "findings": self.0})));
        } else {
            for Finding { what, health, seen, advice } in &self.0 {
                let mark = match health {
                    Health::Ok => "ok     ",
                    Health::Warning => "warning",
                    Health::Broken => "BROKEN ",
                };
                print_line(format_args!("{mark} {what}: {seen}"));
                if let Some(advice) = advice {
                    print_line(format_args!("        → {advice}"));
                }
            }
        }
        !broken
    }

    async fn database(&mut self, config: &DatabaseConfig) {
        let database = Database::new(config, Arc::default());
        let facts = match database.facts().await {
            Ok(facts) => facts,
            Err(error) => {
                let advice = "Check that Postgres runs and that database_url is right; `make up` prints the URL of its own.";
                return self.add("database", Health::Broken, error.to_string(), Some(advice.into()));
            }
        };
        let text = |key: &str| facts[key].as_str().unwrap_or("none").to_owned();
        self.add(
            "database",
            Health::Ok,
            format!("{} on Postgres {}", text("database"), text("server")),
            None,
        );
        if facts["standby"] == true {
            let advice = "A standby is read-only; connect to the primary.";
            self.add("primary", Health::Broken, "the server is a standby", Some(advice.into()));
        }
        self.extension(&facts);
        self.role(&facts);
        if let Some(unusable) = facts["unusable_schema"].as_str() {
            let seen = format!("{} may not use schema {unusable}", text("role"));
            let advice = format!("Run: {}", database::grant_usage(unusable));
            return self.add("functions", Health::Broken, seen, Some(advice));
        }
        match database.tools(&Caller::proxy(own_scope()), &[], 0).await {
            Ok(_) => self.add("functions", Health::Ok, "callable", None),
            Err(DatabaseError::Refused(refusal)) => {
                self.add("functions", Health::Broken, refusal.text(), None);
            }
            Err(error) => self.add("functions", Health::Broken, error.to_string(), None),
        }
    }

    fn extension(&mut self, facts: &Value) {
        match (facts["extension"].as_str(), facts["available"].as_str()) {
            (Some(VERSION), _) => self.add("extension", Health::Ok, format!("pml {VERSION}"), None),
            (Some(other), _) => {
                let advice = format!(
                    "Install the extension's files of {VERSION} (make install), then run: ALTER EXTENSION pml UPDATE;"
                );
                let seen = format!("pml {other}, but this program is {VERSION}");
                self.add("extension", Health::Warning, seen, Some(advice));
            }
            (None, Some(_)) => {
                let advice = "Run: CREATE EXTENSION pml;".to_owned();
                self.add("extension", Health::Broken, "not installed in this database", Some(advice));
            }
            (None, None) => {
                let advice = "Run make install, then: CREATE EXTENSION pml;".to_owned();
                self.add("extension", Health::Broken, "not installed on this server", Some(advice));
            }
        }
    }

    fn role(&mut self, facts: &Value) {
        let role = facts["role"].as_str().unwrap_or("?");
        if facts["superuser"] == true || facts["admin"] == true {
            let advice = format!(
                "Row-level security doesn't bind this role, so actors would see each other's private capabilities. \
                 Run: CREATE ROLE pml_app LOGIN IN ROLE pml_proxy; and connect as pml_app instead of {role}."
            );
            self.add("role", Health::Warning, format!("{role} bypasses row-level security"), Some(advice));
        } else if facts["proxy"] == true {
            self.add("role", Health::Ok, format!("{role} is a member of pml_proxy"), None);
        } else {
            let advice = format!("Run: GRANT pml_proxy TO {role};");
            self.add("role", Health::Broken, format!("{role} isn't a member of pml_proxy"), Some(advice));
        }
    }

    async fn listening(&mut self, config: &DatabaseConfig) {
        match hears(&config.listen, &Database::new(config, Arc::default())).await {
            Ok(()) => self.add("LISTEN", Health::Ok, "notifications arrive", None),
            Err(unheard) => {
                let advice = match unheard {
                    Unheard::NotSent(_) => "Mend database_url first.",
                    _ => SILENT_ADVICE,
                };
                self.add("LISTEN", Health::Broken, unheard.to_string(), Some(advice.into()));
            }
        }
    }

    async fn sandbox(&mut self, config: &Config) {
        let program = config.worker.program.display().to_string();
        let pool = match Pool::start(config.worker.clone()).await {
            Ok(pool) => pool,
            Err(error) => {
                let advice = format!("See docs/worker.md, and the output of `{program} doors`.");
                return self.add("sandbox", Health::Broken, error.to_string(), Some(advice));
            }
        };
        match pool.missing_layers() {
            "" => self.add("confinement", Health::Ok, "all layers", None),
            missing => {
                let advice = "The kernel lacks it, and allow_missing accepts that; see docs/worker.md.";
                self.add("confinement", Health::Warning, format!("without {missing}"), Some(advice.into()));
            }
        }
        let nobody =
            |_call| async { Err(pml_worker::CallError::new("the doctor's code can't call anything")) };
        let outcome = pool.run(Run::new("doctor", "return 6 * 7"), &nobody).await;
        match outcome.result {
            Ok(value) if value.get() == "42" => {
                self.add("sandbox", Health::Ok, format!("runs code in {:?}", outcome.usage.wall_time), None);
            }
            Ok(value) => self.add("sandbox", Health::Broken, format!("6 * 7 is {}", value.get()), None),
            Err(failure) => self.add("sandbox", Health::Broken, failure.to_string(), None),
        }
        pool.close().await;
    }

    async fn servers(&mut self, config: Config) {
        for left_out in &config.left_out {
            let advice = "Correct its entry; the proxy starts without it, or with --strict not at all.";
            let what = format!("server {}", left_out.configured_name);
            self.add(what, Health::Broken, left_out.problems.join("; "), Some(advice.into()));
        }
        for warning in &config.warnings {
            self.add("configuration", Health::Warning, warning, None);
        }
        let longest = config.servers.values().map(|server| server.startup_timeout).max().unwrap_or_default();
        let servers = Downstreams::new(config.servers, &DownstreamOptions::default());
        let mut asking = tokio::task::JoinSet::new();
        for name in servers.names() {
            let servers = servers.clone();
            asking.spawn(async move {
                let listed =
                    tokio::time::timeout(longest + Duration::from_secs(1), servers.list(&name)).await;
                (name, listed)
            });
        }
        while let Some(Ok((name, listed))) = asking.join_next().await {
            let what = format!("server {}", servers.shown(&name));
            let advice = Some("Check its entry under mcpServers, and run its command by hand.".to_owned());
            match listed {
                Ok(Ok(tools)) => self.add(what, Health::Ok, format!("{} tools", tools.len()), None),
                Ok(Err(error)) => self.add(what, Health::Broken, error.to_string(), advice),
                Err(_) => self.add(what, Health::Broken, "no answer within its startup timeout", advice),
            }
        }
        servers.close().await;
    }
}

fn own_scope() -> Scope {
    Scope { org: "local".into(), project: "default".into(), actor: "doctor".into() }
}
