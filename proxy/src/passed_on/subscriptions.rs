//! A client's subscriptions to resources: of its session, or since 2026-07-28 of one stream.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use futures_util::future::try_join_all;
use parking_lot::Mutex;
use rmcp::{
    Peer, RoleServer,
    model::{ErrorData, ResourceUpdatedNotificationParam},
};
use tokio_util::sync::CancellationToken;

use super::resources::locate;
use crate::{
    app::App,
    downstream::{CallContext, Subscriber, Subscription, Updates},
    limits::{CountedSubscription, MOST_SUBSCRIPTIONS},
    links,
    run::{CallFailure, error_of},
    scope::Caller,
};

/// One of them, until it is dropped.
struct Held {
    /// As it is listed.
    uri: String,
    _subscription: Subscription,
    _counted: CountedSubscription,
}

async fn subscribe(
    app: &App,
    caller: &Caller,
    cancel: CancellationToken,
    subscriber: Subscriber,
) -> Result<Held, CallFailure> {
    let located = locate(app, &subscriber.uri).await?;
    let Some(counted) = app.subscriptions.add(&caller.scope().tenant()) else {
        let message = format!(
            "You have {MOST_SUBSCRIPTIONS} subscriptions to resources, which is the limit. End some of them first."
        );
        return Err(CallFailure::Protocol(ErrorData::invalid_request(message, None)));
    };
    let context = CallContext { cancel, request_id: caller.request_id.clone(), ..CallContext::default() };
    let subscribing = app.servers.subscribe(&located.server, &located.uri, subscriber, context);
    let subscription = subscribing.await.map_err(|error| CallFailure::Protocol(error_of(error)))?;
    let uri = links::of_server(&located.server, &located.uri);
    Ok(Held { uri, _subscription: subscription, _counted: counted })
}

/// The subscriptions of a session, by the URIs that its client wrote: the listed ones, or the servers' own.
#[derive(Default)]
pub(crate) struct SessionSubscriptions {
    updates: Arc<Updates>,
    held: Mutex<HashMap<String, Held>>,
    notified: OnceLock<()>,
}

impl SessionSubscriptions {
    pub(crate) async fn add(
        &self,
        app: &App,
        caller: &Caller,
        uri: String,
        cancel: CancellationToken,
    ) -> Result<(), CallFailure> {
        let subscriber = Subscriber { updates: self.updates.clone(), uri: uri.clone(), has_stream: false };
        let held = subscribe(app, caller, cancel, subscriber).await?;
        self.held.lock().insert(uri, held);
        Ok(())
    }

    pub(crate) fn remove(&self, uri: &str) {
        self.held.lock().retain(|written, held| written != uri && held.uri != uri);
    }

    /// Notifies the client of updates until the session ends.
    pub(crate) fn notify(&self, peer: &Peer<RoleServer>, ended: &CancellationToken) {
        self.notified.get_or_init(|| {
            // The task holds the peer, not the session.
            let (peer, ended, updates) = (peer.clone(), ended.clone(), self.updates.clone());
            tokio::spawn(async move {
                loop {
                    let uri = tokio::select! {
                        () = ended.cancelled() => return,
                        uri = updates.next() => uri,
                    };
                    if peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_err()
                    {
                        return;
                    }
                }
            });
        });
    }
}

/// The subscriptions of one stream.
pub(crate) struct StreamSubscriptions {
    pub(crate) updates: Arc<Updates>,
    _held: Vec<Held>,
}

impl StreamSubscriptions {
    pub(crate) async fn open(
        app: &App,
        caller: &Caller,
        uris: &[String],
        cancel: &CancellationToken,
    ) -> Result<StreamSubscriptions, CallFailure> {
        let updates = Arc::<Updates>::default();
        let subscribing = uris.iter().map(|uri| {
            let subscriber = Subscriber { updates: updates.clone(), uri: uri.clone(), has_stream: true };
            subscribe(app, caller, cancel.clone(), subscriber)
        });
        let held = try_join_all(subscribing).await?;
        Ok(StreamSubscriptions { updates, _held: held })
    }
}
