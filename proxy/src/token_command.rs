//! `pml token`: making, listing and revoking bearer tokens.

use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    config::Config,
    database::{Database, DatabaseError},
    tokens,
};

/// Why a token command failed.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("{}", text(.0))]
    Database(#[from] DatabaseError),
    #[error("No random numbers can be had: {0}")]
    Random(#[from] getrandom::Error),
    #[error("There is no valid token with the id {0}; see: pml token list")]
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
pub async fn create(
    config: &Config,
    label: Option<&str>,
    expires_in: Option<u32>,
    as_json: bool,
) -> Result<(), TokenError> {
    let token = tokens::generate()?;
    let days = expires_in.map(|days| i32::try_from(days).unwrap_or(i32::MAX));
    let id = database(config).add_token(&tokens::hash(&token), &config.scope, label, days).await?;
    if as_json {
        let scope = &config.scope;
        println!(
            "{}",
            json!({"id": id, "token": token, "org": scope.org, "project": scope.project, "actor": scope.actor})
        );
    } else {
        println!("{token}");
        eprintln!("Token {id} for {}. It is shown only now; Postgres has its hash.", config.scope);
    }
    Ok(())
}

pub async fn list(config: &Config, as_json: bool) -> Result<(), TokenError> {
    let tokens = database(config).list_tokens().await?;
    if as_json {
        println!("{}", Value::Array(tokens));
        return Ok(());
    }
    if tokens.is_empty() {
        println!("There are no tokens. Make one with: pml token create");
    }
    for token in tokens {
        let field = |key: &str| token[key].as_str().unwrap_or("-").to_owned();
        let state = if token["revoked_at"].is_null() { "valid" } else { "revoked" };
        println!(
            "{}  {}.{} as {}  {}  {state}  expires {}  last used {}",
            field("id"),
            field("org"),
            field("project"),
            field("actor"),
            field("label"),
            field("expires_at"),
            field("last_used_at"),
        );
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
