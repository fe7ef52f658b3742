//! The proxy's connection pool to Postgres. Every request is one statement in one round trip.
//!
//! Statements are unnamed and leave no session state, so that pgbouncer in transaction mode works.

mod connect;
mod error;
mod hearing;
mod listen;
mod statements;

use std::{sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable};
use deadpool::managed::{Object, Pool};
use deadpool_postgres::{Runtime, Timeouts};
use tokio::{
    sync::OnceCell,
    time::{Instant, timeout},
};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};

use pml_worker::{Counts, FairGate, Permit, Shares};

use crate::{backoff::pauses, config::DatabaseConfig, metrics::Metrics, scope::Caller};
use connect::Manager;
pub use error::{DatabaseError, Refusal};
use error::{Retry, connect_error, statement_error};
pub use hearing::{SILENT_ADVICE, Unheard, hears};
pub use listen::{NotificationHandler, listen};
pub use statements::{EndedRun, TokenRow, ToolRow};

/// A value and its type, because statements aren't prepared.
type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Back-off between retries of a statement.
const RETRIES: ExponentialBuilder = pauses(Duration::from_millis(25), Duration::from_secs(1));
/// A statement that takes longer is cancelled, and its connection closed.
const LONGEST_STATEMENT: Duration = Duration::from_secs(60);

/// Whether a statement may be repeated if its first outcome isn't known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    Harmless,
    Never,
}

/// A tenant alone gets half of the connections; the rest is for tenants that come meanwhile. (With a quarter, eight clients
/// of one tenant made 12 % fewer calls a second.) With others it gets a sixteenth: concurrent statements of one tenant make
/// the others wait for a processor.
fn shares(connections: usize) -> Shares {
    let slots = connections.div_ceil(2);
    let in_company = connections.div_ceil(16);
    Shares { in_company, ..Shares::unbounded(slots, connections - slots) }
}

/// The pool. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    pool: Pool<Manager>,
    patience: Duration,
    /// The schema of the extension's functions, looked up once.
    schema: Arc<OnceCell<String>>,
    metrics: Arc<Metrics>,
    /// Shares the connections among tenants.
    turns: FairGate,
}

impl Database {
    /// Doesn't connect yet.
    pub fn new(config: &DatabaseConfig, metrics: Arc<Metrics>) -> Database {
        let pool = Pool::builder(Manager::new(config.main.clone()))
            .max_size(config.connections)
            .runtime(Runtime::Tokio1)
            .build()
            .expect("a pool without hooks and timeouts can't be wrong");
        let turns = FairGate::new(shares(config.connections));
        Database { pool, patience: config.patience, schema: Arc::default(), metrics, turns }
    }

    /// The same pool with a shorter patience.
    #[must_use]
    pub fn in_a_hurry(&self, patience: Duration) -> Database {
        Database { patience: self.patience.min(patience), ..self.clone() }
    }

    /// Connections in use, and all.
    pub fn connections(&self) -> (usize, usize) {
        let status = self.pool.status();
        (status.size.saturating_sub(status.available), status.size)
    }

    /// Running and queued statements.
    pub fn statements(&self) -> Counts {
        self.turns.counts()
    }

    /// Whether Postgres answers now.
    pub async fn ping(&self) -> Result<(), DatabaseError> {
        self.once("SELECT 1", &[]).await.map(drop)
    }

    /// Runs a statement whose parameters `$1` to `$4` are the caller's scope and request id.
    async fn ask(
        &self,
        caller: &Caller,
        statement: impl Fn(&str) -> String,
        further: &[Parameter<'_>],
        repeat: Repeat,
    ) -> Result<Vec<Row>, DatabaseError> {
        let scope = caller.scope();
        let mut parameters: Vec<Parameter<'_>> = vec![
            (&scope.org, Type::TEXT),
            (&scope.project, Type::TEXT),
            (&scope.actor, Type::TEXT),
            (&caller.request_id, Type::TEXT),
        ];
        parameters.extend(further.iter().cloned());
        let _turn = self.turn(caller).await?;
        self.patiently(statement, &parameters, repeat).await
    }

    /// The turn of the caller's tenant.
    async fn turn(&self, caller: &Caller) -> Result<Permit, DatabaseError> {
        let turn = timeout(self.patience, self.turns.enter(&caller.scope().tenant(), 0)).await;
        // The gate is never closed and its queue is unbounded.
        turn.ok().and_then(Result::ok).ok_or(DatabaseError::Busy)
    }

    /// Retries while Postgres can't be reached, as long as the patience lasts.
    async fn patiently(
        &self,
        statement: impl Fn(&str) -> String,
        parameters: &[Parameter<'_>],
        repeat: Repeat,
    ) -> Result<Vec<Row>, DatabaseError> {
        let deadline = Instant::now() + self.patience;
        let once = || async { self.once(&statement(self.schema().await?), parameters).await };
        once.retry(RETRIES)
            .when(|error: &DatabaseError| {
                self.metrics.database_error(error.kind());
                match error.retry() {
                    Retry::Safe => true,
                    Retry::Unclear => repeat != Repeat::Never,
                    Retry::Pointless => false,
                }
            })
            .adjust(|_, pause| pause.filter(|pause| Instant::now() + *pause <= deadline))
            .notify(|error, pause| tracing::debug!(%error, "retrying a statement in {pause:?}"))
            .await
    }

    async fn schema(&self) -> Result<&String, DatabaseError> {
        self.schema
            .get_or_try_init(|| async {
                let query = "SELECT quote_ident(n.nspname), has_schema_privilege(n.oid, 'USAGE'), current_user::text \
                             FROM pg_catalog.pg_extension e \
                             JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pml'";
                match self.once(query, &[]).await?.first() {
                    Some(row) => usable_schema(row),
                    None => Err(DatabaseError::NotReady("the extension pml isn't installed in it.".into())),
                }
            })
            .await
    }

    async fn once(&self, statement: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, DatabaseError> {
        let patience = Some(self.patience);
        let timeouts = Timeouts { wait: patience, create: patience, recycle: patience };
        let client = self.pool.timeout_get(&timeouts).await?;
        let _serving = client.serve_current_request();
        match timeout(LONGEST_STATEMENT, client.query_typed(statement, parameters)).await {
            Ok(rows) => rows.map_err(|error| {
                let error = statement_error(&error);
                if matches!(error, DatabaseError::NotReady(_)) {
                    tracing::error!(%error, "the database isn't ready");
                }
                error
            }),
            Err(_) => {
                let cancel = client.cancel_token();
                drop(Object::take(client));
                tokio::spawn(async move { cancel.cancel_query(tokio_postgres::NoTls).await });
                Err(DatabaseError::Interrupted(format!("no answer within {LONGEST_STATEMENT:?}")))
            }
        }
    }
}

fn usable_schema(row: &Row) -> Result<String, DatabaseError> {
    let read = |error| statement_error(&error);
    let (schema, role): (String, String) = (row.try_get(0).map_err(read)?, row.try_get(2).map_err(read)?);
    if row.try_get(1).map_err(read)? {
        return Ok(schema);
    }
    Err(DatabaseError::NotReady(format!(
        "role {role} may not use schema {schema}, where the functions of the extension are; run: {}.",
        grant_usage(&schema)
    )))
}

/// What an admin runs so that proxies reach the extension's functions.
pub(crate) fn grant_usage(schema: &str) -> String {
    format!("GRANT USAGE ON SCHEMA {schema} TO pml_proxy;")
}
