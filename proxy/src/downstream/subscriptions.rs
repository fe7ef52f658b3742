//! Which clients hear of updates of a server's resources. All of them share one subscription at the server to each URI.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::links;

/// Beyond this, a client that reads slowly isn't told which part of a resource was updated.
const MOST_PARTS: usize = 1_000;

/// The updates that a client wasn't told of yet, each once.
#[derive(Debug, Default)]
pub struct Updates {
    uris: Mutex<BTreeSet<String>>,
    added: Notify,
}

impl Updates {
    fn add(&self, uri: String) {
        self.uris.lock().insert(uri);
        self.added.notify_one();
    }

    fn has_many(&self) -> bool {
        self.uris.lock().len() >= MOST_PARTS
    }

    /// Waits for an update; the resource's URI as the client knows it.
    pub async fn next(&self) -> String {
        loop {
            if let Some(uri) = self.uris.lock().pop_first() {
                return uri;
            }
            self.added.notified().await;
        }
    }
}

/// A client that subscribes to a resource.
pub struct Subscriber {
    pub updates: Arc<Updates>,
    /// The URI as the client wrote it.
    pub uri: String,
    /// Since 2026-07-28: it has a stream already, which waits while the server is down and allows no URIs but its own.
    pub has_stream: bool,
}

/// The subscribers of one server.
pub(super) struct Subscriptions {
    server: String,
    by_uri: Mutex<HashMap<String, HashMap<u64, Subscriber>>>,
    next: AtomicU64,
    /// Counts changes of the set of URIs.
    version: watch::Sender<u64>,
}

impl Subscriptions {
    pub(super) fn new(server: &str) -> Arc<Subscriptions> {
        Arc::new(Subscriptions {
            server: server.to_owned(),
            by_uri: Mutex::default(),
            next: AtomicU64::default(),
            version: watch::Sender::default(),
        })
    }

    /// The subscriber's number, and from which version on the server's subscriptions have the URI.
    pub(super) fn add(&self, uri: &str, subscriber: Subscriber) -> (u64, u64) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut by_uri = self.by_uri.lock();
        let subscribers = by_uri.entry(uri.to_owned()).or_default();
        if subscribers.is_empty() {
            self.version.send_modify(|version| *version += 1);
        }
        subscribers.insert(number, subscriber);
        (number, *self.version.borrow())
    }

    /// Whether it was the last one of the URI.
    pub(super) fn remove(&self, uri: &str, number: u64) -> bool {
        let mut by_uri = self.by_uri.lock();
        let Some(subscribers) = by_uri.get_mut(uri) else { return false };
        subscribers.remove(&number);
        let is_last = subscribers.is_empty();
        if is_last {
            by_uri.remove(uri);
            self.version.send_modify(|version| *version += 1);
        }
        is_last
    }

    pub(super) fn wants(&self, uri: &str) -> bool {
        self.by_uri.lock().contains_key(uri)
    }

    /// All URIs, and their version.
    pub(super) fn wanted(&self) -> (u64, Vec<String>) {
        let by_uri = self.by_uri.lock();
        (*self.version.borrow(), by_uri.keys().cloned().collect())
    }

    pub(super) fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Tells the subscribers of the resource, and of those that it is a part of.
    pub(super) fn updated(&self, uri: &str) {
        let by_uri = self.by_uri.lock();
        if by_uri.is_empty() {
            return;
        }
        for whole in std::iter::once(uri).chain(wholes(uri)) {
            for subscriber in by_uri.get(whole).into_iter().flat_map(HashMap::values) {
                let names_part = whole != uri && !subscriber.has_stream && !subscriber.updates.has_many();
                subscriber.updates.add(if names_part {
                    links::of_server(&self.server, uri)
                } else {
                    subscriber.uri.clone()
                });
            }
        }
    }
}

/// What a resource may be a part of: `a://b/c` is one of `a://b` and of `a://b/`.
fn wholes(uri: &str) -> impl Iterator<Item = &str> {
    let slashes = uri.char_indices().filter(|(_, character)| *character == '/').map(|(at, _)| at);
    slashes.flat_map(move |at| [&uri[..at], &uri[..=at]]).filter(move |whole| whole.len() < uri.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt as _;

    use super::{Subscriber, Subscriptions, Updates};

    fn subscriber(uri: &str, has_stream: bool) -> (Subscriber, Arc<Updates>) {
        let updates = Arc::<Updates>::default();
        (Subscriber { updates: updates.clone(), uri: uri.to_owned(), has_stream }, updates)
    }

    #[test]
    fn only_subscribers_hear_of_an_update_and_once() {
        let subscriptions = Subscriptions::new("s");
        let (ann, heard_by_ann) = subscriber("pml://s/a://b", false);
        let (bob, heard_by_bob) = subscriber("a://b", true);
        let (cid, heard_by_cid) = subscriber("pml://s/a://b2", false);
        let (first, version) = subscriptions.add("a://b", ann);
        let (second, same_version) = subscriptions.add("a://b", bob);
        assert_eq!(version, same_version);
        let (_, newer) = subscriptions.add("a://b2", cid);
        assert!(newer > version);
        for uri in ["a://b", "a://b", "a://b/c", "a://x"] {
            subscriptions.updated(uri);
        }
        let next = |updates: &Updates| updates.next().now_or_never();
        assert_eq!(next(&heard_by_ann).as_deref(), Some("pml://s/a://b"));
        assert_eq!(next(&heard_by_ann).as_deref(), Some("pml://s/a://b/c"));
        assert_eq!(next(&heard_by_bob).as_deref(), Some("a://b"));
        assert_eq!(
            [&heard_by_ann, &heard_by_bob, &heard_by_cid].map(|heard| next(heard)),
            [None, None, None]
        );
        assert!(!subscriptions.remove("a://b", first) && subscriptions.wants("a://b"));
        assert!(subscriptions.remove("a://b", second) && !subscriptions.wants("a://b"));
        assert_eq!(subscriptions.wanted().1, ["a://b2"]);
        subscriptions.updated("a://b");
        assert_eq!(next(&heard_by_ann), None);
    }
}
