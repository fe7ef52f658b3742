//! Seals a downstream server's `requestState`, which goes to the client and comes back with its answers.
//!
//! The server can't tell clients apart: to it they are all the proxy. So the state is sealed for one client and one request,
//! with a key that all proxies of a database share: it may come back to another proxy, or after a restart.

use std::time::Duration;

use rmcp::model::{RequestStateCodec, SealOptions};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::{
    database::{Database, DatabaseError},
    scope::Caller,
};

/// How long a client may take to come back with it.
const VALID: Duration = Duration::from_secs(3600);

#[derive(Default)]
pub(crate) struct RequestStates {
    codec: OnceCell<RequestStateCodec>,
}

/// Why a `requestState` is rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(
        "The requestState isn't one that was given to this client for this request within the last hour. \
         Repeat the request without it."
    )]
    Forged,
}

impl RequestStates {
    pub(crate) async fn seal(
        &self,
        database: &Database,
        caller: &Caller,
        owner: &StateOwner,
        state: &str,
    ) -> Result<String, DatabaseError> {
        let options = SealOptions::new().associated_data(&owner.0).ttl(VALID);
        Ok(self.codec(database, caller).await?.seal_with(state.as_bytes(), &options))
    }

    pub(crate) async fn open(
        &self,
        database: &Database,
        caller: &Caller,
        owner: &StateOwner,
        sealed: &str,
    ) -> Result<String, StateError> {
        let codec = self.codec(database, caller).await?;
        let state = codec.open_with(sealed, &owner.0).map_err(|_| StateError::Forged)?;
        String::from_utf8(state).map_err(|_| StateError::Forged)
    }

    async fn codec(&self, database: &Database, caller: &Caller) -> Result<&RequestStateCodec, DatabaseError> {
        self.codec
            .get_or_try_init(|| async {
                let key = database.proxy_key(caller).await?;
                RequestStateCodec::try_new(key).map_err(|error| DatabaseError::NotReady(format!("{error}.")))
            })
            .await
    }
}

/// Who may bring a state back, and for which request.
pub(crate) struct StateOwner(Vec<u8>);

impl StateOwner {
    pub(crate) fn of(caller: &Caller, server: &str, method: &str, subject: &str) -> StateOwner {
        let (who, scope) = (caller.principal.identity.to_string(), caller.scope());
        // JSON, because its parts can't run into each other.
        let parts = json!([who, scope.org, scope.project, scope.actor, server, method, subject]);
        StateOwner(parts.to_string().into_bytes())
    }
}
