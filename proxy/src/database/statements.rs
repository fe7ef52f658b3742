//! All statements of the proxy: one for each SQL function that it uses.
//!
//! `pml_act_as` sets the caller's scope in the same statement. Functions that read rows take an argument that depends on
//! that call, so that the scope is set before they run.

use pml_worker::aside_if_large;
use rmcp::model::Tool;
use serde_json::{Value, value::RawValue};
use tokio_postgres::{
    Row,
    types::{FromSql, Json, Type},
};
use uuid::Uuid;

use super::{Database, DatabaseError, Parameter, Refusal, Repeat, statement_error};
use crate::scope::{Caller, Identity, Principal, Scope};

/// A run that has ended, as `pml_finish_many` takes it.
#[derive(Debug)]
pub struct EndedRun {
    pub workflow: Uuid,
    pub caller: Caller,
    pub intent: Option<String>,
    pub args: pml_worker::Json,
    /// From its plan.
    pub context: pml_worker::Json,
    pub outcome: String,
    /// How many calls it made.
    pub calls: usize,
    /// Whether it brought code that may become a capability.
    pub keeps_code: bool,
}

impl EndedRun {
    pub(crate) fn bytes(&self) -> usize {
        self.args.get().len() + self.context.get().len() + self.outcome.len()
    }
}

/// A row of `pml_tools`.
#[derive(Debug)]
pub struct ToolRow {
    pub tool_name: String,
    pub kind: String,
    pub name: String,
    pub description: Option<String>,
    pub input_schema: Option<Value>,
    pub output_schema: Option<Value>,
    /// The tool as its server lists it. Without it, the schemas are given.
    pub definition: Option<Box<RawValue>>,
    pub server: Option<String>,
    pub fqdn: Option<String>,
}

/// A row of `pml_token_list` as JSON.
pub type TokenRow = Value;

fn as_caller(schema: &str, call: &str) -> String {
    format!("SELECT {schema}.{call} FROM {schema}.pml_act_as($1, $2, $3, $4)")
}

fn column<'r, T: FromSql<'r>>(row: &'r Row, column: &str) -> Result<T, DatabaseError> {
    row.try_get(column).map_err(|error| statement_error(&error))
}

impl Database {
    async fn json(
        &self,
        caller: &Caller,
        call: &str,
        parameters: &[Parameter<'_>],
        repeat: Repeat,
    ) -> Result<Box<RawValue>, DatabaseError> {
        self.json_by(caller, |schema| as_caller(schema, call), parameters, repeat).await
    }

    async fn json_by(
        &self,
        caller: &Caller,
        statement: impl Fn(&str) -> String,
        parameters: &[Parameter<'_>],
        repeat: Repeat,
    ) -> Result<Box<RawValue>, DatabaseError> {
        let rows = self.ask(caller, statement, parameters, repeat).await?;
        let row =
            rows.first().ok_or_else(|| DatabaseError::NotReady("a function returned no row.".into()))?;
        let bytes = row.raw_size_bytes();
        let Json(answer) =
            aside_if_large(bytes, || row.try_get(0)).map_err(|error| statement_error(&error))?;
        Ok(answer)
    }

    /// What to do for a request. Writes nothing.
    pub async fn plan(&self, caller: &Caller, request: &Value) -> Result<Box<RawValue>, DatabaseError> {
        let statement = |schema: &str| {
            format!(
                "SELECT CASE WHEN acting THEN {schema}.pml_plan($5) END \
                 FROM {schema}.pml_act_as($1, $2, $3, $4) AS acting"
            )
        };
        self.json_by(caller, statement, &[(&Json(request), Type::JSONB)], Repeat::Harmless).await
    }

    /// Records ended runs in one transaction: the answer of each. Idempotent. `in_turn`: in the turn of the first one's
    /// tenant.
    pub async fn finish_many(
        &self,
        runs: &[&EndedRun],
        in_turn: bool,
    ) -> Result<Vec<Result<Value, DatabaseError>>, DatabaseError> {
        let _turn = match runs.first().filter(|_| in_turn) {
            Some(run) => Some(self.turn(&run.caller).await?),
            None => None,
        };
        fn each<'r, T>(runs: &[&'r EndedRun], field: impl Fn(&'r EndedRun) -> T) -> Vec<T> {
            runs.iter().map(|run| field(run)).collect()
        }
        let workflows = each(runs, |run| run.workflow);
        let orgs = each(runs, |run| run.caller.scope().org.as_str());
        let projects = each(runs, |run| run.caller.scope().project.as_str());
        let actors = each(runs, |run| run.caller.scope().actor.as_str());
        let request_ids = each(runs, |run| run.caller.request_id.as_str());
        let intents = each(runs, |run| run.intent.as_deref());
        let args = each(runs, |run| run.args.get());
        let contexts = each(runs, |run| run.context.get());
        let outcomes = each(runs, |run| run.outcome.as_str());
        let parameters: [Parameter<'_>; 9] = [
            (&workflows, Type::UUID_ARRAY),
            (&orgs, Type::TEXT_ARRAY),
            (&projects, Type::TEXT_ARRAY),
            (&actors, Type::TEXT_ARRAY),
            (&request_ids, Type::TEXT_ARRAY),
            (&intents, Type::TEXT_ARRAY),
            (&args, Type::TEXT_ARRAY),
            (&contexts, Type::TEXT_ARRAY),
            (&outcomes, Type::TEXT_ARRAY),
        ];
        let statement = |schema: &str| {
            format!("SELECT * FROM {schema}.pml_finish_many($1, $2, $3, $4, $5, $6, $7, $8::jsonb[], $9)")
        };
        let rows = self.patiently(statement, &parameters, Repeat::Harmless).await?;
        let lost = || Err(DatabaseError::NotReady("pml_finish_many left out a run.".into()));
        let mut answers: Vec<_> = runs.iter().map(|_| lost()).collect();
        for row in &rows {
            let place: i64 = column(row, "place")?;
            let answer: Option<Json<Value>> = column(row, "answer")?;
            let refusal: Option<Json<Refusal>> = column(row, "refusal")?;
            let at = usize::try_from(place - 1).ok().and_then(|at| answers.get_mut(at));
            let Some(slot) = at else { continue };
            *slot = match (answer, refusal) {
                (Some(Json(answer)), _) => Ok(answer),
                (None, Some(Json(refusal))) => Err(DatabaseError::Refused(refusal.in_our_terms())),
                (None, None) => lost(),
            };
        }
        Ok(answers)
    }

    /// Adds what was counted to the records of capabilities.
    pub(crate) async fn fold_usage(&self) -> Result<(), DatabaseError> {
        let statement = |schema: &str| format!("SELECT {schema}.pml_fold_usage()");
        self.patiently(statement, &[], Repeat::Never).await.map(drop)
    }

    /// Drops traces, calls, results and states of runs that are past their time.
    pub(crate) async fn expire_some(&self) -> Result<(), DatabaseError> {
        let statement = |schema: &str| format!("SELECT {schema}.pml_expire_some()");
        self.patiently(statement, &[], Repeat::Never).await.map(drop)
    }

    /// What to run for a capability that code names only at run time; an empty object if there is none.
    pub async fn callable(&self, caller: &Caller, name: &str) -> Result<Box<RawValue>, DatabaseError> {
        let statement = |schema: &str| {
            format!(
                "SELECT CASE WHEN acting THEN {schema}.pml_callable($5) END \
                 FROM {schema}.pml_act_as($1, $2, $3, $4) AS acting"
            )
        };
        self.json_by(caller, statement, &[(&name, Type::TEXT)], Repeat::Harmless).await
    }

    /// Records calls of servers' tools. Idempotent by the report's id.
    pub async fn tools_used(
        &self,
        caller: &Caller,
        report: Uuid,
        calls: &Value,
    ) -> Result<(), DatabaseError> {
        let statement = |schema: &str| as_caller(schema, "pml_tools_used($5, $6)");
        let parameters: [Parameter<'_>; 2] = [(&report, Type::UUID), (&Json(calls), Type::JSONB)];
        self.ask(caller, statement, &parameters, Repeat::Harmless).await.map(drop)
    }

    /// Calls a built-in tool that runs no code.
    pub(crate) async fn ask_tool(
        &self,
        caller: &Caller,
        tool: &str,
        args: &Value,
        servers: &[String],
        repeat: Repeat,
    ) -> Result<Box<RawValue>, DatabaseError> {
        let parameters: [Parameter<'_>; 3] =
            [(&tool, Type::TEXT), (&Json(args), Type::JSONB), (&servers, Type::TEXT_ARRAY)];
        self.json(caller, "pml_ask($5, $6, $7)", &parameters, repeat).await
    }

    /// The built-in tools, each as MCP lists it.
    pub async fn agent_tools(&self, caller: &Caller) -> Result<Vec<Box<RawValue>>, DatabaseError> {
        let statement = |schema: &str| {
            format!(
                "SELECT t.definition FROM {schema}.pml_act_as($1, $2, $3, $4) AS acting, \
                 {schema}.pml_agent_tools() AS t"
            )
        };
        let rows = self.ask(caller, statement, &[], Repeat::Harmless).await?;
        rows.iter().map(|row| column(row, "definition").map(|Json(tool)| tool)).collect()
    }

    /// The tools of these servers and at most so many capabilities.
    pub async fn tools(
        &self,
        caller: &Caller,
        servers: &[String],
        capabilities: u32,
    ) -> Result<Vec<ToolRow>, DatabaseError> {
        let statement = |schema: &str| {
            format!(
                "SELECT t.tool_name, t.kind, t.name, t.description, t.server_id, t.fqdn, t.definition, \
                 CASE WHEN t.definition IS NULL THEN t.input_schema END AS input_schema, \
                 CASE WHEN t.definition IS NULL THEN t.output_schema END AS output_schema \
                 FROM {schema}.pml_act_as($1, $2, $3, $4) AS acting, \
                 LATERAL {schema}.pml_tools(CASE WHEN acting THEN $5 END, $6) AS t"
            )
        };
        let most = i64::from(capabilities);
        let parameters: [Parameter<'_>; 2] = [(&servers, Type::TEXT_ARRAY), (&most, Type::INT8)];
        let rows = self.ask(caller, statement, &parameters, Repeat::Harmless).await?;
        let bytes = rows.iter().map(Row::raw_size_bytes).sum();
        aside_if_large(bytes, || rows.into_iter().map(|row| tool_row(&row)).collect())
    }

    /// Replaces a server's tools in the caller's project. How many changed.
    pub async fn register_tools(
        &self,
        caller: &Caller,
        server: &str,
        tools: &[Tool],
    ) -> Result<i32, DatabaseError> {
        let statement = |schema: &str| as_caller(schema, "pml_register_tools($5, $6)");
        let parameters: [Parameter<'_>; 2] = [(&server, Type::TEXT), (&Json(tools), Type::JSON)];
        let rows = self.ask(caller, statement, &parameters, Repeat::Harmless).await?;
        rows.first().map_or(Ok(0), |row| row.try_get(0).map_err(|error| statement_error(&error)))
    }

    /// How many rows the caller's scope holds.
    pub async fn stored_rows(&self, caller: &Caller) -> Result<u64, DatabaseError> {
        let statement = |schema: &str| {
            format!(
                "SELECT CASE WHEN acting THEN {schema}.pml_stored_rows() END \
                 FROM {schema}.pml_act_as($1, $2, $3, $4) AS acting"
            )
        };
        let rows = self.ask(caller, statement, &[], Repeat::Harmless).await?;
        let count: Option<i64> =
            rows.first().map_or(Ok(None), |row| row.try_get(0).map_err(|error| statement_error(&error)))?;
        Ok(count.and_then(|rows| u64::try_from(rows).ok()).unwrap_or(0))
    }

    /// The secret that all proxies of this database share.
    pub async fn proxy_key(&self, caller: &Caller) -> Result<Vec<u8>, DatabaseError> {
        let statement = |schema: &str| as_caller(schema, "pml_proxy_key()");
        let rows = self.ask(caller, statement, &[], Repeat::Harmless).await?;
        let row =
            rows.first().ok_or_else(|| DatabaseError::NotReady("pml_proxy_key returned no row.".into()))?;
        row.try_get(0).map_err(|error| statement_error(&error))
    }

    /// The principal of the valid token with this hash.
    pub async fn check_token(&self, hash: &str) -> Result<Option<Principal>, DatabaseError> {
        let statement = |schema: &str| format!("SELECT * FROM {schema}.pml_token_check($1)");
        let rows = self.patiently(statement, &[(&hash, Type::TEXT)], Repeat::Harmless).await?;
        rows.first().map(principal).transpose()
    }

    pub async fn add_token(
        &self,
        hash: &str,
        scope: &Scope,
        label: Option<&str>,
        days: Option<i32>,
    ) -> Result<Uuid, DatabaseError> {
        let statement = |schema: &str| {
            format!(
                "SELECT {schema}.pml_token_add(token_hash => $1, org => $2, project => $3, actor => $4, label => $5, \
                 expires_at => now() + make_interval(days => $6))"
            )
        };
        let parameters: [Parameter<'_>; 6] = [
            (&hash, Type::TEXT),
            (&scope.org, Type::TEXT),
            (&scope.project, Type::TEXT),
            (&scope.actor, Type::TEXT),
            (&label, Type::TEXT),
            (&days, Type::INT4),
        ];
        let rows = self.patiently(statement, &parameters, Repeat::Never).await?;
        let row =
            rows.first().ok_or_else(|| DatabaseError::NotReady("pml_token_add returned no row.".into()))?;
        row.try_get(0).map_err(|error| statement_error(&error))
    }

    pub async fn list_tokens(&self) -> Result<Vec<TokenRow>, DatabaseError> {
        let statement = |schema: &str| format!("SELECT to_jsonb(t) FROM {schema}.pml_token_list() AS t");
        let rows = self.patiently(statement, &[], Repeat::Harmless).await?;
        rows.iter().map(|row| row.try_get(0).map_err(|error| statement_error(&error))).collect()
    }

    pub async fn revoke_token(&self, id: Uuid) -> Result<bool, DatabaseError> {
        let statement = |schema: &str| format!("SELECT {schema}.pml_token_revoke($1)");
        let rows = self.patiently(statement, &[(&id, Type::UUID)], Repeat::Harmless).await?;
        rows.first().map_or(Ok(false), |row| row.try_get(0).map_err(|error| statement_error(&error)))
    }

    /// Notifies. Its commit waits neither for the disk nor for a standby.
    pub(super) async fn notify(&self, channel: &str, payload: &str) -> Result<(), DatabaseError> {
        let statement =
            "SELECT pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.pg_notify($1, $2)";
        let parameters: [Parameter<'_>; 2] = [(&channel, Type::TEXT), (&payload, Type::TEXT)];
        self.once(statement, &parameters).await.map(drop)
    }

    /// What the doctor checks about server and role.
    pub async fn facts(&self) -> Result<Value, DatabaseError> {
        let query = "SELECT jsonb_build_object( \
             'server', current_setting('server_version'), 'database', current_database(), 'role', current_user, \
             'standby', pg_is_in_recovery(), \
             'extension', (SELECT extversion FROM pg_extension WHERE extname = 'pml'), \
             'unusable_schema', (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace \
                        WHERE e.extname = 'pml' AND NOT has_schema_privilege(n.oid, 'USAGE')), \
             'available', (SELECT default_version FROM pg_available_extensions WHERE name = 'pml'), \
             'superuser', (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), \
             'admin', (SELECT pg_has_role(current_user, oid, 'member') FROM pg_roles WHERE rolname = 'pml_admin'), \
             'proxy', (SELECT pg_has_role(current_user, oid, 'member') FROM pg_roles WHERE rolname = 'pml_proxy'))";
        let rows = self.once(query, &[]).await?;
        rows.first().map_or(Ok(Value::Null), |row| row.try_get(0).map_err(|error| statement_error(&error)))
    }
}

fn tool_row(row: &Row) -> Result<ToolRow, DatabaseError> {
    Ok(ToolRow {
        tool_name: column(row, "tool_name")?,
        kind: column(row, "kind")?,
        name: column(row, "name")?,
        description: column(row, "description")?,
        input_schema: column(row, "input_schema")?,
        output_schema: column(row, "output_schema")?,
        definition: column::<Option<Json<_>>>(row, "definition")?.map(|Json(tool)| tool),
        server: column(row, "server_id")?,
        fqdn: column(row, "fqdn")?,
    })
}

fn principal(row: &Row) -> Result<Principal, DatabaseError> {
    Ok(Principal {
        identity: Identity::Token(column(row, "id")?),
        scope: Scope {
            org: column(row, "org")?,
            project: column(row, "project")?,
            actor: column(row, "actor")?,
        },
    })
}
