//! `pml token`: creates, lists and revokes bearer tokens.

use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    cli::TokenCreateArgs,
    config::Config,
    database::{Database, DatabaseError},
    output::print_line,
    tokens,
};

/// Why a token command failed.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("{}", text(.0))]
    Database(#[from] DatabaseError),
    #[error("Can't generate a random token: {0}")]
    Random(#[from] getrandom::Error),
    #[error("No valid token has the id {0}; see: pml token list")]
    Unknown(Uuid),
}

fn text(error: &DatabaseError) -> String {
    match error {
        DatabaseError::Refused(refusal) => refusal.text(),
        other => other.to_string(),
    }
}

fn database(config: &Config) -> Database {
    Database::new(&config.database, Arc::default())
}

/// Prints the token; it can't be shown again.
pub async fn create(config: &Config, args: &TokenCreateArgs) -> Result<(), TokenError> {
    let token = tokens::generate()?;
    let days = args.expires_in.map(|days| i32::try_from(days).unwrap_or(i32::MAX));
    let label = args.label.as_deref();
    let id = database(config).add_token(&tokens::hash(&token), &config.scope, label, days).await?;
    if args.output.json {
        let scope = &config.scope;
        print_line(format_args!(
            "{}",
            json!({"id": id, "token": token, "org": scope.org, "project": scope.project, "actor": scope.actor})
        ));
    } else {
        print_line(format_args!("{token}"));
        eprintln!("Token {id} for {}. It can't be shown again: Postgres stores only its hash.", config.scope);
    }
    Ok(())
}

pub async fn list(config: &Config, as_json: bool) -> Result<(), TokenError> {
    let tokens = database(config).list_tokens().await?;
    if as_json {
        print_line(format_args!("{}", Value::Array(tokens)));
        return Ok(());
    }
    if tokens.is_empty() {
        print_line(format_args!("There are no tokens. Create one with: pml token create"));
    }
    for token in tokens {
        let field = |key: &str| token[key].as_str().unwrap_or("-").to_owned();
        let state = if token["revoked_at"].is_null() { "valid" } else { "revoked" };
        print_line(format_args!(
            "{}  {}.{} as {}  {}  {state}  expires {}  last used {}",
            field("id"),
            field("org"),
            field("project"),
            field("actor"),
            field("label"),
            field("expires_at"),
            field("last_used_at"),
        ));
    }
    Ok(())
}

pub async fn revoke(config: &Config, id: Uuid) -> Result<(), TokenError> {
    if !database(config).revoke_token(id).await? {
        return Err(TokenError::Unknown(id));
    }
    eprintln!("Token {id} is revoked.");
    Ok(())
}
