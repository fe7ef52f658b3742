//! Subscribes to a server's resources: before 2026-07-28 by a request for each URI, since then with one stream for all.
//!
//! After an interruption subscribers are told of an update, because they may have missed one.

use std::{collections::HashSet, sync::Arc};

use rmcp::{
    ServiceError,
    model::{ErrorCode, SubscriptionFilter},
    service,
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    call::CallContext,
    calling,
    connection::{Broken, Connection, service_reason},
    error::DownstreamError,
    request::{Request, RequestKind},
    server::{RESUBSCRIBE, Server},
    subscriptions::Subscriber,
};

/// A client's subscription to a resource, until it is dropped.
pub struct Subscription {
    server: Arc<Server>,
    uri: String,
    number: u64,
}

/// The URIs that the server's stream has, since 2026-07-28.
#[derive(Default)]
pub(super) struct Confirmed {
    version: u64,
    uris: HashSet<String>,
    /// Why there is no stream.
    failed: Option<String>,
}

impl Subscription {
    /// With the version of the server's subscriptions that has it.
    fn new(server: &Arc<Server>, uri: &str, subscriber: Subscriber) -> (Subscription, u64) {
        let (number, version) = server.subscriptions.add(uri, subscriber);
        (Subscription { server: Arc::clone(server), uri: uri.to_owned(), number }, version)
    }
}

const SUBSCRIBE: &str = "resources/subscribe";

/// Subscribes a client to a resource of the server. It must have answered before anything is promised to the client.
pub(super) async fn subscribe(
    server: &Arc<Server>,
    uri: &str,
    subscriber: Subscriber,
    context: CallContext,
) -> Result<Subscription, DownstreamError> {
    let connected = tokio::select! {
        connected = server.connection() => connected,
        () = context.cancel.cancelled() => return Err(cancelled(server)),
    };
    let connection = match connected {
        Ok(connection) => connection,
        // It is subscribed when the server is back.
        Err(DownstreamError::Down { .. }) if subscriber.has_stream => {
            return Ok(Subscription::new(server, uri, subscriber).0);
        }
        Err(error) => return Err(error),
    };
    let resources = connection.info.capabilities.resources.as_ref();
    if resources.is_none_or(|resources| resources.subscribe != Some(true)) {
        let message = "it doesn't announce updates of resources".to_owned();
        return Err(refused(server, ErrorCode::METHOD_NOT_FOUND, message));
    }
    let (subscription, version) = Subscription::new(server, uri, subscriber);
    if connection.info.protocol_version.has_initialize() {
        // For every client, so that each gets the server's own answer.
        ask(server, RequestKind::Subscribe, uri, &context).await?;
    } else {
        confirmed(server, uri, version, &context).await?;
    }
    Ok(subscription)
}

/// Waits until the stream has the URI.
async fn confirmed(
    server: &Arc<Server>,
    uri: &str,
    version: u64,
    context: &CallContext,
) -> Result<(), DownstreamError> {
    let mut confirmed: watch::Receiver<Confirmed> = server.confirmed.subscribe();
    let limit = context.timeout.unwrap_or(server.config.timeout);
    let waited = tokio::select! {
        waited = timeout(limit, confirmed.wait_for(|confirmed| confirmed.version >= version)) => waited,
        () = context.cancel.cancelled() => return Err(cancelled(server)),
    };
    match waited {
        Ok(Ok(confirmed)) if confirmed.uris.contains(uri) => Ok(()),
        Ok(Ok(confirmed)) => {
            let message = confirmed.failed.clone();
            let message = message.unwrap_or_else(|| format!("it doesn't announce updates of {uri}"));
            Err(refused(server, ErrorCode::INVALID_PARAMS, message))
        }
        _ => {
            let (server, tool) = (server.shown.clone(), SUBSCRIBE.to_owned());
            Err(DownstreamError::Timeout { server, tool, limit })
        }
    }
}

fn cancelled(server: &Server) -> DownstreamError {
    DownstreamError::Cancelled { server: server.shown.clone(), tool: SUBSCRIBE.to_owned() }
}

fn refused(server: &Server, code: ErrorCode, message: String) -> DownstreamError {
    DownstreamError::Refused {
        server: server.shown.clone(),
        tool: SUBSCRIBE.to_owned(),
        message: format!("The server {:?} refused the subscription: {message}.", server.name),
        code: code.0,
        data: None,
    }
}

async fn ask(
    server: &Arc<Server>,
    kind: impl FnOnce(String) -> RequestKind,
    uri: &str,
    context: &CallContext,
) -> Result<(), DownstreamError> {
    let request = Request { server: server.name.clone(), kind: kind(uri.to_owned()) };
    calling::ask(server, &request, context).await.map(drop)
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.server.subscriptions.remove(&self.uri, self.number)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (server, uri) = (Arc::clone(&self.server), std::mem::take(&mut self.uri));
            runtime.spawn(async move { server.unsubscribe(&uri).await });
        }
    }
}

impl Server {
    /// Ends the subscription at the server, if nobody has come meanwhile.
    async fn unsubscribe(self: &Arc<Self>, uri: &str) {
        let Some(connection) = self.current_connection() else { return };
        if !connection.info.protocol_version.has_initialize() || self.subscriptions.wants(uri) {
            return;
        }
        let context = CallContext::default();
        let ended = ask(self, RequestKind::Unsubscribe, uri, &context).await;
        if let Err(error) = ended {
            tracing::debug!(server = self.name, %error, "can't end a subscription");
        }
        // Who came while it was being ended has lost it.
        if self.subscriptions.wants(uri) {
            self.subscribe_again(uri).await;
        }
    }

    async fn subscribe_again(self: &Arc<Self>, uri: &str) {
        match ask(self, RequestKind::Subscribe, uri, &CallContext::default()).await {
            Ok(()) => self.subscriptions.updated(uri),
            Err(error) => tracing::warn!(server = self.name, %error, "can't subscribe again"),
        }
    }

    /// Keeps the subscriptions of this connection until it ends.
    pub(super) async fn keep_subscriptions(self: Arc<Self>, connection: Arc<Connection>) {
        let keeping = async {
            if connection.info.protocol_version.has_initialize() {
                for uri in self.subscriptions.wanted().1 {
                    self.subscribe_again(&uri).await;
                }
            } else {
                self.keep_stream(&connection).await;
            }
        };
        tokio::select! {
            () = keeping => {}
            () = connection.ended.cancelled() => {}
        }
    }

    /// Listens to the updates of all URIs, with a new stream whenever there are others. The old one ends after the new one
    /// has begun, so that nothing is missed.
    async fn keep_stream(&self, connection: &Connection) {
        let mut versions = self.subscriptions.versions();
        let mut stream: Option<service::Subscription> = None;
        let mut was_interrupted = true;
        loop {
            versions.mark_unchanged();
            let (version, uris) = self.subscriptions.wanted();
            let opened = if uris.is_empty() { Ok(None) } else { self.open_stream(connection, &uris).await };
            let accepted = opened.as_ref().ok().and_then(Option::as_ref);
            let accepted = accepted.and_then(|stream| stream.acknowledged().resource_subscriptions.clone());
            let failed = opened.as_ref().err().cloned();
            self.confirmed.send_replace(Confirmed {
                version,
                uris: accepted.unwrap_or_default().into_iter().collect(),
                failed,
            });
            if let Some(mut old) = stream.take() {
                let _ = old.cancel().await;
            }
            if std::mem::take(&mut was_interrupted) {
                uris.iter().for_each(|uri| self.subscriptions.updated(uri));
            }
            was_interrupted = opened.is_err();
            stream = opened.ok().flatten();
            tokio::select! {
                changed = versions.changed() => if changed.is_err() { return },
                () = interrupted(stream.as_mut(), was_interrupted) => {
                    was_interrupted = true;
                    stream = None;
                    sleep(RESUBSCRIBE).await;
                }
            }
        }
    }

    async fn open_stream(
        &self,
        connection: &Connection,
        uris: &[String],
    ) -> Result<Option<service::Subscription>, String> {
        let filter = SubscriptionFilter::builder().resource_subscriptions(uris).build();
        let opened = timeout(self.config.timeout, connection.peer.listen(filter)).await;
        opened.unwrap_or(Err(ServiceError::Timeout { timeout: self.config.timeout })).map(Some).map_err(
            |error| {
                if let Some(broken) = Broken::of(&error) {
                    connection.report(broken);
                }
                connection.redactor.clean(&service_reason(&error))
            },
        )
    }
}

/// Waits for the end of a stream. The updates themselves are heard by the tap.
async fn interrupted(stream: Option<&mut service::Subscription>, has_failed: bool) {
    match stream {
        Some(stream) => while let Ok(Some(_)) = stream.next().await {},
        None if has_failed => {}
        None => std::future::pending().await,
    }
}
