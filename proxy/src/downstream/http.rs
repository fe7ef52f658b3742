//! The HTTP client for servers: rmcp's, with fixes for how real servers behave.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::BoxStream};
use http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ClientNotification, ErrorData, JsonRpcMessage},
    transport::{
        StreamableHttpClientTransport, Transport,
        common::client_side_sse::SseRetryPolicy,
        streamable_http_client::{
            SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
            StreamableHttpPostResponse,
        },
    },
};
use sse_stream::{Sse, SseStream};

/// Timeout of a TCP connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most requests that wait for a response at one server.
const MOST_REQUESTS: usize = 256;

pub(super) type HttpError = StreamableHttpError<reqwest::Error>;

/// rmcp's transport to a server, and the client under it.
pub(super) fn transport(
    url: &url::Url,
    headers: &BTreeMap<String, String>,
) -> Result<(impl Transport<RoleClient, Error = HttpError> + use<>, HttpClient), String> {
    let http = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
        .map_err(|error| format!("can't create an HTTP client: {error}"))?;
    let client = HttpClient { http, greeted: Arc::default() };
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    // The supervisor opens new sessions, because it must list the tools again.
    config.reinit_on_expired_session = false;
    config.max_concurrent_requests = MOST_REQUESTS;
    config.retry_config = Arc::new(StreamRetries);
    config.custom_headers = headers
        .iter()
        .filter_map(|(name, value)| {
            let mut value = HeaderValue::try_from(value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::try_from(name).ok()?, value))
        })
        .collect();
    Ok((StreamableHttpClientTransport::with_client(client.clone(), config), client))
}

/// Without user, password and query, which may hold secrets.
pub(super) fn shown(url: &url::Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

/// A broken stream is resumed for some seconds; after that the server counts as gone.
#[derive(Debug)]
pub(super) struct StreamRetries;

impl SseRetryPolicy for StreamRetries {
    fn retry(&self, times: usize) -> Option<Duration> {
        [100, 300, 1_000, 2_000, 4_000].get(times).copied().map(Duration::from_millis)
    }
}

/// rmcp's client with two fixes. An error without an id answers the request that was posted (rmcp drops it, and the caller
/// waits for ever). An unknown session is a lost one, whether the server reports it with 404, as the protocol requires, or
/// with its own error, as many do.
#[derive(Clone)]
pub(super) struct HttpClient {
    http: reqwest::Client,
    greeted: Arc<OnceLock<Greeted>>,
}

/// What rmcp sends with each request after the handshake.
#[derive(Clone)]
pub(super) struct Greeted {
    pub(super) uri: Arc<str>,
    /// The same, parsed.
    pub(super) url: url::Url,
    pub(super) session: Option<Arc<str>>,
    pub(super) headers: HashMap<HeaderName, HeaderValue>,
}

pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The response to a message of the fast path.
pub(super) enum Posted {
    Stream(Events),
    /// JSON.
    Message(Bytes),
}

impl HttpClient {
    /// `None` for a server whose protocol has no sessions.
    pub(super) fn greeted(&self) -> Option<&Greeted> {
        self.greeted.get()
    }

    fn remember(
        &self,
        uri: &Arc<str>,
        session: Option<&Arc<str>>,
        headers: &HashMap<HeaderName, HeaderValue>,
    ) {
        let Ok(url) = uri.parse() else { return };
        let (uri, session, headers) = (uri.clone(), session.cloned(), headers.clone());
        let _ = self.greeted.set(Greeted { uri, url, session, headers });
    }

    /// Posts raw JSON.
    pub(super) async fn post_raw(&self, server: &Greeted, body: String) -> Result<Posted, HttpError> {
        let mut request = reqwest::Request::new(Method::POST, server.url.clone());
        let headers = request.headers_mut();
        headers.extend(server.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(session) = server.session.as_ref().and_then(|session| HeaderValue::from_str(session).ok())
        {
            headers.insert("mcp-session-id", session);
        }
        *request.body_mut() = Some(body.into());
        let response = self.http.execute(request).await.map_err(HttpError::Client)?;
        if response.status() == StatusCode::NOT_FOUND && server.session.is_some() {
            return Err(HttpError::SessionExpired);
        }
        let kind = response.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        if response.status().is_success() && kind.starts_with(b"text/event-stream") {
            return Ok(Posted::Stream(bounded_events(response)));
        }
        if !kind.starts_with(b"application/json") {
            let kind = String::from_utf8_lossy(kind).into_owned();
            response.error_for_status().map_err(HttpError::Client)?;
            return Err(HttpError::UnexpectedContentType(Some(kind)));
        }
        let failed = response.error_for_status_ref().err();
        let text = response.bytes().await.map_err(HttpError::Client)?;
        match (serde_json::from_slice::<ServersError>(&text), failed) {
            (Ok(error), _) if server.session.is_some() && is_about_session(&error.error) => {
                Err(HttpError::SessionExpired)
            }
            (Err(_), Some(failed)) => Err(HttpError::Client(failed)),
            _ => Ok(Posted::Message(text)),
        }
    }
}

#[derive(serde::Deserialize)]
struct ServersError {
    error: ErrorData,
}

/// The events of a response, with rmcp's size limit.
fn bounded_events(response: reqwest::Response) -> Events {
    let limit = StreamableHttpClientTransportConfig::default().max_sse_event_size;
    let unfinished = Arc::new(AtomicUsize::new(0));
    let counted = unfinished.clone();
    let bytes = response.bytes_stream().map(move |bytes| {
        let bytes = bytes.map_err(std::io::Error::other)?;
        let length = counted.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
        if length > limit { Err(std::io::Error::other("an event is too large")) } else { Ok(bytes) }
    });
    SseStream::from_bytes_stream(bytes).inspect(move |_| unfinished.store(0, Ordering::Relaxed)).boxed()
}

fn is_about_session(error: &ErrorData) -> bool {
    const SERVERS_OWN: std::ops::RangeInclusive<i32> = -32_099..=-32_000;
    SERVERS_OWN.contains(&error.code.0) && error.message.to_ascii_lowercase().contains("session")
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let default = StreamableHttpClientTransportConfig::default().max_sse_event_size;
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            default,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let request = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let in_session = session_id.is_some();
        if matches!(&message, JsonRpcMessage::Notification(told)
            if matches!(told.notification, ClientNotification::InitializedNotification(_)))
        {
            self.remember(&uri, session_id.as_ref(), &custom_headers);
        }
        let mut response = self
            .http
            .post_message_with_max_sse_event_size(
                uri,
                message,
                session_id,
                auth_header,
                custom_headers,
                max_sse_event_size,
            )
            .await?;
        if let StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), _) = &mut response {
            if in_session && is_about_session(&error.error) {
                return Err(StreamableHttpError::SessionExpired);
            }
            if request.is_some() {
                error.id = request;
            }
        }
        Ok(response)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        self.http.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        self.http.get_stream(uri, session_id, last_event_id, auth_header, custom_headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        self.http
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                auth_header,
                custom_headers,
                max_sse_event_size,
            )
            .await
    }
}
