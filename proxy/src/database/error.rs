//! Errors between the proxy and Postgres. The only file that reads SQLSTATEs.

use deadpool::managed::{PoolError, TimeoutType};
use pml_core::arguments::ArgumentsError;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_postgres::error::SqlState;

/// An error that the extension raised about the request itself.
#[derive(Clone, Debug, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
}

impl Refusal {
    /// Nothing has that name, or nothing that the caller may see.
    pub fn is_not_found(&self) -> bool {
        self.code == "PM001"
    }

    /// There is no such tool, and the name doesn't have the form of a capability's tool either.
    pub fn is_unknown_tool(&self) -> bool {
        self.code == "PM008"
    }

    /// Postgres can't hold U+0000, neither in text nor in JSON.
    pub(super) fn in_our_terms(self) -> Refusal {
        let unstorable = [SqlState::UNTRANSLATABLE_CHARACTER, SqlState::CHARACTER_NOT_IN_REPERTOIRE];
        if !unstorable.iter().any(|code| code.code() == self.code) {
            return self;
        }
        Refusal {
            message: "The request contains a character that can't be stored: U+0000 (\\u0000 in JSON)"
                .to_owned(),
            detail: None,
            hint: Some("Remove it; inside a string of code, write the escape \\0 instead.".to_owned()),
            code: self.code,
        }
    }

    /// Message, detail and hint as text.
    pub fn text(&self) -> String {
        let mut text = self.message.clone();
        if let Some(detail) = &self.detail {
            text.push_str("\nDetail: ");
            text.push_str(detail);
        }
        if let Some(hint) = &self.hint {
            text.push_str("\nHint: ");
            text.push_str(hint);
        }
        text
    }

    pub fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        for (key, value) in [("detail", &self.detail), ("hint", &self.hint)] {
            if let Some(value) = value {
                error[key] = json!(value);
            }
        }
        error
    }
}

impl From<ArgumentsError> for Refusal {
    fn from(ArgumentsError { message, detail, hint }: ArgumentsError) -> Refusal {
        let code = SqlState::INVALID_PARAMETER_VALUE.code().to_owned();
        Refusal { code, message, detail, hint: Some(hint) }
    }
}

/// Why a statement failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The extension refused the request.
    #[error(transparent)]
    Refused(Refusal),
    /// Nothing was sent: Postgres can't be reached.
    #[error("Postgres can't be reached ({0}). Nothing was done; try again in a moment.")]
    Unreachable(String),
    /// Nothing was sent: all connections are in use.
    #[error("All connections to Postgres are in use. Nothing was done; try again in a moment.")]
    Busy,
    /// The connection broke while the statement ran, so whether it took effect isn't known.
    #[error(
        "The connection to Postgres broke during the request ({0}), so it may or may not have taken effect."
    )]
    Interrupted(String),
    /// The extension is missing, too old, or not for this role.
    #[error("The database isn't ready for PML: {0} Run `pml doctor` to see what to do.")]
    NotReady(String),
}

/// Whether a retry makes sense, and whether the first attempt may have had an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// Nothing was sent.
    Safe,
    /// It may have taken effect.
    Unclear,
    /// The result would be the same.
    Pointless,
}

impl DatabaseError {
    pub(super) fn retry(&self) -> Retry {
        match self {
            DatabaseError::Unreachable(_) => Retry::Safe,
            DatabaseError::Interrupted(_) => Retry::Unclear,
            // The caller has waited for a connection already.
            DatabaseError::Busy | DatabaseError::Refused(_) | DatabaseError::NotReady(_) => Retry::Pointless,
        }
    }

    /// Whether the same statement may succeed later.
    pub fn is_passing(&self) -> bool {
        matches!(self, DatabaseError::Unreachable(_) | DatabaseError::Interrupted(_) | DatabaseError::Busy)
    }

    /// A short name for metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            DatabaseError::Refused(_) => "refused",
            DatabaseError::Unreachable(_) => "unreachable",
            DatabaseError::Busy => "busy",
            DatabaseError::Interrupted(_) => "interrupted",
            DatabaseError::NotReady(_) => "not_ready",
        }
    }
}

impl From<PoolError<tokio_postgres::Error>> for DatabaseError {
    fn from(error: PoolError<tokio_postgres::Error>) -> DatabaseError {
        match error {
            PoolError::Timeout(TimeoutType::Wait) => DatabaseError::Busy,
            PoolError::Timeout(_) => DatabaseError::Unreachable("connecting took too long".into()),
            PoolError::Backend(error) => connect_error(&error),
            other => DatabaseError::Unreachable(other.to_string()),
        }
    }
}

/// An error while a connection was being made.
pub(super) fn connect_error(error: &tokio_postgres::Error) -> DatabaseError {
    DatabaseError::Unreachable(cause(error))
}

/// An error of a statement that was sent.
pub(super) fn statement_error(error: &tokio_postgres::Error) -> DatabaseError {
    let Some(refusal) = error.as_db_error() else {
        return DatabaseError::Interrupted(cause(error));
    };
    let code = refusal.code();
    let class = code.code().get(..2).unwrap_or_default();
    // Shutdown, crash of another backend, connection errors, serialization failures: a retry may succeed.
    if matches!(class, "08" | "40" | "53" | "57" | "58") && *code != SqlState::QUERY_CANCELED {
        return DatabaseError::Interrupted(refusal.message().to_owned());
    }
    if matches!(
        *code,
        SqlState::UNDEFINED_FUNCTION | SqlState::INVALID_SCHEMA_NAME | SqlState::UNDEFINED_TABLE
    ) {
        return DatabaseError::NotReady(format!("{}.", refusal.message()));
    }
    DatabaseError::Refused(
        Refusal {
            code: code.code().to_owned(),
            message: refusal.message().to_owned(),
            detail: refusal.detail().map(str::to_owned),
            hint: refusal.hint().map(str::to_owned),
        }
        .in_our_terms(),
    )
}

/// The root cause; the outer errors only say "error connecting to server".
fn cause(error: &tokio_postgres::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
