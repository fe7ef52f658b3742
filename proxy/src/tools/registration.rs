//! Keeps what Postgres knows of the downstream servers' tools up to date, in every scope that is in use.

use std::{collections::HashSet, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::Catalog;
use crate::scope::{Caller, Scope};

/// How long the first list of a scope waits for servers that it knows nothing of yet.
const FIRST_LIST: Duration = Duration::from_secs(10);

/// Which servers are known to be registered where.
#[derive(Default)]
pub(super) struct Registration {
    done: Mutex<HashSet<(String, String)>>,
    /// Whose tools are kept up to date.
    scopes_in_use: Mutex<HashSet<Scope>>,
    /// One at a time, so that many clients of a new scope don't all do the same.
    turn: tokio::sync::Mutex<()>,
}

impl Registration {
    fn is_done(&self, place: &str, server: &str) -> bool {
        self.lock().contains(&(place.to_owned(), server.to_owned()))
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<(String, String)>> {
        self.done.lock()
    }

    fn add_scope(&self, scope: &Scope) {
        let mut scopes = self.scopes_in_use.lock();
        if !scopes.contains(scope) {
            scopes.insert(scope.clone());
        }
    }

    /// One scope for each organisation and project.
    fn projects_in_use(&self) -> Vec<Scope> {
        let scopes = self.scopes_in_use.lock();
        let mut seen = HashSet::new();
        scopes.iter().filter(|scope| seen.insert(scope.place())).cloned().collect()
    }
}

impl Catalog {
    /// Makes sure that the tools of all servers are registered in the caller's scope; asks (and so starts) only servers
    /// that Postgres knows nothing of there. Whether some have come that weren't known to be there before.
    pub(crate) async fn scope_in_use(self: &Arc<Self>, caller: &Caller) -> bool {
        self.registration.add_scope(caller.scope());
        let place = caller.scope().place();
        let missing = || -> Vec<&String> {
            self.server_names.iter().filter(|server| !self.registration.is_done(&place, server)).collect()
        };
        let missed = missing().len();
        if missed == 0 {
            return false;
        }
        let _turn = self.registration.turn.lock().await;
        let wanted: Vec<String> = missing().into_iter().cloned().collect();
        if wanted.is_empty() {
            return true;
        }
        let Ok(rows) = self.database.tools(caller, &wanted).await else { return wanted.len() < missed };
        let known: HashSet<&str> = rows.iter().filter_map(|row| row.server.as_deref()).collect();
        let mut starting = tokio::task::JoinSet::new();
        for server in wanted {
            if known.contains(server.as_str()) {
                self.registration.lock().insert((place.clone(), server));
            } else {
                let (catalog, scope) = (self.clone(), caller.scope().clone());
                starting.spawn(async move { catalog.register(&scope, &server).await });
            }
        }
        // Whoever is later than this is announced by a changed list.
        if tokio::time::timeout(FIRST_LIST, async { while starting.join_next().await.is_some() {} })
            .await
            .is_err()
        {
            starting.detach_all();
        }
        missing().len() < missed
    }

    /// Registers one server's tools in one scope.
    async fn register(&self, scope: &Scope, server: &str) {
        let tools = match self.servers.list(server).await {
            Ok(tools) => tools,
            Err(error) => {
                tracing::warn!(server, %error, "the tools of a downstream server can't be listed");
                return;
            }
        };
        let caller = Caller::proxy(scope.clone());
        match self.database.register_tools(&caller, server, &tools).await {
            Ok(changed) => {
                tracing::debug!(server, changed, place = scope.place(), "tools registered");
                // Who has waited for it must not be given what was known before; the notification is still on its way.
                self.may_have_changed(scope);
                self.registration.lock().insert((scope.place(), server.to_owned()));
            }
            Err(error) => {
                tracing::warn!(server, %error, "the tools of a downstream server can't be registered");
            }
        }
    }

    /// Registers again whenever a server's list changes, everywhere where it is used.
    pub(crate) async fn follow_servers(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.servers.changes();
        loop {
            let server = tokio::select! {
                () = stop.cancelled() => return,
                change = changes.recv() => match change {
                    Ok(server) => Some(server),
                    // Some were missed: all are looked at again.
                    Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => None,
                    Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
                },
            };
            let servers = server.map_or_else(|| self.server_names.clone(), |server| vec![server]);
            for scope in self.registration.projects_in_use() {
                for server in &servers {
                    self.register(&scope, server).await;
                }
            }
        }
    }
}
