//! The cache of each scope's tools: valid while notifications arrive and none has named the scope.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rmcp::model::Tool;

use crate::scope::Scope;

/// Scopes that are remembered.
const MOST_SCOPES: usize = 1_000;
/// Places whose last change is remembered.
const MOST_PLACES: usize = 1_000;
/// Postgres is asked again after this long: that the proxy's role lost its rights is told to nobody.
const LONGEST: Duration = Duration::from_secs(30);

/// A tool of a downstream server, by its own names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerTool {
    pub server: String,
    pub tool: String,
}

/// When Postgres began to be asked, counted in changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

#[derive(Default)]
pub(crate) struct KnownTools(Mutex<State>);

#[derive(Default)]
struct State {
    listening: bool,
    now: u64,
    /// When everything may have changed.
    all_changed: u64,
    /// When a place (`org.project`) changed, if that was later.
    changed: HashMap<String, u64>,
    scopes: HashMap<Scope, Known>,
}

/// What is known of one scope.
struct Known {
    place: String,
    list: Option<Said<Arc<Vec<Tool>>>>,
    /// The wire names that were called and stand for a server's tool.
    server_tools: HashMap<String, Said<ServerTool>>,
}

struct Said<T> {
    what: T,
    asked: Moment,
    at: Instant,
}

impl<T> Said<T> {
    fn new(what: T, asked: Moment) -> Said<T> {
        Said { what, asked, at: Instant::now() }
    }
}

impl State {
    fn is_current<T>(&self, place: &str, said: &Said<T>) -> bool {
        let changed = self.changed.get(place).copied().unwrap_or(0).max(self.all_changed);
        self.listening && said.asked.0 >= changed && said.at.elapsed() < LONGEST
    }

    fn of(&mut self, scope: &Scope) -> Option<&mut Known> {
        if self.scopes.len() >= MOST_SCOPES && !self.scopes.contains_key(scope) {
            return None;
        }
        Some(self.scopes.entry(scope.clone()).or_insert_with(|| Known {
            place: scope.place(),
            list: None,
            server_tools: HashMap::new(),
        }))
    }
}

impl KnownTools {
    /// To be asked before Postgres is.
    pub(crate) fn moment(&self) -> Moment {
        Moment(self.0.lock().now)
    }

    /// The scope's list, unless something may have become of it that isn't known.
    pub(crate) fn list(&self, scope: &Scope) -> Option<Arc<Vec<Tool>>> {
        let state = self.0.lock();
        let known = state.scopes.get(scope)?;
        let said = known.list.as_ref().filter(|said| state.is_current(&known.place, said))?;
        Some(said.what.clone())
    }

    /// The scope's list as it was, for when Postgres is away: an agent in the middle of its work keeps its tools.
    pub(crate) fn last_list(&self, scope: &Scope) -> Option<Arc<Vec<Tool>>> {
        Some(self.0.lock().scopes.get(scope)?.list.as_ref()?.what.clone())
    }

    pub(crate) fn keep_list(&self, scope: &Scope, tools: Arc<Vec<Tool>>, asked: Moment) {
        if let Some(known) = self.0.lock().of(scope)
            // A late answer is an old one.
            && known.list.as_ref().is_none_or(|said| said.asked <= asked)
        {
            known.list = Some(Said::new(tools, asked));
        }
    }

    /// Which server's tool this wire name stands for in the scope, if that is known for sure.
    pub(crate) fn server_tool(&self, scope: &Scope, name: &str) -> Option<ServerTool> {
        let state = self.0.lock();
        let known = state.scopes.get(scope)?;
        let said = known.server_tools.get(name).filter(|said| state.is_current(&known.place, said))?;
        Some(said.what.clone())
    }

    pub(crate) fn keep_server_tool(&self, scope: &Scope, name: String, tool: ServerTool, asked: Moment) {
        if let Some(known) = self.0.lock().of(scope)
            && known.server_tools.get(&name).is_none_or(|said| said.asked <= asked)
        {
            known.server_tools.insert(name, Said::new(tool, asked));
        }
    }

    /// The tools of this `org.project` are others now.
    pub(crate) fn changed(&self, place: &str) {
        let mut state = self.0.lock();
        state.now += 1;
        let now = state.now;
        if state.changed.len() >= MOST_PLACES {
            state.changed.clear();
            state.all_changed = now;
        }
        state.changed.insert(place.to_owned(), now);
    }

    /// Changes are heard from now on, or no longer; either way some may have been missed.
    pub(crate) fn set_listening(&self, listening: bool) {
        let mut state = self.0.lock();
        state.now += 1;
        state.listening = listening;
        state.all_changed = state.now;
    }
}

#[cfg(test)]
mod tests {
    use super::{KnownTools, ServerTool};
    use crate::scope::Scope;

    const NAME: &str = "mcp__s__t";

    fn scope(project: &str, actor: &str) -> Scope {
        Scope { org: "o".into(), project: project.into(), actor: actor.into() }
    }

    fn keep(known: &KnownTools, project: &str) {
        let tool = ServerTool { server: "s".into(), tool: "t".into() };
        known.keep_server_tool(&scope(project, "a"), NAME.into(), tool, known.moment());
    }

    fn knows(known: &KnownTools, project: &str) -> bool {
        known.server_tool(&scope(project, "a"), NAME).is_some()
    }

    #[test]
    fn nothing_is_taken_for_true_while_nobody_listens() {
        let known = KnownTools::default();
        keep(&known, "p");
        assert!(!knows(&known, "p"));
        known.set_listening(true);
        assert!(!knows(&known, "p"), "a change may have come before");
        keep(&known, "p");
        assert!(knows(&known, "p"));
        known.set_listening(false);
        assert!(!knows(&known, "p"));
        known.set_listening(true);
        assert!(!knows(&known, "p"), "a change may have come in between");
    }

    #[test]
    fn a_change_counts_for_its_place_only() {
        let known = KnownTools::default();
        known.set_listening(true);
        keep(&known, "p");
        keep(&known, "q");
        known.changed("o.p");
        assert!(!knows(&known, "p") && knows(&known, "q"));
        assert!(known.server_tool(&scope("q", "another"), NAME).is_none(), "each actor asks for itself");
    }

    #[test]
    fn an_answer_is_as_old_as_its_question() {
        let known = KnownTools::default();
        known.set_listening(true);
        let (asked, here) = (known.moment(), scope("p", "a"));
        known.changed("o.p");
        known.keep_list(&here, Default::default(), asked);
        assert!(known.list(&here).is_none() && known.last_list(&here).is_some());
        known.keep_list(&here, Default::default(), known.moment());
        known.keep_list(&here, Default::default(), asked);
        assert!(known.list(&here).is_some(), "a late answer doesn't replace a newer one");
    }
}
