//! What Postgres notifies of (`pml_tools_changed`, `pml_tokens_changed`): caches are dropped at once, and those who listen
//! are told once the change is confirmed.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    changes::{Hint, RECHECK},
    database::Ears,
    metrics::Metrics,
    scope::{Scope, is_place},
    tokens::Tokens,
    tools::Catalog,
};

/// Changes that come together are asked about once.
const GATHERING: Duration = Duration::from_millis(30);
/// Scopes that are asked about at the same time.
const AT_ONCE: usize = 4;

/// Drops what was cached, which costs nothing until it is needed again.
pub(crate) struct Listener {
    pub tools: Arc<Catalog>,
    pub tokens: Arc<Tokens>,
    pub metrics: Arc<Metrics>,
}

impl Ears for Listener {
    fn tools_changed(&self, payload: &str) {
        let hint = if is_place(payload) {
            self.tools.known.changed(payload);
            self.tools.changes.hint(payload)
        } else {
            Hint::Malformed
        };
        self.metrics.notified("tools", hint.outcome());
    }

    fn tokens_changed(&self, payload: &str) {
        // The form that Postgres gives it, and no other.
        let id = Some(payload).filter(|text| text.len() == 36).and_then(|text| Uuid::try_parse(text).ok());
        let hint = id.map_or(Hint::Malformed, |id| self.tokens.hint(id));
        self.metrics.notified("tokens", hint.outcome());
    }

    fn connected(&self) {
        self.tools.known.set_listening(true);
        self.metrics.set_listening(true);
        // What happened while nobody listened isn't known.
        self.tokens.hint_all();
        self.tools.changes.hint_all();
    }

    fn lost(&self) {
        self.tools.known.set_listening(false);
        self.metrics.set_listening(false);
    }
}

/// Follows the hints: asks Postgres for the lists of scopes that somebody listens to, and tells of those that are others.
pub(crate) async fn follow_tools(tools: Arc<Catalog>, metrics: Arc<Metrics>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tools.changes.hinted() => {}
        }
        let next = Instant::now() + RECHECK;
        sleep(GATHERING).await;
        let hinted = tools.changes.take_hinted();
        stream::iter(hinted).for_each_concurrent(AT_ONCE, |scope| ask(&tools, &metrics, scope)).await;
        sleep_until(next).await;
    }
}

async fn ask(tools: &Catalog, metrics: &Metrics, scope: Scope) {
    match tools.list_again(&scope).await {
        Ok(list) => {
            if tools.changes.tell(&scope, list) {
                metrics.list_changed();
            }
        }
        Err(error) => {
            tracing::warn!(%error, %scope, "it isn't known whether the tools have changed");
            if error.is_passing() {
                tools.changes.hint(&scope.place());
            }
        }
    }
}
