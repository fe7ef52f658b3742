//! Keeps what Postgres knows of the downstream servers' tools up to date, in every scope that is in use.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::{
    app::App,
    scope::{Caller, Scope},
};

/// How long the first list of a scope waits for servers that it knows nothing of yet.
const FIRST_LIST: Duration = Duration::from_secs(10);

/// Which servers are known to be registered where.
#[derive(Default)]
pub(crate) struct Registration {
    done: Mutex<HashSet<(String, String)>>,
    /// One at a time, so that many clients of a new scope don't all do the same.
    turn: tokio::sync::Mutex<()>,
}

impl Registration {
    fn is_done(&self, place: &str, server: &str) -> bool {
        self.lock().contains(&(place.to_owned(), server.to_owned()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<(String, String)>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes sure that the tools of all servers are registered in the caller's scope; asks (and so starts) only servers that
/// Postgres knows nothing of there. Whether some have come that weren't known to be there before.
pub(crate) async fn scope_in_use(app: &Arc<App>, caller: &Caller) -> bool {
    app.visited(caller.scope());
    let place = caller.scope().place();
    let missing = || -> Vec<&String> {
        app.server_names.iter().filter(|server| !app.registration.is_done(&place, server)).collect()
    };
    let missed = missing().len();
    if missed == 0 {
        return false;
    }
    let _turn = app.registration.turn.lock().await;
    let wanted: Vec<String> = missing().into_iter().cloned().collect();
    if wanted.is_empty() {
        return true;
    }
    let Ok(rows) = app.database.tools(caller, &wanted).await else { return wanted.len() < missed };
    let known: HashSet<&str> = rows.iter().filter_map(|row| row.server.as_deref()).collect();
    let mut starting = tokio::task::JoinSet::new();
    for server in wanted {
        if known.contains(server.as_str()) {
            app.registration.lock().insert((place.clone(), server));
        } else {
            let (app, scope) = (app.clone(), caller.scope().clone());
            starting.spawn(async move { register(&app, &scope, &server).await });
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
async fn register(app: &Arc<App>, scope: &Scope, server: &str) {
    let tools = match app.servers.list(server).await {
        Ok(tools) => tools,
        Err(error) => {
            tracing::warn!(server, %error, "the tools of a downstream server can't be listed");
            return;
        }
    };
    let caller = app.own_caller(scope.clone());
    match app.database.register_tools(&caller, server, &tools).await {
        Ok(changed) => {
            tracing::debug!(server, changed, place = scope.place(), "tools registered");
            // Who has waited for it must not be given what was known before; the notification is still on its way.
            app.known.changed(&scope.place());
            app.registration.lock().insert((scope.place(), server.to_owned()));
        }
        Err(error) => tracing::warn!(server, %error, "the tools of a downstream server can't be registered"),
    }
}

/// Registers again whenever a server's list changes, everywhere where it is used.
pub(crate) async fn follow_servers(app: Arc<App>) {
    let mut changes = app.servers.changes();
    loop {
        let server = tokio::select! {
            () = app.stop.cancelled() => return,
            change = changes.recv() => match change {
                Ok(server) => Some(server),
                // Some were missed: all are looked at again.
                Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => None,
                Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
            },
        };
        let servers = server.map_or_else(|| app.server_names.clone(), |server| vec![server]);
        for scope in app.places() {
            for server in &servers {
                register(&app, &scope, server).await;
            }
        }
    }
}
