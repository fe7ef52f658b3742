//! What an agent is told that met a limit: which one, its value, when to try again, and what an operator can change.

use std::{fmt, time::Duration};

use serde_json::{Value, json};

/// One of the limits of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Runs,
    RunsPerMinute,
    CpuSecondsPerMinute,
    ResultMibPerMinute,
    StoredRows,
    Questions,
}

impl Limit {
    /// Its name, which the setting has after `limit_`.
    pub fn key(self) -> &'static str {
        match self {
            Limit::Runs => "runs",
            Limit::RunsPerMinute => "runs_per_minute",
            Limit::CpuSecondsPerMinute => "cpu_seconds_per_minute",
            Limit::ResultMibPerMinute => "result_mib_per_minute",
            Limit::StoredRows => "stored_rows",
            Limit::Questions => "questions",
        }
    }

    fn allowance(self) -> &'static str {
        match self {
            Limit::Runs => "runs at the same time",
            Limit::RunsPerMinute => "runs a minute",
            Limit::CpuSecondsPerMinute => "seconds of computing a minute",
            Limit::ResultMibPerMinute => "MiB of results a minute",
            Limit::StoredRows => "stored rows in its scope",
            Limit::Questions => "questions to people at the same time",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Limit::Runs => "Wait until one of the runs under way has ended",
            Limit::RunsPerMinute => "Do more in one run",
            Limit::CpuSecondsPerMinute => "Compute less, or leave heavy computing to a tool",
            Limit::ResultMibPerMinute => "Return a summary or a part of the data",
            Limit::StoredRows => {
                "New code isn't kept: call a capability by its name, or delete capabilities and old runs that nobody needs"
            }
            Limit::Questions => "Wait until one of them is answered",
        }
    }
}

/// Whose limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    Token,
    /// The tokens of an organisation together.
    Organisation,
    /// Of everyone together.
    Everyone,
}

impl Whose {
    pub fn name(self) -> &'static str {
        match self {
            Whose::Token => "token",
            Whose::Organisation => "organisation",
            Whose::Everyone => "everyone",
        }
    }
}

/// A limit that was met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitReached {
    pub limit: Limit,
    pub whose: Whose,
    pub allowed: f64,
    pub retry_after: Option<Duration>,
}

impl LimitReached {
    fn seconds(&self) -> Option<u64> {
        self.retry_after.map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let mut error = json!({
            "kind": "limit",
            "limit": self.limit.key(),
            "of": self.whose.name(),
            "allowed": self.allowed,
            "message": self.to_string(),
        });
        if let Some(seconds) = self.seconds() {
            error["retryAfterSeconds"] = seconds.into();
        }
        error
    }
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, flag) = (self.limit.key(), self.limit.key().replace('_', "-"));
        let who = match self.whose {
            Whose::Token => "This token",
            Whose::Organisation => "All tokens of this organisation together",
            Whose::Everyone => "All callers together",
        };
        write!(f, "{who} may have {} {}. ", self.allowed, self.limit.allowance())?;
        write!(f, "{}", self.limit.advice())?;
        if let Some(seconds) = self.seconds() {
            write!(f, ", or try again in {seconds} s")?;
        }
        write!(f, ". The operator of the proxy can raise limit_{key} (--limit-{flag})")?;
        match self.whose {
            Whose::Token => write!(f, "."),
            _ => write!(f, " or limit_organisation (--limit-organisation)."),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Limit, LimitReached, Whose};

    #[test]
    fn it_says_which_limit_its_value_when_and_what_to_change() {
        let mut reached = LimitReached {
            limit: Limit::RunsPerMinute,
            whose: Whose::Token,
            allowed: 3000.0,
            retry_after: Some(Duration::from_millis(1200)),
        };
        assert_eq!(
            reached.to_string(),
            "This token may have 3000 runs a minute. Do more in one run, or try again in 2 s. The operator \
             of the proxy can raise limit_runs_per_minute (--limit-runs-per-minute)."
        );
        reached.whose = Whose::Organisation;
        assert!(reached.to_string().ends_with("or limit_organisation (--limit-organisation)."));
        assert_eq!(reached.to_json()["retryAfterSeconds"], 2);
    }
}
