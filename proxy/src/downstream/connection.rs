//! A connection to a server: opening it, the handshake of its protocol era, and the list of its tools.

#![expect(deprecated, reason = "logging is, but servers use it")]

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ::http::StatusCode;
use parking_lot::Mutex;
use rmcp::{
    Peer, RoleClient, ServiceError,
    model::{
        ClientRequest, ListToolsRequest, LoggingLevel, PaginatedRequestParams, ProtocolVersion,
        ServerPeerInfo, ServerResult, SetLevelRequest, SetLevelRequestParams, Tool,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, PeerRequestOptions, RunningService,
    },
    transport::{Transport, async_rw::AsyncRwTransport, streamable_http_client::StreamableHttpError},
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    announcements::Announcements,
    config::{ServerConfig, TransportConfig},
    http::{self, HttpError},
    passthrough::{HttpPassthrough, Output, Passthrough, ReplyRouter},
    process::{Process, Program, describe},
    question_router::QuestionRouter,
    stderr::{LastLines, Redactor},
    subscriptions::Subscriptions,
    tap::{OpenCalls, Probe, Tap},
};
use crate::lines::FilteredLines;

/// How long to wait for the exit status of a process that closed its output.
const STATUS_WAIT: Duration = Duration::from_millis(500);
/// A list with more pages never ends.
const MOST_PAGES: usize = 1_000;
const UNAUTHORIZED: &str = "rejected our credentials (401 or 403); check \"headers\" in its entry";

/// Which handshake to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// Ask first (`server/discover`), fall back to `initialize`.
    Any,
    /// `initialize` at once: for servers that hang or die on unknown requests.
    Initialize,
    /// `server/discover` only: for servers that are known to support it.
    Discover,
}

/// Why a connection can't be opened.
pub(super) struct OpenError {
    pub(super) reason: String,
    /// The server supports the newer era, but answered too late for this attempt.
    pub(super) answers_discover: bool,
}

/// Why a connection can't be used any more, found by a call or a probe.
#[derive(Clone, Debug)]
pub(super) enum Broken {
    /// The server can't be reached.
    Unreachable(String),
    /// The server has lost our session: it was restarted.
    SessionLost,
}

impl Broken {
    /// None if the error isn't about the connection.
    pub(super) fn of(error: &ServiceError) -> Option<Broken> {
        let ServiceError::TransportSend(error) = error else { return None };
        match error.error.downcast_ref::<HttpError>()? {
            StreamableHttpError::SessionExpired => Some(Broken::SessionLost),
            StreamableHttpError::Client(client) if client.is_connect() => {
                Some(Broken::Unreachable(transport_reason(error.error.as_ref())))
            }
            _ => None,
        }
    }
}

pub(super) type Service = RunningService<RoleClient, QuestionRouter>;

/// An open connection after its handshake.
pub(super) struct Connection {
    /// The server's name.
    pub(super) name: String,
    pub(super) peer: Peer<RoleClient>,
    pub(super) info: Arc<ServerPeerInfo>,
    pub(super) announced: Arc<Announcements>,
    /// Cancelled when the connection is given up.
    pub(super) ended: CancellationToken,
    pub(super) in_flight: AtomicUsize,
    /// The fast path, if the server's transport supports it.
    pub(super) passthrough: Option<Passthrough>,
    pub(super) calls: Arc<OpenCalls>,
    pub(super) redactor: Redactor,
    /// The last level that was set.
    log_level: tokio::sync::Mutex<Option<LoggingLevel>>,
    process: Option<Process>,
    stderr: Option<LastLines>,
    broken: Mutex<Option<Broken>>,
    broke: Notify,
}

impl Connection {
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// Whether it has a session to lose: an HTTP server of the time before 2026-07-28.
    pub(super) fn has_http_session(&self) -> bool {
        self.process.is_none() && self.info.protocol_version.has_initialize()
    }

    /// Reports that the connection is broken. The first report counts.
    pub(super) fn report(&self, broken: Broken) {
        self.broken.lock().get_or_insert(broken);
        self.broke.notify_one();
    }

    /// Waits for a report.
    pub(super) async fn reported(&self) -> Broken {
        loop {
            if let Some(broken) = self.broken.lock().clone() {
                return broken;
            }
            self.broke.notified().await;
        }
    }

    /// Waits until its process ends; for ever for an HTTP server.
    pub(super) async fn process_ended(&self) {
        match &self.process {
            Some(process) => drop(process.exited().await),
            None => std::future::pending().await,
        }
    }

    /// Why it ended.
    pub(super) async fn post_mortem(&self) -> String {
        match &self.process {
            Some(process) => post_mortem(process, self.stderr.as_ref(), "it closed its output").await,
            None => "the connection was closed".to_owned(),
        }
    }

    /// Stops the process, gracefully first. The service should be closed already.
    pub(super) async fn stop(&self) {
        if let Some(process) = &self.process {
            process.stop().await;
        }
    }

    /// All pages of its list of tools.
    pub(super) async fn fetch_tools(&self, limit: Duration) -> Result<Vec<Tool>, String> {
        if self.info.capabilities.tools.is_none() {
            return Ok(Vec::new());
        }
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let handle = self
                .peer
                .send_cancellable_request(request, PeerRequestOptions::with_timeout(limit))
                .await
                .map_err(|error| service_reason(&error))?;
            let page = match handle.await_response().await {
                Ok(ServerResult::ListToolsResult(page)) => page,
                Ok(_) => return Err("its answer to tools/list is invalid".to_owned()),
                Err(error) => return Err(format!("tools/list failed: {}", service_reason(&error))),
            };
            tools.extend(page.tools);
            match page.next_cursor {
                Some(next) if !next.is_empty() => cursor = Some(next),
                _ => return Ok(tools),
            }
        }
        Err(format!("its list of tools has more than {MOST_PAGES} pages"))
    }

    /// Before 2026-07-28 a server has one level for all clients: the lowest that any wants. The proxy filters for the others.
    pub(super) async fn log_for(&self, level: LoggingLevel, limit: Duration) {
        let logs = self.info.capabilities.logging.is_some() && self.info.protocol_version.has_initialize();
        let mut told = self.log_level.lock().await;
        if !logs || told.is_some_and(|told| told as u8 <= level as u8) {
            return;
        }
        *told = Some(level);
        let request = ClientRequest::SetLevelRequest(SetLevelRequest::new(SetLevelRequestParams::new(level)));
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::with_timeout(limit)).await;
        // A server that refuses keeps its own level.
        if let Ok(handle) = sent {
            let _ = handle.await_response().await;
        }
    }

    /// Counts a call until the guard is dropped.
    pub(super) fn call_started(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }
}

/// A running call.
pub(super) struct InFlight(Arc<Connection>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) async fn open(
    name: &str,
    config: &ServerConfig,
    era: Era,
    passthrough: bool,
    subscriptions: Arc<Subscriptions>,
) -> Result<(Connection, Service), OpenError> {
    let announced = Announcements::new(subscriptions);
    let redactor = Redactor::new(&config.secrets);
    let opened = match &config.transport {
        TransportConfig::Stdio { command, args, env, cwd } => {
            let program = Program { command, args, env, cwd: cwd.as_deref() };
            let greeting =
                Greeting { name, limit: config.startup_timeout, era, redactor: redactor.clone(), announced };
            open_stdio(program, greeting, passthrough).await
        }
        TransportConfig::Http { url, headers } => {
            let (transport, client) = http::transport(url, headers)?;
            let link = Link { process: None, stderr: None };
            let greeting =
                Greeting { name, limit: config.startup_timeout, era, redactor: redactor.clone(), announced };
            let greeted = greet(transport, link, greeting).await;
            greeted
                .map(|(mut connection, service)| {
                    if passthrough {
                        let announced = connection.announced.clone();
                        connection.passthrough =
                            HttpPassthrough::new(name.to_owned(), client, announced).map(Passthrough::Http);
                    }
                    (connection, service)
                })
                .map_err(|(not_opened, _)| OpenError {
                    reason: format!("{} {}", http::shown(url), not_opened.reason),
                    ..not_opened
                })
        }
    };
    opened.map_err(|error| OpenError { reason: redactor.clean(&error.reason), ..error })
}

impl From<String> for OpenError {
    fn from(reason: String) -> OpenError {
        OpenError { reason, answers_discover: false }
    }
}

struct Link {
    process: Option<Process>,
    stderr: Option<LastLines>,
}

/// What a handshake needs beside the transport.
struct Greeting<'a> {
    name: &'a str,
    limit: Duration,
    era: Era,
    redactor: Redactor,
    announced: Arc<Announcements>,
}

async fn open_stdio(
    program: Program<'_>,
    greeting: Greeting<'_>,
    passthrough: bool,
) -> Result<(Connection, Service), OpenError> {
    let (process, pipes) = Process::start(program).await?;
    let stderr = LastLines::follow(greeting.name.to_owned(), greeting.redactor.clone(), pipes.stderr);
    let link = Link { process: Some(process), stderr: Some(stderr) };
    let (greeted, passthrough) = if passthrough {
        let answers = Arc::<ReplyRouter>::default();
        let (output, writer) = Output::new(pipes.stdin);
        let transport = AsyncRwTransport::new(FilteredLines::new(pipes.stdout, answers.clone()), writer);
        let greeted = greet(transport, link, greeting).await;
        (greeted, Some(Passthrough::Stdio(answers, output)))
    } else {
        let transport = AsyncRwTransport::new(pipes.stdout, pipes.stdin);
        (greet(transport, link, greeting).await, None)
    };
    match greeted {
        Ok((mut connection, service)) => {
            if connection.info.protocol_version.has_initialize() {
                connection.passthrough = passthrough;
            }
            Ok((connection, service))
        }
        Err((error, Link { process: Some(process), stderr })) => {
            let reason = post_mortem(&process, stderr.as_ref(), &error.reason).await;
            Err(OpenError { reason, ..error })
        }
        Err((error, _)) => Err(error),
    }
}

async fn greet<T>(
    transport: T,
    link: Link,
    greeting: Greeting<'_>,
) -> Result<(Connection, Service), (OpenError, Link)>
where
    T: Transport<RoleClient> + 'static,
    T::Error: Send + Sync,
{
    let Greeting { name, limit, era, redactor, announced } = greeting;
    let calls = Arc::<OpenCalls>::default();
    let asked = QuestionRouter { server: name.to_owned(), calls: Arc::clone(&calls) };
    let calls_of_connection = Arc::clone(&calls);
    let probe = Probe::default();
    let answered_late = Arc::clone(&probe.answered_late);
    let tap = Tap { inner: transport, announced: Arc::clone(&announced), calls, probe };
    let lifecycle = match era {
        Era::Any => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
        Era::Initialize => ClientLifecycleMode::Initialize,
        Era::Discover => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] },
    };
    let greeting = tokio::time::timeout(limit, asked.serve_with_lifecycle(tap, lifecycle)).await;
    let answers_discover = answered_late.load(Ordering::Relaxed);
    let not_opened = |reason: String, link| Err((OpenError { reason, answers_discover }, link));
    let service = match greeting {
        Ok(Ok(_)) if answers_discover => {
            return not_opened("it answered server/discover too late".to_owned(), link);
        }
        Ok(Ok(service)) => service,
        Ok(Err(error)) => return not_opened(greeting_reason(&error), link),
        Err(_) => {
            return not_opened(
                format!("it wasn't ready within {} s (startupTimeout)", limit.as_secs_f64()),
                link,
            );
        }
    };
    let Some(info) = service.peer_info() else {
        return not_opened("it sent no server info".to_owned(), link);
    };
    let connection = Connection {
        name: name.to_owned(),
        peer: service.peer().clone(),
        info,
        announced,
        ended: CancellationToken::new(),
        in_flight: AtomicUsize::new(0),
        passthrough: None,
        calls: calls_of_connection,
        redactor,
        log_level: tokio::sync::Mutex::default(),
        process: link.process,
        stderr: link.stderr,
        broken: Mutex::new(None),
        broke: Notify::new(),
    };
    Ok((connection, service))
}

async fn post_mortem(process: &Process, stderr: Option<&LastLines>, otherwise: &str) -> String {
    let ended = tokio::time::timeout(STATUS_WAIT, process.exited()).await;
    let what = match ended {
        Ok(Some(status)) => describe(status),
        _ => otherwise.to_owned(),
    };
    let lines = match stderr {
        Some(stderr) => stderr.of_ended().await,
        None => Vec::new(),
    };
    if lines.is_empty() { what } else { format!("{what} (its last output: {})", lines.join(" | ")) }
}

fn greeting_reason(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => format!("it rejected the handshake: {}", error.message),
        ClientInitializeError::ConnectionClosed(_) => {
            "it closed the connection during the handshake".to_owned()
        }
        ClientInitializeError::TransportError { error, .. } => transport_reason(error.error.as_ref()),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => format!(
            "it supports only other versions of the protocol: {}",
            server_supported.iter().map(ProtocolVersion::as_str).collect::<Vec<_>>().join(", ")
        ),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => greeting_reason(fallback),
        other => format!("the handshake failed: {other}"),
    }
}

/// The reason in an error of the transport.
fn transport_reason(error: &(dyn Error + Send + Sync + 'static)) -> String {
    match error.downcast_ref::<HttpError>() {
        Some(StreamableHttpError::Client(error)) if error.is_connect() => {
            format!("can't be reached: {}", root_cause(error))
        }
        Some(StreamableHttpError::Client(error)) => match error.status() {
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => UNAUTHORIZED.to_owned(),
            Some(status) => format!("answered with HTTP {status}"),
            None => format!("broke the connection: {}", root_cause(error)),
        },
        Some(StreamableHttpError::HttpStatus(error)) => format!("answered with HTTP {}", error.status),
        Some(StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_)) => {
            UNAUTHORIZED.to_owned()
        }
        Some(other) => format!("failed: {other}"),
        None => root_cause(error),
    }
}

/// The innermost error; the outer ones repeat the URL.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The reason in an error of a request.
pub(super) fn service_reason(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => error.message.to_string(),
        ServiceError::TransportSend(error) => transport_reason(error.error.as_ref()),
        ServiceError::TransportClosed => "the connection was closed".to_owned(),
        ServiceError::Timeout { timeout } => format!("it took longer than {} s", timeout.as_secs_f64()),
        other => other.to_string(),
    }
}
