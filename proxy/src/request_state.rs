//! What a server behind us wants to see again with the answers to its questions (`requestState`) goes through the client.
//!
//! All clients are one to that server, so it can't tell who brings it back. We can: it is sealed for this client and this
//! tool, with a key that all proxies of a database share, so that it may come back to another one, or after a restart.

use std::time::Duration;

use rmcp::model::{RequestStateCodec, SealOptions};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::{
    database::{Database, DatabaseError},
    scope::Caller,
};

/// How long a person may think, where nothing waits for the answer.
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
        "The requestState isn't the one that was given to you for this tool within the last hour. \
         Call the tool without it, from the beginning."
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

/// Who may bring it back, and for what.
pub(crate) struct StateOwner(Vec<u8>);

impl StateOwner {
    pub(crate) fn of(caller: &Caller, server: &str, tool: &str) -> StateOwner {
        let (who, scope) = (caller.principal.identity.to_string(), caller.scope());
        // JSON, because no part of it can be mistaken for another.
        let parts = json!([who, scope.org, scope.project, scope.actor, server, tool]);
        StateOwner(parts.to_string().into_bytes())
    }
}
