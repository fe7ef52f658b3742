//! Registers the downstream servers' tools in Postgres, in every project in use, and keeps them up to date.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::{
    sync::broadcast::error::RecvError,
    time::{Instant, timeout_at},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use super::Catalog;
use crate::{
    downstream::ServerState,
    scope::{Caller, Scope},
};

/// How long a caller waits for servers that are being started.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Servers without listed tools, as people are shown them.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Unlisted {
    /// Their tools follow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub starting: Vec<String>,
    /// Why they are down; they are restarted from time to time.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, String>,
}

/// What is registered where, by project (`org.project`).
#[derive(Default)]
pub(super) struct Registration(Mutex<HashMap<String, Project>>);

struct Project {
    /// The scope of its first caller, on whose behalf its tools are registered.
    scope: Scope,
    /// The servers whose tools Postgres has.
    registered: HashSet<String>,
    attempts: HashMap<String, Attempt>,
}

/// A registration of one server, shared by all callers that need it.
#[derive(Clone)]
struct Attempt {
    started: Instant,
    ended: CancellationToken,
}

/// From when on the wait of a caller counts.
#[derive(Clone, Copy)]
enum WaitFrom {
    /// The start of the registration: a server that is slow to start delays only the first callers.
    Start,
    /// Now, because the caller needs this server.
    Now,
}

impl Registration {
    /// The servers that aren't registered in this project yet.
    fn missing(&self, scope: &Scope, servers: &[String]) -> Vec<String> {
        let mut projects = self.0.lock();
        let project = projects.entry(scope.project_key()).or_insert_with(|| Project {
            scope: scope.clone(),
            registered: HashSet::new(),
            attempts: HashMap::new(),
        });
        if project.registered.len() == servers.len() {
            return Vec::new();
        }
        servers.iter().filter(|server| !project.registered.contains(*server)).cloned().collect()
    }

    /// The attempts to register these servers, and which of them the caller has to make.
    fn attempts(&self, scope: &Scope, servers: &[String]) -> (Vec<Attempt>, Vec<(String, DropGuard)>) {
        let mut projects = self.0.lock();
        let (mut attempts, mut new) = (Vec::new(), Vec::new());
        let Some(project) = projects.get_mut(&scope.project_key()) else { return (attempts, new) };
        for server in servers {
            let under_way = project.attempts.get(server).filter(|attempt| !attempt.ended.is_cancelled());
            attempts.push(under_way.cloned().unwrap_or_else(|| {
                let ended = CancellationToken::new();
                new.push((server.clone(), ended.clone().drop_guard()));
                let attempt = Attempt { started: Instant::now(), ended };
                project.attempts.insert(server.clone(), attempt.clone());
                attempt
            }));
        }
        (attempts, new)
    }

    fn is_under_way(&self, scope: &Scope, server: &str) -> bool {
        let projects = self.0.lock();
        let attempt = projects.get(&scope.project_key()).and_then(|project| project.attempts.get(server));
        attempt.is_some_and(|attempt| !attempt.ended.is_cancelled())
    }

    fn set_registered(&self, scope: &Scope, server: &str) {
        if let Some(project) = self.0.lock().get_mut(&scope.project_key()) {
            project.registered.insert(server.to_owned());
            project.attempts.remove(server);
        }
    }

    /// A scope of each project in use.
    fn scopes(&self) -> Vec<Scope> {
        self.0.lock().values().map(|project| project.scope.clone()).collect()
    }
}

impl Catalog {
    /// Registers the tools of all servers in the caller's project. Clients are notified of those that come too late.
    pub(crate) async fn register_servers(self: &Arc<Self>, caller: &Caller) {
        self.register_missing(caller, WaitFrom::Start, |missing| missing).await;
    }

    /// Registers the tools of the servers that `text` names: code, whose compiler needs their schemas, or a tool's name.
    pub(crate) async fn register_servers_in(
        self: &Arc<Self>,
        caller: &Caller,
        text: impl FnOnce() -> String,
    ) {
        let named = |missing: Vec<String>| named_in(&text(), &missing);
        self.register_missing(caller, WaitFrom::Now, named).await;
    }

    /// The servers whose tools the list of this scope lacks.
    pub(crate) fn unlisted(&self, scope: &Scope) -> Unlisted {
        let mut unlisted = Unlisted::default();
        for (server, reason) in self.absent(scope) {
            let shown = self.servers.shown(&server);
            match reason {
                Some(reason) => drop(unlisted.unavailable.insert(shown, reason)),
                None => unlisted.starting.push(shown),
            }
        }
        unlisted
    }

    /// Why no tool of this name is known, if it may be one of a server whose tools aren't listed.
    pub(crate) fn why_unknown(&self, scope: &Scope, wire_name: &str) -> Option<String> {
        let has_prefix = |server: &str| {
            let rest = wire_name.strip_prefix("mcp__").and_then(|name| name.strip_prefix(server));
            rest.is_some_and(|rest| rest.starts_with("__"))
        };
        let (server, reason) = self.absent(scope).into_iter().find(|(server, _)| has_prefix(server))?;
        let shown = self.servers.shown(&server);
        Some(match reason {
            Some(reason) => format!("The server \"{shown}\" is unavailable: {reason}"),
            None => format!("The server \"{shown}\" is still starting; call again in a moment."),
        })
    }

    /// The servers without registered tools, and why they have none; None if they are being started.
    fn absent(&self, scope: &Scope) -> Vec<(String, Option<String>)> {
        let missing = self.registration.missing(scope, &self.server_names);
        if missing.is_empty() {
            return Vec::new();
        }
        let status = self.servers.status().into_iter().filter(|status| missing.contains(&status.name));
        status
            .map(|status| {
                let is_unregistered =
                    status.state == ServerState::Up && !self.registration.is_under_way(scope, &status.name);
                let unregistered = is_unregistered
                    .then(|| "its tools can't be registered; the proxy's log says why".to_owned());
                (status.name, status.reason.or(unregistered))
            })
            .collect()
    }

    /// Whether the text names a server.
    pub(crate) fn names_server(&self, text: &str) -> bool {
        !named_in(text, &self.server_names).is_empty()
    }

    /// Costs one lookup if all servers are registered.
    async fn register_missing(
        self: &Arc<Self>,
        caller: &Caller,
        wait_from: WaitFrom,
        wanted: impl FnOnce(Vec<String>) -> Vec<String>,
    ) {
        let scope = caller.scope();
        let missing = self.registration.missing(scope, &self.server_names);
        if missing.is_empty() {
            return;
        }
        let (attempts, new) = self.registration.attempts(scope, &wanted(missing));
        if !new.is_empty() {
            tokio::spawn(self.clone().attempt(scope.clone(), new).in_current_span());
        }
        let now = Instant::now();
        for attempt in attempts {
            let from = match wait_from {
                WaitFrom::Start => attempt.started,
                WaitFrom::Now => now,
            };
            let _ = timeout_at(from + LONGEST_WAIT, attempt.ended.cancelled()).await;
        }
    }

    /// Lists (and so starts) only servers of which Postgres has no tools in this project.
    async fn attempt(self: Arc<Self>, scope: Scope, servers: Vec<(String, DropGuard)>) {
        let names: Vec<String> = servers.iter().map(|(server, _)| server.clone()).collect();
        let rows = match self.database.tools(&Caller::proxy(scope.clone()), &names, 0).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(%error, "can't look up which servers' tools are registered");
                return;
            }
        };
        let known: HashSet<&str> = rows.iter().filter_map(|row| row.server.as_deref()).collect();
        join_all(servers.into_iter().map(|(server, ended)| {
            let (catalog, scope, is_known) = (&self, &scope, known.contains(server.as_str()));
            async move {
                if is_known {
                    catalog.registration.set_registered(scope, &server);
                } else {
                    catalog.register(scope, &server).await;
                }
                drop(ended);
            }
        }))
        .await;
    }

    /// Registers one server's tools in one project.
    async fn register(&self, scope: &Scope, server: &str) {
        let tools = match self.servers.list(server).await {
            Ok(tools) => tools,
            Err(error) => {
                tracing::warn!(server, %error, "can't list the tools of a downstream server");
                return;
            }
        };
        let caller = Caller::proxy(scope.clone());
        match self.database.register_tools(&caller, server, &tools).await {
            Ok(changed) => {
                tracing::debug!(server, changed, project = scope.project_key(), "tools registered");
                if changed > 0 {
                    // The notification may still be on its way, and a caller that waited must not get the cached list.
                    self.invalidate(scope);
                    // Nor must clients depend on it: it may never arrive.
                    self.changes.hint(&scope.project_key());
                }
                self.registration.set_registered(scope, server);
            }
            Err(error) => {
                tracing::warn!(server, %error, "can't register the tools of a downstream server");
            }
        }
    }

    /// Registers a server's tools again in all projects whenever its list changes.
    pub(crate) async fn follow_servers(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.servers.changes();
        loop {
            let server = tokio::select! {
                () = stop.cancelled() => return,
                change = changes.recv() => match change {
                    Ok(server) => Some(server),
                    // Some changes were missed, so all servers are checked.
                    Err(RecvError::Lagged(_)) => None,
                    Err(RecvError::Closed) => return,
                },
            };
            let servers = server.map_or_else(|| self.server_names.clone(), |server| vec![server]);
            for scope in self.registration.scopes() {
                for server in &servers {
                    self.register(&scope, server).await;
                }
            }
        }
    }
}

fn named_in(text: &str, servers: &[String]) -> Vec<String> {
    let text = squeezed(text);
    servers.iter().filter(|server| text.contains(&squeezed(server))).cloned().collect()
}

/// What all spellings of a server's name have in common: `my-server`, `my_server`, `myServer`.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}
