//! Tells the sessions of a scope that its list of tools has changed.
//!
//! Anybody who may connect to the database can send notifications, so they are hints: what they name is asked about again,
//! if somebody here wants to know, and not more often than [`RECHECK`]. However many come, there is a mark at each place
//! and no queue.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use rmcp::model::Tool;
use tokio::sync::{Notify, futures::Notified, watch};

use crate::scope::Scope;

/// The first hint is followed at once, the next ones no sooner than this after it.
pub(crate) const RECHECK: Duration = Duration::from_secs(1);

/// What became of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    Taken,
    /// It is on the list already.
    Coalesced,
    /// Nobody here has to do with it.
    Unneeded,
    /// It names nothing that could be.
    Malformed,
}

impl Hint {
    pub(crate) fn outcome(self) -> &'static str {
        match self {
            Hint::Taken => "taken",
            Hint::Coalesced => "coalesced",
            Hint::Unneeded => "unneeded",
            Hint::Malformed => "malformed",
        }
    }
}

/// Who listens, by `org.project`.
#[derive(Default)]
pub(crate) struct Changes {
    places: Mutex<HashMap<String, Place>>,
    hinted: Notify,
}

#[derive(Default)]
struct Place {
    is_hinted: bool,
    scopes: HashMap<Scope, Listened>,
}

struct Listened {
    sender: watch::Sender<u64>,
    /// The list that those who listen may have, as far as it is known.
    told: Option<Arc<Vec<Tool>>>,
}

impl Changes {
    /// Changes of this scope from now on; `has` is the list that was last given in it.
    pub(crate) fn subscribe(&self, scope: &Scope, has: Option<Arc<Vec<Tool>>>) -> watch::Receiver<u64> {
        let mut places = self.lock();
        places.retain(|_, place| {
            place.scopes.retain(|_, listened| listened.sender.receiver_count() > 0);
            !place.scopes.is_empty()
        });
        let place = places.entry(scope.place()).or_default();
        let listened = place.scopes.entry(scope.clone());
        let listened = listened.or_insert_with(|| Listened { sender: watch::Sender::default(), told: has });
        listened.sender.subscribe()
    }

    /// Somebody was given this list, so it is what a later one is compared with.
    pub(crate) fn was_given(&self, scope: &Scope, tools: &Arc<Vec<Tool>>) {
        if let Some(place) = self.lock().get_mut(&scope.place())
            && let Some(listened) = place.scopes.get_mut(scope)
        {
            listened.told.get_or_insert_with(|| tools.clone());
        }
    }

    pub(crate) fn hint(&self, place: &str) -> Hint {
        let mut places = self.lock();
        let Some(place) = places.get_mut(place) else { return Hint::Unneeded };
        if std::mem::replace(&mut place.is_hinted, true) {
            return Hint::Coalesced;
        }
        self.hinted.notify_one();
        Hint::Taken
    }

    pub(crate) fn hint_all(&self) {
        self.lock().values_mut().for_each(|place| place.is_hinted = true);
        self.hinted.notify_one();
    }

    /// Waits until somebody should be asked about.
    pub(crate) fn hinted(&self) -> Notified<'_> {
        self.hinted.notified()
    }

    /// The scopes that must be asked about, and are then off the list.
    pub(crate) fn take_hinted(&self) -> Vec<Scope> {
        let mut places = self.lock();
        let hinted = places
            .values_mut()
            .filter_map(|place| std::mem::take(&mut place.is_hinted).then(|| place.scopes.iter()));
        let listened_to = hinted.flatten().filter(|(_, listened)| listened.sender.receiver_count() > 0);
        listened_to.map(|(scope, _)| scope.clone()).collect()
    }

    /// Tells those who listen, unless this is the list that they have.
    pub(crate) fn tell(&self, scope: &Scope, tools: Arc<Vec<Tool>>) -> bool {
        let mut places = self.lock();
        let place = places.get_mut(&scope.place());
        let Some(listened) = place.and_then(|place| place.scopes.get_mut(scope)) else { return false };
        let is_same = |told: &Arc<Vec<Tool>>| Arc::ptr_eq(told, &tools) || **told == *tools;
        let is_new = !listened.told.as_ref().is_some_and(is_same);
        listened.told = Some(tools);
        if is_new {
            listened.sender.send_modify(|count| *count += 1);
        }
        is_new
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Place>> {
        self.places.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rmcp::model::Tool;

    use super::{Changes, Hint};
    use crate::scope::Scope;

    fn scope(project: &str) -> Scope {
        Scope { org: "o".into(), project: project.into(), actor: "a".into() }
    }

    fn list(names: &[&'static str]) -> Arc<Vec<Tool>> {
        Arc::new(names.iter().map(|name| Tool::new(*name, "", serde_json::Map::new())).collect())
    }

    #[test]
    fn hints_leave_one_mark_and_only_where_somebody_listens() {
        let changes = Changes::default();
        let listener = changes.subscribe(&scope("p"), None);
        assert_eq!(changes.hint("o.p"), Hint::Taken);
        for _ in 0..20_000 {
            assert_eq!(changes.hint("o.p"), Hint::Coalesced);
            assert_eq!(changes.hint("o.q"), Hint::Unneeded);
        }
        assert_eq!(changes.take_hinted(), [scope("p")]);
        assert!(changes.take_hinted().is_empty());
        drop(listener);
        changes.hint("o.p");
        assert!(changes.take_hinted().is_empty(), "nobody is left");
        let _other = changes.subscribe(&scope("q"), None);
        assert_eq!(changes.lock().len(), 1);
    }

    #[test]
    fn only_another_list_is_told() {
        let changes = Changes::default();
        let here = scope("p");
        let mut listener = changes.subscribe(&here, None);
        assert!(changes.tell(&here, list(&["a"])), "nobody knows what they have");
        assert!(listener.has_changed().unwrap());
        listener.mark_unchanged();
        assert!(!changes.tell(&here, list(&["a"])) && !listener.has_changed().unwrap());
        changes.was_given(&here, &list(&["b"]));
        assert!(changes.tell(&here, list(&["b"])), "somebody may still have the old one");
        drop(listener);
        let _known = changes.subscribe(&scope("q"), Some(list(&["c"])));
        assert!(!changes.tell(&scope("q"), list(&["c"])) && changes.tell(&scope("q"), list(&[])));
        assert!(!changes.tell(&here, list(&["d"])), "nobody listens any more");
    }
}
