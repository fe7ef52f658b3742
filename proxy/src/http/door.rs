//! Accepts connections, within limits that apply before a byte is read, and serves HTTP on them.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
};
use http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use ipnet::IpNet;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_service::Service;

use super::{
    body::HeldBody,
    connections::{Admitted, Connection, Connections, RequestGuard},
    forwarded::{Sender, is_trusted, sender},
    refused::{Reason, Refused},
    tls::Tls,
    watched::WatchedIo,
};
use crate::{metrics::Metrics, rebinding::requested_host};

/// The largest head of a request, and the read buffer of a body.
const LONGEST_HEAD: usize = 64 * 1024;
/// The largest head in HTTP/2, before compression.
const LONGEST_HEADERS: u32 = 32 * 1024;
/// Concurrent requests on one HTTP/2 connection.
const STREAMS: u32 = 128;
/// The flow control windows of HTTP/2: of a stream, and of a connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// Keep-alive: how often the client is probed, and how long it may take to answer.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// The pause after the system refused a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Who sent a request, and on which connection.
#[derive(Clone)]
pub(super) struct HttpPeer {
    pub sender: Sender,
    pub connection: Arc<Connection>,
}

pub(super) struct Door {
    pub connections: Arc<Connections>,
    pub tls: Option<Arc<Tls>>,
    pub trusted_proxies: Vec<IpNet>,
    pub metrics: Arc<Metrics>,
    pub router: Router,
    /// Cancelled when no new connections are accepted and idle ones must end.
    pub stop_accepting: CancellationToken,
    /// Cancelled when everything must stop.
    pub stop: CancellationToken,
}

impl Door {
    /// Serves until `stop_accepting` and then until the last connection has ended.
    pub(super) async fn serve(self: Arc<Self>, listener: TcpListener) {
        let sweep = self.connections.clone().sweep(self.stop.clone());
        tokio::spawn(sweep);
        let served = TaskTracker::new();
        loop {
            tokio::select! {
                () = self.stop_accepting.cancelled() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.clone().receive(stream, peer, &served),
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(error) => {
                        tracing::error!(%error, "can't accept a connection; evicting an idle one");
                        self.connections.make_room();
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(listener);
        served.close();
        served.wait().await;
    }

    fn receive(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, served: &TaskTracker) {
        let is_proxy = is_trusted(peer.ip(), &self.trusted_proxies);
        match self.connections.admit(peer.ip(), is_proxy, self.tls.is_some()) {
            Ok(admitted) => drop(served.spawn(self.attend(stream, peer, admitted))),
            Err(full) => {
                self.metrics.connection_refused(full.label());
                tracing::debug!(%peer, reason = full.label(), "connection refused");
            }
        }
    }

    async fn attend(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, admitted: Admitted) {
        // Answers are small, and Nagle's algorithm would delay them.
        let _ = stream.set_nodelay(true);
        // Detects clients that vanished without closing their streams.
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE * 2).with_interval(KEEPALIVE_TIMEOUT);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
        let connection = admitted.connection.clone();
        let Some(tls) = &self.tls else { return self.speak(stream, peer, connection).await };
        let stream = tokio::select! {
            () = connection.closed() => return,
            () = self.stop_accepting.cancelled() => return,
            shaken = tls.acceptor().accept(stream) => shaken,
        };
        match stream {
            Ok(stream) => {
                connection.shook_hands();
                self.speak(stream, peer, connection).await;
            }
            Err(error) => {
                self.metrics.connection_refused("tls");
                tracing::debug!(%peer, %error, "the TLS handshake failed");
            }
        }
    }

    async fn speak(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: SocketAddr,
        connection: Arc<Connection>,
    ) {
        let service = service_fn(|request: Request<Incoming>| self.answer(request, peer, connection.clone()));
        let protocols = protocols();
        let io = TokioIo::new(WatchedIo::new(stream, connection.clone()));
        let serving = protocols.serve_connection(io, service);
        tokio::pin!(serving);
        let mut is_stopping = false;
        loop {
            tokio::select! {
                served = serving.as_mut() => {
                    if let Err(error) = served {
                        tracing::debug!(%peer, error, "a connection ended");
                    }
                    return;
                }
                () = connection.closed() => return,
                () = self.stop_accepting.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    serving.as_mut().graceful_shutdown();
                }
            }
        }
    }

    fn answer(
        &self,
        mut request: Request<Incoming>,
        peer: SocketAddr,
        connection: Arc<Connection>,
    ) -> impl Future<Output = Result<Response<HeldBody<RequestGuard>>, Infallible>> + Send + use<> {
        let under_way = connection.begin_request(request.version());
        let answer = match self.check(&request, peer) {
            Ok(sender) => {
                request.extensions_mut().insert(HttpPeer { sender, connection });
                Ok(self.router.clone().call(request.map(Body::new)))
            }
            Err(refused) => {
                let reason = refused.reason.label();
                self.metrics.refused(reason);
                tracing::info!(%peer, status = refused.status.as_u16(), reason, "refused");
                Err(refused)
            }
        };
        async move {
            let response = match answer {
                Ok(answer) => answer.await?,
                Err(refused) => refused.into_response(),
            };
            Ok(response.map(|inner| HeldBody::holding(inner, under_way)))
        }
    }

    /// The checks of all requests, including those for health and metrics.
    fn check(&self, request: &Request<Incoming>, peer: SocketAddr) -> Result<Sender, Refused> {
        let headers = request.headers();
        requested_host(request.uri(), request.version(), headers)
            .map_err(|error| Refused::bad_request(Reason::Host, error.to_string()))?;
        sender(peer.ip(), self.tls.is_some(), headers, &self.trusted_proxies)
            .map_err(|error| Refused::bad_request(Reason::Forwarded, error.to_string()))
    }
}

/// HTTP/1 and HTTP/2. [`Connections`] has the timeouts.
fn protocols() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(LONGEST_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(LONGEST_HEADERS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT);
    builder
}

fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
