//! Notifies the sessions of a scope that its list of tools has changed.
//!
//! Any database user can send notifications, so they are only hints: a hinted project is checked again if it has
//! subscribers here, at most once every [`RECHECK`]. A flood of hints sets one flag for each project and fills no queue.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use rmcp::model::Tool;
use tokio::sync::{Notify, futures::Notified, watch};

use crate::scope::Scope;

/// The first hint is followed at once, later ones no sooner than this after it.
pub(crate) const RECHECK: Duration = Duration::from_secs(1);

/// What was done with a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    Taken,
    /// A check is pending already.
    Coalesced,
    /// It has no subscribers here.
    Unneeded,
    /// The payload has the wrong form.
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

/// The subscribers, by project (`org.project`).
#[derive(Default)]
pub(crate) struct Changes {
    projects: Mutex<HashMap<String, Project>>,
    hinted: Notify,
}

#[derive(Default)]
struct Project {
    is_hinted: bool,
    scopes: HashMap<Scope, Subscribers>,
}

struct Subscribers {
    sender: watch::Sender<u64>,
    /// The list that they have, if known.
    has: Option<Arc<Vec<Tool>>>,
}

impl Changes {
    /// Changes of this scope from now on; `has` is the list that it was last given.
    pub(crate) fn subscribe(&self, scope: &Scope, has: Option<Arc<Vec<Tool>>>) -> watch::Receiver<u64> {
        let mut projects = self.lock();
        projects.retain(|_, project| {
            project.scopes.retain(|_, subscribers| subscribers.sender.receiver_count() > 0);
            !project.scopes.is_empty()
        });
        let project = projects.entry(scope.project_key()).or_default();
        let subscribers = project.scopes.entry(scope.clone());
        let subscribers =
            subscribers.or_insert_with(|| Subscribers { sender: watch::Sender::default(), has });
        subscribers.sender.subscribe()
    }

    /// A subscriber was given this list, which later ones are compared with.
    pub(crate) fn was_given(&self, scope: &Scope, tools: &Arc<Vec<Tool>>) {
        if let Some(project) = self.lock().get_mut(&scope.project_key())
            && let Some(subscribers) = project.scopes.get_mut(scope)
        {
            subscribers.has.get_or_insert_with(|| tools.clone());
        }
    }

    pub(crate) fn hint(&self, project: &str) -> Hint {
        let mut projects = self.lock();
        let Some(project) = projects.get_mut(project) else { return Hint::Unneeded };
        if std::mem::replace(&mut project.is_hinted, true) {
            return Hint::Coalesced;
        }
        self.hinted.notify_one();
        Hint::Taken
    }

    pub(crate) fn hint_all(&self) {
        self.lock().values_mut().for_each(|project| project.is_hinted = true);
        self.hinted.notify_one();
    }

    /// Waits for a hint.
    pub(crate) fn hinted(&self) -> Notified<'_> {
        self.hinted.notified()
    }

    /// The scopes to check; their flags are cleared.
    pub(crate) fn take_hinted(&self) -> Vec<Scope> {
        let mut projects = self.lock();
        let hinted = projects
            .values_mut()
            .filter_map(|project| std::mem::take(&mut project.is_hinted).then(|| project.scopes.iter()));
        let subscribed = hinted.flatten().filter(|(_, subscribers)| subscribers.sender.receiver_count() > 0);
        subscribed.map(|(scope, _)| scope.clone()).collect()
    }

    /// Notifies the subscribers, unless this is the list that they have. Whether it did.
    pub(crate) fn notify_if_changed(&self, scope: &Scope, tools: Arc<Vec<Tool>>) -> bool {
        let mut projects = self.lock();
        let project = projects.get_mut(&scope.project_key());
        let Some(subscribers) = project.and_then(|project| project.scopes.get_mut(scope)) else {
            return false;
        };
        let is_same = |has: &Arc<Vec<Tool>>| Arc::ptr_eq(has, &tools) || **has == *tools;
        let is_new = !subscribers.has.as_ref().is_some_and(is_same);
        subscribers.has = Some(tools);
        if is_new {
            subscribers.sender.send_modify(|count| *count += 1);
        }
        is_new
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Project>> {
        self.projects.lock()
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
    fn hints_set_one_flag_and_only_where_there_are_subscribers() {
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
        assert!(changes.take_hinted().is_empty(), "no subscriber is left");
        let _other = changes.subscribe(&scope("q"), None);
        assert_eq!(changes.lock().len(), 1);
    }

    #[test]
    fn only_a_different_list_is_notified() {
        let changes = Changes::default();
        let here = scope("p");
        let mut listener = changes.subscribe(&here, None);
        assert!(changes.notify_if_changed(&here, list(&["a"])), "it isn't known which list they have");
        assert!(listener.has_changed().unwrap());
        listener.mark_unchanged();
        assert!(!changes.notify_if_changed(&here, list(&["a"])) && !listener.has_changed().unwrap());
        changes.was_given(&here, &list(&["b"]));
        assert!(changes.notify_if_changed(&here, list(&["b"])), "a subscriber may still have the old list");
        drop(listener);
        let _known = changes.subscribe(&scope("q"), Some(list(&["c"])));
        assert!(
            !changes.notify_if_changed(&scope("q"), list(&["c"]))
                && changes.notify_if_changed(&scope("q"), list(&[]))
        );
        assert!(!changes.notify_if_changed(&here, list(&["d"])), "no subscriber is left");
    }
}
