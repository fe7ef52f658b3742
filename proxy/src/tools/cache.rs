//! The cache of each scope's tools and of the plans of its calls: valid while notifications arrive and none has named the scope.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use pml_worker::aside_if_large;
use rmcp::model::Tool;

use super::kept_list::KeptList;
use crate::{
    plan::{RunPlan, ServerTool},
    scope::Scope,
};

/// Scopes in the cache.
const MOST_SCOPES: usize = 1_000;
/// Plans of a scope, and the code in the plans of all scopes.
const MOST_PLANS: usize = 1_000;
const MOST_CODE: usize = 64 * 1024 * 1024;
/// Projects whose last change is remembered.
const MOST_PROJECTS: usize = 1_000;
/// Entries expire, because no notification tells that the proxy's role lost its privileges.
const LIFETIME: Duration = Duration::from_secs(30);

/// When a query was sent, counted in changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

/// What is called: a capability by a spec, or a tool by its wire name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Callee {
    Spec(String),
    WireName(String),
}

#[derive(Default)]
pub(crate) struct ToolCache(Mutex<State>);

#[derive(Default)]
struct State {
    listening: bool,
    /// Whether a valid entry was used.
    was_used: bool,
    now: u64,
    /// When everything may have changed.
    all_changed: u64,
    /// When a project (`org.project`) changed, if that was later.
    changed: HashMap<String, u64>,
    scopes: HashMap<Scope, CachedScope>,
    /// Bytes in the plans of all scopes.
    code: usize,
}

struct CachedScope {
    project: String,
    list: Option<Cached<KeptList>>,
    /// The servers' tools that were called, by their wire names.
    server_tools: HashMap<String, Cached<ServerTool>>,
    plans: HashMap<Callee, Cached<CachedPlan>>,
}

/// The plan of a capability.
struct CachedPlan {
    plan: Arc<RunPlan>,
    /// What it depends on.
    projects: BTreeSet<String>,
}

struct Cached<T> {
    value: T,
    asked: Moment,
    at: Instant,
}

impl<T> Cached<T> {
    fn new(value: T, asked: Moment) -> Cached<T> {
        Cached { value, asked, at: Instant::now() }
    }
}

impl State {
    fn is_valid<T>(&self, project: &str, cached: &Cached<T>) -> bool {
        let changed = self.changed.get(project).copied().unwrap_or(0).max(self.all_changed);
        self.listening && cached.asked.0 >= changed && cached.at.elapsed() < LIFETIME
    }

    /// None if the cache is full.
    fn entry(&mut self, scope: &Scope) -> Option<&mut CachedScope> {
        if self.scopes.len() >= MOST_SCOPES && !self.scopes.contains_key(scope) {
            return None;
        }
        Some(self.scopes.entry(scope.clone()).or_insert_with(|| CachedScope {
            project: scope.project_key(),
            list: None,
            server_tools: HashMap::new(),
            plans: HashMap::new(),
        }))
    }
}

impl ToolCache {
    /// To be taken before the query is sent.
    pub(crate) fn moment(&self) -> Moment {
        Moment(self.0.lock().now)
    }

    /// The scope's list, if it is valid.
    pub(crate) fn list(&self, scope: &Scope) -> Option<Arc<Vec<Tool>>> {
        let mut state = self.0.lock();
        let entry = state.scopes.get(scope)?;
        let list = entry.list.as_ref().filter(|list| state.is_valid(&entry.project, list))?.value.parsed()?;
        state.was_used = true;
        Some(list)
    }

    /// The scope's last list, valid or not: the fallback while Postgres can't be reached.
    pub(crate) fn last_list(&self, scope: &Scope) -> Option<Arc<Vec<Tool>>> {
        let list = self.0.lock().scopes.get(scope)?.list.as_ref()?.value.clone();
        list.unpacked()
    }

    /// Whether there is a last list.
    pub(crate) fn has_list(&self, scope: &Scope) -> bool {
        self.0.lock().scopes.get(scope).is_some_and(|entry| entry.list.is_some())
    }

    /// The large lists that have expired and aren't packed.
    fn unpacked_lists(&self) -> Vec<(Scope, Moment, Arc<Vec<Tool>>)> {
        let state = self.0.lock();
        let lists = state.scopes.iter().filter_map(|(scope, entry)| Some((scope, entry.list.as_ref()?)));
        let expired =
            lists.filter(|(_, list)| list.at.elapsed() >= LIFETIME && list.value.is_worth_packing());
        expired.filter_map(|(scope, list)| Some((scope.clone(), list.asked, list.value.parsed()?))).collect()
    }

    /// Packs the large lists that have expired. Whether there were any.
    pub(crate) fn pack_lists(&self) -> bool {
        let lists = self.unpacked_lists();
        let found = !lists.is_empty();
        for (scope, asked, tools) in lists {
            aside_if_large(super::size(&tools), || self.pack_list(&scope, asked, tools));
        }
        found
    }

    fn pack_list(&self, scope: &Scope, asked: Moment, tools: Arc<Vec<Tool>>) {
        let packed = KeptList::packed(&tools);
        let mut state = self.0.lock();
        let list = state.scopes.get_mut(scope).and_then(|entry| entry.list.as_mut());
        if let Some(list) = list.filter(|list| list.asked == asked) {
            list.value = packed;
        }
        // Otherwise the last one to release it would do so under the lock.
        drop(state);
        drop(tools);
    }

    pub(crate) fn keep_list(&self, scope: &Scope, tools: Arc<Vec<Tool>>, asked: Moment) {
        if let Some(entry) = self.0.lock().entry(scope)
            // A slow query must not replace the result of a later one.
            && entry.list.as_ref().is_none_or(|list| list.asked <= asked)
        {
            entry.list = Some(Cached::new(KeptList::Parsed(tools), asked));
        }
    }

    /// The server's tool that has this wire name in the scope, if that is known and valid.
    pub(crate) fn server_tool(&self, scope: &Scope, name: &str) -> Option<ServerTool> {
        let mut state = self.0.lock();
        let entry = state.scopes.get(scope)?;
        let tool = entry.server_tools.get(name).filter(|tool| state.is_valid(&entry.project, tool))?;
        let tool = tool.value.clone();
        state.was_used = true;
        Some(tool)
    }

    pub(crate) fn keep_server_tool(&self, scope: &Scope, name: String, tool: ServerTool, asked: Moment) {
        if let Some(entry) = self.0.lock().entry(scope)
            && entry.server_tools.get(&name).is_none_or(|cached| cached.asked <= asked)
        {
            entry.server_tools.insert(name, Cached::new(tool, asked));
        }
    }

    /// The plan for calls of a capability in the scope, if it is valid.
    pub(crate) fn plan(&self, scope: &Scope, callee: &Callee) -> Option<Arc<RunPlan>> {
        let mut state = self.0.lock();
        let entry = state.scopes.get(scope)?;
        let cached = entry.plans.get(callee)?;
        let is_valid = |project: &String| state.is_valid(project, cached);
        if !is_valid(&entry.project) || !cached.value.projects.iter().all(is_valid) {
            return None;
        }
        let plan = cached.value.plan.clone();
        state.was_used = true;
        Some(plan)
    }

    pub(crate) fn keep_plan(&self, scope: &Scope, callee: Callee, plan: Arc<RunPlan>, asked: Moment) {
        let mut state = self.0.lock();
        let bytes = plan.bytes();
        if state.code + bytes > MOST_CODE {
            state.scopes.values_mut().for_each(|scope| scope.plans.clear());
            state.code = 0;
        }
        let Some(entry) = state.entry(scope) else { return };
        if entry.plans.get(&callee).is_some_and(|cached| cached.asked > asked) {
            return;
        }
        let plan = CachedPlan { projects: plan.projects(), plan };
        let replaced = entry.plans.insert(callee, Cached::new(plan, asked));
        let mut forgotten = replaced.map_or(0, |old| old.value.plan.bytes());
        if entry.plans.len() > MOST_PLANS {
            forgotten = entry.plans.drain().map(|(_, old)| old.value.plan.bytes()).sum();
        }
        state.code = (state.code + bytes).saturating_sub(forgotten);
    }

    /// Invalidates a project (`org.project`).
    pub(crate) fn invalidate(&self, project: &str) {
        let mut state = self.0.lock();
        state.now += 1;
        let now = state.now;
        if state.changed.len() >= MOST_PROJECTS {
            state.changed.clear();
            state.all_changed = now;
        }
        state.changed.insert(project.to_owned(), now);
    }

    /// Notifications arrive from now on, or no longer. Either way some may have been missed.
    pub(crate) fn set_listening(&self, listening: bool) {
        let mut state = self.0.lock();
        state.now += 1;
        state.listening = listening;
        state.all_changed = state.now;
    }

    /// Whether an entry was used since this was last asked.
    pub(crate) fn take_used(&self) -> bool {
        std::mem::take(&mut self.0.lock().was_used)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Callee, ServerTool, ToolCache};
    use crate::scope::Scope;

    const NAME: &str = "mcp__s__t";

    fn scope(project: &str, actor: &str) -> Scope {
        Scope { org: "o".into(), project: project.into(), actor: actor.into() }
    }

    fn keep(cache: &ToolCache, project: &str) {
        let tool = ServerTool { server: "s".into(), tool: "t".into() };
        cache.keep_server_tool(&scope(project, "a"), NAME.into(), tool, cache.moment());
    }

    fn knows(cache: &ToolCache, project: &str) -> bool {
        cache.server_tool(&scope(project, "a"), NAME).is_some()
    }

    #[test]
    fn nothing_is_valid_while_notifications_do_not_arrive() {
        let cache = ToolCache::default();
        keep(&cache, "p");
        assert!(!knows(&cache, "p"));
        cache.set_listening(true);
        assert!(!knows(&cache, "p"), "a change may have come before");
        keep(&cache, "p");
        assert!(knows(&cache, "p"));
        assert!(cache.take_used() && !cache.take_used());
        cache.set_listening(false);
        assert!(!knows(&cache, "p") && !cache.take_used());
        cache.set_listening(true);
        assert!(!knows(&cache, "p"), "a change may have come in between");
    }

    #[test]
    fn a_change_invalidates_its_project_only() {
        let cache = ToolCache::default();
        cache.set_listening(true);
        keep(&cache, "p");
        keep(&cache, "q");
        cache.invalidate("o.p");
        assert!(!knows(&cache, "p") && knows(&cache, "q"));
        assert!(cache.server_tool(&scope("q", "another"), NAME).is_none(), "each actor has its own entry");
    }

    #[test]
    fn a_result_is_as_old_as_its_query() {
        let cache = ToolCache::default();
        cache.set_listening(true);
        let (asked, here) = (cache.moment(), scope("p", "a"));
        cache.invalidate("o.p");
        cache.keep_list(&here, Default::default(), asked);
        assert!(cache.list(&here).is_none() && cache.last_list(&here).is_some());
        cache.keep_list(&here, Default::default(), cache.moment());
        cache.keep_list(&here, Default::default(), asked);
        assert!(cache.list(&here).is_some(), "a slow query doesn't replace a newer result");
    }

    #[test]
    fn a_plan_is_valid_until_something_that_it_calls_changes() {
        let cache = ToolCache::default();
        cache.set_listening(true);
        let (here, callee) = (scope("p", "a"), Callee::Spec("n".into()));
        let plan = json!({
            "mode": "call_by_name", "executable": "", "name": "n", "fqdn": "o.p.n.a.1111", "dag": {}, "context": {},
            "missing": {"x.y.n.a.2222": "unknown:capability"}
        });
        let keep = || {
            let plan = serde_json::from_value(plan.clone()).unwrap();
            cache.keep_plan(&here, callee.clone(), std::sync::Arc::new(plan), cache.moment());
        };
        keep();
        assert!(cache.plan(&here, &callee).is_some() && cache.plan(&scope("p", "b"), &callee).is_none());
        assert!(cache.plan(&here, &Callee::WireName("n".into())).is_none());
        cache.invalidate("o.q");
        assert!(cache.plan(&here, &callee).is_some());
        for project in ["o.p", "x.y"] {
            cache.invalidate(project);
            assert!(cache.plan(&here, &callee).is_none(), "{project}");
            keep();
        }
        cache.set_listening(false);
        assert!(cache.plan(&here, &callee).is_none());
    }
}
