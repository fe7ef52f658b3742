//! Which of a client's lists have changed.

use tokio::sync::watch;

use crate::{app::App, scope::Caller};

/// The lists of which clients are notified.
pub(crate) enum List {
    Tools,
    Resources,
    Prompts,
}

/// Changes of a client's lists. Capabilities differ between scopes, what servers offer doesn't.
pub(crate) struct ListChanges {
    tools: watch::Receiver<u64>,
    resources: watch::Receiver<u64>,
    prompts: watch::Receiver<u64>,
}

impl ListChanges {
    pub(crate) fn of(app: &App, caller: &Caller) -> ListChanges {
        ListChanges {
            tools: app.tools.subscribe(caller.scope()),
            resources: app.servers.resource_changes(),
            prompts: app.servers.prompt_changes(),
        }
    }

    /// None when the proxy ends.
    pub(crate) async fn next(&mut self) -> Option<List> {
        let (changed, list) = tokio::select! {
            changed = self.tools.changed() => (changed, List::Tools),
            changed = self.resources.changed() => (changed, List::Resources),
            changed = self.prompts.changed() => (changed, List::Prompts),
        };
        changed.ok().map(|()| list)
    }
}
