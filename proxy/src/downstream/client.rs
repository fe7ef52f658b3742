//! The client of a call: the only one that receives what the server asks or logs during the call.

#![expect(deprecated, reason = "sampling, roots and logging are, but servers use them")]

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use pml_worker::Tenant;
use rmcp::{
    Peer, RoleServer, ServiceError,
    model::{
        ClientCapabilities, ClientResult, ErrorData, GetExtensions as _, LoggingLevel,
        LoggingMessageNotificationParam, ProtocolVersion, RequestId, RequestMetaObject,
    },
    service::{OriginatingRequestId, PeerRequestOptions, RequestContext},
};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{pending_request::PendingRequest, question::Question};
use crate::{limits::Questions, presence::Presence};

/// How long a person may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// A client that doesn't read log messages must not delay its own answer.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// A client, during one of its requests. Cheap to clone.
#[derive(Clone)]
pub struct CallingClient(Arc<Inner>);

struct Inner {
    /// The same for all requests of a client.
    session: u64,
    peer: Peer<RoleServer>,
    request: RequestId,
    era: ClientEra,
    capabilities: ClientCapabilities,
    log_level: Option<LoggingLevel>,
    logs: Mutex<Option<Logs>>,
    asking: Asking,
}

/// What limits the questions of one request.
pub struct Asking {
    pub questions: Arc<Questions>,
    pub tenant: Tenant,
    /// Whether the client is connected, if it has an HTTP session.
    pub presence: Option<Arc<Presence>>,
    /// How long the client may be disconnected before it counts as gone.
    pub absent: Duration,
    /// Cancels the request.
    pub end: CancellationToken,
}

impl Asking {
    async fn client_is_gone(&self) {
        match &self.presence {
            Some(presence) => presence.away_for(self.absent).await,
            None => std::future::pending().await,
        }
    }
}

/// How the client can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientEra {
    /// Before 2026-07-28: by a request on its session.
    Asked,
    /// Since then: in the answer to its own request, which it then repeats.
    AsksAgain,
}

/// Log messages that are being sent, in order.
struct Logs {
    sender: mpsc::UnboundedSender<LoggingMessageNotificationParam>,
    sending: JoinHandle<()>,
}

impl CallingClient {
    /// The client of this request. `level` is what its session has set.
    pub fn of(
        session: u64,
        request: &RequestContext<RoleServer>,
        level: Option<LoggingLevel>,
        asking: Asking,
    ) -> CallingClient {
        let stateless =
            request.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let (era, log_level) = if stateless {
            (ClientEra::AsksAgain, request.meta.log_level())
        } else {
            (ClientEra::Asked, level)
        };
        CallingClient(Arc::new(Inner {
            session,
            peer: request.peer.clone(),
            request: request.id.clone(),
            era,
            capabilities: request.client_capabilities().unwrap_or_default(),
            log_level,
            logs: Mutex::default(),
            asking,
        }))
    }

    pub(super) fn session(&self) -> u64 {
        self.0.session
    }

    pub(super) fn era(&self) -> ClientEra {
        self.0.era
    }

    /// The capabilities that the proxy can pass on to servers.
    pub(super) fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation.clone_from(&self.0.capabilities.elicitation);
        capabilities.sampling.clone_from(&self.0.capabilities.sampling);
        capabilities.roots.clone_from(&self.0.capabilities.roots);
        capabilities
    }

    /// The level that it has set.
    pub(super) fn log_level(&self) -> Option<LoggingLevel> {
        self.0.log_level
    }

    /// Without a level, nothing is logged.
    fn wants(&self, message: LoggingLevel) -> bool {
        self.0.log_level.is_some_and(|level| message as u8 >= level as u8)
    }

    /// Asks the client and waits for the answer. Dropping the future withdraws the question.
    pub(super) async fn ask(
        &self,
        mut question: Question,
        meta: RequestMetaObject,
    ) -> Result<ClientResult, ErrorData> {
        if self.0.era == ClientEra::AsksAgain {
            let why =
                "the client's protocol has no requests from servers, and this server can't ask in its answer";
            return question.refused(why);
        }
        if !question.fits(&self.0.capabilities) {
            return question.refused("the client doesn't support it");
        }
        let asking = &self.0.asking;
        let _open = match asking.questions.open(&asking.tenant) {
            Ok(open) => open,
            Err(reached) => return question.refused(&reached.to_string()),
        };
        // Over HTTP it goes to the stream of the client's request.
        question.request.extensions_mut().insert(OriginatingRequestId(self.0.request.clone()));
        let (peer, request) = (self.0.peer.clone(), question.request.clone());
        // In a separate task, because rmcp would take the server's request, which this one handles, for the origin.
        let sent = tokio::spawn(async move {
            let options = PeerRequestOptions::no_options().with_meta(meta);
            peer.send_cancellable_request(request, options).await.map(PendingRequest::new)
        });
        let Ok(Ok(mut pending)) = sent.await else { return question.refused("the client is gone") };
        let answered = tokio::select! {
            biased;
            answered = timeout(ANSWER_TIMEOUT, pending.answer()) => answered,
            () = asking.client_is_gone() => {
                tracing::info!("the client is gone; withdrawing the question and cancelling its call");
                pending.cancel("the client is gone");
                asking.end.cancel();
                return question.refused("the client is gone");
            }
        };
        match answered {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(ServiceError::McpError(error))) => Err(error),
            Ok(Err(_)) => question.refused("the client is gone"),
            Err(_) => {
                pending.cancel("nobody answered");
                question.refused("nobody answered in time")
            }
        }
    }

    /// Forwards a log message of the server, if the client wants it.
    pub(super) fn log(&self, message: LoggingMessageNotificationParam) {
        if !self.wants(message.level) {
            return;
        }
        let mut logs = self.0.logs.lock();
        let logs = logs.get_or_insert_with(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            Logs { sender, sending: tokio::spawn(send_logs(self.0.peer.clone(), receiver)) }
        });
        let _ = logs.sender.send(message);
    }

    /// Waits until all log messages are sent: the answer comes last.
    pub async fn flush_logs(&self) {
        let logs = self.0.logs.lock().take();
        if let Some(Logs { sender, mut sending }) = logs {
            drop(sender);
            if timeout(FLUSH_TIMEOUT, &mut sending).await.is_err() {
                sending.abort();
            }
        }
    }
}

async fn send_logs(
    peer: Peer<RoleServer>,
    mut messages: mpsc::UnboundedReceiver<LoggingMessageNotificationParam>,
) {
    while let Some(message) = messages.recv().await {
        if peer.notify_logging_message(message).await.is_err() {
            return;
        }
    }
}
