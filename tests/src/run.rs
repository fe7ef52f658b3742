//! Shorthands for runs: `pml_begin` and `pml_finish`, as the proxy calls them.

use postgres::{Client, error::DbError};
use serde_json::{Value, json};

use crate::failure;

pub trait Run {
    fn begin(&mut self, request: &Value) -> Value;
    fn begin_fails(&mut self, request: &Value) -> DbError;
    fn finish(&mut self, plan: &Value, outcome: &Value) -> Value;
    fn finish_fails(&mut self, plan: &Value, outcome: &Value) -> DbError;
    /// Begins and finishes with this result.
    fn run(&mut self, request: &Value, result: &Value) -> Value;
}

const FINISH: &str = "SELECT pml_finish(($1::jsonb ->> 'workflow_id')::uuid, $2)";

impl Run for Client {
    fn begin(&mut self, request: &Value) -> Value {
        let row = self.query_one("SELECT pml_begin($1)", &[request]);
        row.unwrap_or_else(|error| panic!("{request}: {error:?}")).get(0)
    }

    fn begin_fails(&mut self, request: &Value) -> DbError {
        failure(self.query("SELECT pml_begin($1)", &[request]))
    }

    fn finish(&mut self, plan: &Value, outcome: &Value) -> Value {
        let row = self.query_one(FINISH, &[plan, outcome]);
        row.unwrap_or_else(|error| panic!("{:.300}: {error:?}", outcome.to_string())).get(0)
    }

    fn finish_fails(&mut self, plan: &Value, outcome: &Value) -> DbError {
        failure(self.query(FINISH, &[plan, outcome]))
    }

    fn run(&mut self, request: &Value, result: &Value) -> Value {
        let plan = self.begin(request);
        self.finish(&plan, &json!({"success": true, "result": result, "duration_ms": 7}))
    }
}
