//! The resources and prompts that a server offers, as it last listed them.
//!
//! They are read when the server is up and whenever it announces a change. A server that doesn't announce changes is read
//! again for every client that lists.

use std::{sync::Arc, time::Duration};

use rmcp::model::{Prompt, ServerCapabilities};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until, timeout, timeout_at},
};

use super::{connection::Connection, lists::ResourceLists, server::Server};

/// How long a client that lists waits for a server that is being started, from its start.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How long it waits for a list to be read again.
const REREAD_WAIT: Duration = Duration::from_secs(2);
/// The first announcement is followed at once, later ones no sooner than this after it.
const REREAD: Duration = Duration::from_secs(1);

/// Counts how often a list of any server has changed.
#[derive(Default)]
pub(super) struct OfferChanges {
    pub(super) resources: watch::Sender<u64>,
    pub(super) prompts: watch::Sender<u64>,
}

/// A list of a server.
pub(super) struct Offer<T> {
    state: watch::Sender<State<T>>,
    /// Held while the list is read again for clients.
    reading: tokio::sync::Mutex<()>,
}

struct State<T> {
    /// None until the server was up.
    list: Option<Arc<T>>,
    /// False if the last attempt to read it failed.
    is_current: bool,
}

impl<T> Default for Offer<T> {
    fn default() -> Offer<T> {
        let state = State { list: None, is_current: false };
        Offer { state: watch::Sender::new(state), reading: tokio::sync::Mutex::default() }
    }
}

impl<T: Default + PartialEq> Offer<T> {
    /// The last list, if there is any.
    pub(super) fn last(&self) -> Option<Arc<T>> {
        self.state.borrow().list.clone()
    }

    /// Stores what was read. Whether it is another list than before.
    fn store(&self, read: Option<T>) -> bool {
        let mut changed = false;
        self.state.send_modify(|state| {
            state.is_current = read.is_some();
            match (read, &state.list) {
                (Some(list), Some(last)) if list == **last => {}
                (Some(list), last) => {
                    changed = last.is_some() || list != T::default();
                    state.list = Some(Arc::new(list));
                }
                (None, Some(_)) => {}
                (None, None) => state.list = Some(Arc::default()),
            }
        });
        changed
    }
}

/// A kind of list: how it is read, announced and stored.
trait Kind: Default + PartialEq + Send + Sync + 'static {
    const NAME: &str;

    fn offer(server: &Server) -> &Offer<Self>;
    fn changes(changes: &OfferChanges) -> &watch::Sender<u64>;
    fn announced(connection: &Connection) -> &Notify;
    fn is_announced(capabilities: &ServerCapabilities) -> bool;
    fn fetch(connection: &Connection, limit: Duration) -> impl Future<Output = Result<Self, String>> + Send;
}

impl Kind for ResourceLists {
    const NAME: &str = "resources";

    fn offer(server: &Server) -> &Offer<Self> {
        &server.resources
    }

    fn changes(changes: &OfferChanges) -> &watch::Sender<u64> {
        &changes.resources
    }

    fn announced(connection: &Connection) -> &Notify {
        &connection.announced.resources
    }

    fn is_announced(capabilities: &ServerCapabilities) -> bool {
        capabilities.resources.as_ref().is_none_or(|resources| resources.list_changed == Some(true))
    }

    async fn fetch(connection: &Connection, limit: Duration) -> Result<Self, String> {
        connection.fetch_resources(limit).await
    }
}

impl Kind for Vec<Prompt> {
    const NAME: &str = "prompts";

    fn offer(server: &Server) -> &Offer<Self> {
        &server.prompts
    }

    fn changes(changes: &OfferChanges) -> &watch::Sender<u64> {
        &changes.prompts
    }

    fn announced(connection: &Connection) -> &Notify {
        &connection.announced.prompts
    }

    fn is_announced(capabilities: &ServerCapabilities) -> bool {
        capabilities.prompts.as_ref().is_none_or(|prompts| prompts.list_changed == Some(true))
    }

    async fn fetch(connection: &Connection, limit: Duration) -> Result<Self, String> {
        connection.fetch_prompts(limit).await
    }
}

impl Server {
    /// Its resources. Starts it if needed; while it is down, the last list.
    pub(super) async fn list_resources(self: &Arc<Self>) -> Arc<ResourceLists> {
        self.offered::<ResourceLists>().await
    }

    /// Its prompts, likewise.
    pub(super) async fn list_prompts(self: &Arc<Self>) -> Arc<Vec<Prompt>> {
        self.offered::<Vec<Prompt>>().await
    }

    /// Follows both lists of this connection until it ends.
    pub(super) fn follow_offers(self: &Arc<Self>, connection: &Arc<Connection>) {
        tokio::spawn(Arc::clone(self).follow::<ResourceLists>(Arc::clone(connection)));
        tokio::spawn(Arc::clone(self).follow::<Vec<Prompt>>(Arc::clone(connection)));
    }

    async fn offered<T: Kind>(self: &Arc<Self>) -> Arc<T> {
        let offer = T::offer(self);
        let end = self.wake() + LONGEST_WAIT;
        let first = async {
            let connection = self.connection().await.ok()?;
            let mut state = offer.state.subscribe();
            state.wait_for(|state| state.list.is_some()).await.ok()?;
            Some(connection)
        };
        // One that isn't ready is announced later.
        if let Ok(Some(connection)) = timeout_at(end.max(Instant::now()), first).await {
            let is_current =
                || offer.state.borrow().is_current && T::is_announced(&connection.info.capabilities);
            if !is_current() {
                // Concurrent clients wait for one of them to read it.
                let reading = self.read_in_turn::<T>(&connection);
                if timeout(REREAD_WAIT, reading).await.is_err() {
                    tracing::warn!(server = self.name, "can't list its {} again in time", T::NAME);
                }
            }
        }
        offer.last().unwrap_or_default()
    }

    async fn read_in_turn<T: Kind>(&self, connection: &Connection) {
        match T::offer(self).reading.try_lock() {
            Ok(_reading) => self.read::<T>(connection).await,
            Err(_) => drop(T::offer(self).reading.lock().await),
        }
    }

    async fn follow<T: Kind>(self: Arc<Self>, connection: Arc<Connection>) {
        loop {
            let next = Instant::now() + REREAD;
            tokio::select! {
                () = self.read::<T>(&connection) => {}
                () = connection.ended.cancelled() => return,
            }
            tokio::select! {
                () = async { sleep_until(next).await; T::announced(&connection).notified().await } => {}
                () = connection.ended.cancelled() => return,
            }
        }
    }

    async fn read<T: Kind>(&self, connection: &Connection) {
        let read = T::fetch(connection, self.config.startup_timeout).await;
        let read = read.inspect_err(|reason| {
            let reason = connection.redactor.clean(reason);
            tracing::warn!(server = self.name, %reason, "can't list its {}", T::NAME);
        });
        if T::offer(self).store(read.ok()) {
            T::changes(&self.offer_changes).send_modify(|count| *count += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Offer;

    #[test]
    fn only_another_list_is_a_change() {
        let offer = Offer::<Vec<u8>>::default();
        assert!(offer.last().is_none());
        assert!(!offer.store(None) && offer.last().is_some_and(|list| list.is_empty()));
        assert!(!offer.store(Some(vec![])), "it was empty for those who asked");
        assert!(offer.store(Some(vec![1])) && !offer.store(Some(vec![1])));
        assert!(!offer.store(None) && offer.last().is_some_and(|list| *list == [1]), "the last one stays");
        assert!(!offer.state.borrow().is_current);
        assert!(offer.store(Some(vec![])) && offer.state.borrow().is_current);
    }
}
