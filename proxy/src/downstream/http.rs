//! HTTP as real servers speak it: what rmcp's own client lets fall is mended here.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
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
use sse_stream::Sse;

use super::plain::{Greeted, Remembered};

/// How long a TCP connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many requests may wait for the head of their answer at one server.
const MOST_REQUESTS: usize = 256;

pub(super) type HttpError = StreamableHttpError<reqwest::Error>;

/// The way to a server behind HTTP: rmcp's, and the client under it.
pub(super) fn transport(
    url: &url::Url,
    headers: &BTreeMap<String, String>,
) -> Result<(impl Transport<RoleClient, Error = HttpError> + use<>, Client), String> {
    let http = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
        .map_err(|error| format!("no HTTP client could be made: {error}"))?;
    let client = Client { http, remembered: Remembered::default() };
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    // A new session has new tools, perhaps: the supervisor makes it, and lists them.
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

/// Without user, password and query, where secrets are.
pub(super) fn shown(url: &url::Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

/// An interrupted stream is taken up again for some seconds; longer, and the server is gone.
#[derive(Debug)]
pub(super) struct StreamRetries;

impl SseRetryPolicy for StreamRetries {
    fn retry(&self, times: usize) -> Option<Duration> {
        [100, 300, 1_000, 2_000, 4_000].get(times).copied().map(Duration::from_millis)
    }
}

/// rmcp's client, with two things mended: an error that doesn't say which request it answers is the answer to the
/// request that was posted (rmcp drops it, and the caller waits for ever), and a session that the server doesn't know
/// is a lost one, whether it says so with 404, as the protocol asks for, or with an error of its own, as many do.
#[derive(Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    remembered: Remembered,
}

impl Client {
    pub(super) fn remembered(&self) -> &Remembered {
        &self.remembered
    }
}

fn is_about_session(error: &ErrorData) -> bool {
    const SERVERS_OWN: std::ops::RangeInclusive<i32> = -32_099..=-32_000;
    SERVERS_OWN.contains(&error.code.0) && error.message.to_ascii_lowercase().contains("session")
}

impl StreamableHttpClient for Client {
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
            let (session, auth, headers) = (session_id.clone(), auth_header.clone(), custom_headers.clone());
            let _ = self.remembered.set(Greeted { uri: uri.clone(), session, auth, headers });
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
