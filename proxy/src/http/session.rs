//! rmcp's sessions, each owned by the identity that opened it.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::Stream;
use parking_lot::Mutex;
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_server::session::{
        ServerSseMessage, SessionId, SessionManager,
        local::{LocalSessionManager, LocalSessionManagerError},
    },
};

use crate::{handler::SESSION_IDLE, presence::Presence, scope::Identity};

pub(super) const SESSION_ID: &str = "mcp-session-id";
pub(super) const PROTOCOL_VERSION: &str = "mcp-protocol-version";

tokio::task_local! {
    /// The identity behind the current HTTP request.
    pub(super) static REQUESTER: Identity;
}

/// A session whose calls all take the fast path gets one on the normal path this often, or rmcp would close it as idle.
const TOUCH_INTERVAL: Duration = Duration::from_secs(600);

/// rmcp's sessions, with their owners.
pub(super) struct OwnedSessions {
    inner: LocalSessionManager,
    sessions: Mutex<HashMap<SessionId, Owned>>,
}

struct Owned {
    by: Identity,
    /// Whether its client may be asked or notified during a call.
    converses: bool,
    /// When rmcp last saw a request of it.
    in_use: Instant,
    presence: Arc<Presence>,
}

impl OwnedSessions {
    pub(super) fn new() -> Arc<OwnedSessions> {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = Some(SESSION_IDLE);
        Arc::new(OwnedSessions { inner, sessions: Mutex::default() })
    }

    /// Whether this session exists and is owned by `identity`.
    pub(super) fn is_of(&self, id: &str, identity: &Identity) -> bool {
        self.sessions.lock().get(id).is_some_and(|session| session.by == *identity)
    }

    pub(super) fn presence(&self, id: &str) -> Option<Arc<Presence>> {
        self.sessions.lock().get(id).map(|session| session.presence.clone())
    }

    pub(super) fn count(&self) -> usize {
        self.sessions.lock().len()
    }

    pub(super) fn count_of(&self, identity: &Identity) -> usize {
        self.sessions.lock().values().filter(|session| session.by == *identity).count()
    }

    /// A client that sets a log level may be notified during calls.
    fn note_log_level(&self, id: &SessionId, message: &ClientJsonRpcMessage) {
        if let JsonRpcMessage::Request(request) = message
            && matches!(request.request, ClientRequest::SetLevelRequest(_))
            && let Some(session) = self.sessions.lock().get_mut(id)
        {
            session.converses = true;
        }
    }

    /// Whether a call of this session may take the fast path.
    pub(super) fn may_pass_by(&self, id: &str) -> bool {
        let mut sessions = self.sessions.lock();
        let Some(session) = sessions.get_mut(id) else { return false };
        let told = session.in_use.elapsed() < TOUCH_INTERVAL;
        if !told {
            session.in_use = Instant::now();
        }
        told && !session.converses
    }
}

impl SessionManager for OwnedSessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.inner.create_session().await?;
        let by = REQUESTER.try_with(Clone::clone).unwrap_or(Identity::Configured);
        self.sessions.lock().insert(
            id.clone(),
            Owned { by, converses: true, in_use: Instant::now(), presence: Presence::new() },
        );
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        if let JsonRpcMessage::Request(request) = &message
            && let ClientRequest::InitializeRequest(hello) = &request.request
            && let Some(session) = self.sessions.lock().get_mut(id)
        {
            let can = &hello.params.capabilities;
            session.converses = can.elicitation.is_some() || can.sampling.is_some() || can.roots.is_some();
        }
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.sessions.lock().remove(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.note_log_level(id, &message);
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
