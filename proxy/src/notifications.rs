//! Handles `pml_tools_changed` and `pml_tokens_changed`: cache entries are dropped at once, and sessions are notified when
//! Postgres confirms the change.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use pml_worker::aside_if_large;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    changes::{Hint, RECHECK},
    database::NotificationHandler,
    metrics::Metrics,
    scope::{Scope, is_project_key},
    tokens::Tokens,
    tools::{Catalog, size},
};

/// Notifications within this time cause one query.
const GATHERING: Duration = Duration::from_millis(30);
/// Scopes that are checked concurrently.
const CONCURRENT_CHECKS: usize = 4;

/// Invalidates caches; nothing is fetched until it is needed again.
pub(crate) struct Listener {
    pub tools: Arc<Catalog>,
    pub tokens: Arc<Tokens>,
    pub metrics: Arc<Metrics>,
}

impl NotificationHandler for Listener {
    fn tools_changed(&self, payload: &str) {
        let hint = if is_project_key(payload) {
            self.tools.cache.invalidate(payload);
            self.tools.changes.hint(payload)
        } else {
            Hint::Malformed
        };
        self.metrics.notified("tools", hint.outcome());
    }

    fn tokens_changed(&self, payload: &str) {
        // Only the canonical form, as Postgres writes it.
        let id = Some(payload).filter(|text| text.len() == 36).and_then(|text| Uuid::try_parse(text).ok());
        let hint = id.map_or(Hint::Malformed, |id| self.tokens.hint(id));
        self.metrics.notified("tokens", hint.outcome());
    }

    fn heard(&self) {
        self.tools.cache.set_listening(true);
        self.tokens.set_listening(true);
        self.metrics.set_listening(true);
        // Changes may have been missed before.
        self.tools.changes.hint_all();
    }

    fn unheard(&self) {
        self.tools.cache.set_listening(false);
        self.tokens.set_listening(false);
        self.metrics.set_listening(false);
    }

    fn look_up(&self) {
        self.tokens.hint_all();
        self.tools.changes.hint_all();
    }

    fn was_relied_on(&self) -> bool {
        // Both are asked, because asking resets them.
        self.tools.cache.take_used() | self.tokens.take_used()
    }
}

/// Checks the lists of hinted scopes that have subscribers, and notifies these of lists that differ.
pub(crate) async fn follow_tools(tools: Arc<Catalog>, metrics: Arc<Metrics>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tools.changes.hinted() => {}
        }
        let next = Instant::now() + RECHECK;
        sleep(GATHERING).await;
        let hinted = tools.changes.take_hinted();
        stream::iter(hinted)
            .for_each_concurrent(CONCURRENT_CHECKS, |scope| check(&tools, &metrics, scope))
            .await;
        sleep_until(next).await;
    }
}

async fn check(tools: &Catalog, metrics: &Metrics, scope: Scope) {
    match tools.list_again(&scope).await {
        Ok(list) => {
            if aside_if_large(size(&list), || tools.changes.notify_if_changed(&scope, list)) {
                metrics.list_changed();
            }
        }
        Err(error) => {
            tracing::warn!(%error, %scope, "can't check whether the tools have changed");
            if error.is_passing() {
                tools.changes.hint(&scope.project_key());
            }
        }
    }
}
