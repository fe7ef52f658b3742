//! Sessions that belong to whoever opened them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::Stream;
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_server::session::{
        ServerSseMessage, SessionId, SessionManager,
        local::{LocalSessionManager, LocalSessionManagerError},
    },
};

use crate::{handler::SESSION_IDLE, scope::Identity};

tokio::task_local! {
    /// Who makes the HTTP request that is being handled.
    pub(super) static REQUESTER: Identity;
}

/// rmcp's sessions, with their owners.
pub(super) struct OwnedSessions {
    inner: LocalSessionManager,
    owners: Mutex<HashMap<SessionId, Identity>>,
}

impl OwnedSessions {
    pub(super) fn new() -> Arc<OwnedSessions> {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = Some(SESSION_IDLE);
        Arc::new(OwnedSessions { inner, owners: Mutex::default() })
    }

    /// Whether this session is there and is `identity`'s. To anyone else it doesn't exist.
    pub(super) fn is_of(&self, id: &str, identity: &Identity) -> bool {
        self.lock().get(id).is_some_and(|owner| owner == identity)
    }

    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn count_of(&self, identity: &Identity) -> usize {
        self.lock().values().filter(|owner| *owner == identity).count()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Identity>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionManager for OwnedSessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.inner.create_session().await?;
        let owner = REQUESTER.try_with(Clone::clone).unwrap_or(Identity::Configured);
        self.lock().insert(id.clone(), owner);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.lock().remove(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.resume(id, last_event_id).await
    }
}
