//! Passes on that a scope's tools have changed, to whoever of that scope listens.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};

use crate::{database::Change, metrics::Metrics, tokens::Tokens};

/// Changes that come together are told once.
const GATHERING: Duration = Duration::from_millis(30);

/// Who listens, by `org.project`.
#[derive(Default)]
pub(crate) struct Changes {
    places: Mutex<HashMap<String, watch::Sender<u64>>>,
}

impl Changes {
    /// Changes of this place from now on.
    pub(crate) fn subscribe(&self, place: &str) -> watch::Receiver<u64> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|_, sender| sender.receiver_count() > 0);
        places.entry(place.to_owned()).or_default().subscribe()
    }

    fn tell(&self, places: &Told) {
        let known = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, sender) in known.iter() {
            if places.all || places.places.contains(place) {
                sender.send_modify(|count| *count += 1);
            }
        }
    }
}

#[derive(Default)]
struct Told {
    all: bool,
    places: HashSet<String>,
}

/// Takes what the database tells, and passes it on.
pub(crate) async fn pass_on(
    mut heard: mpsc::UnboundedReceiver<Change>,
    changes: Arc<Changes>,
    tokens: Arc<Tokens>,
    metrics: Arc<Metrics>,
) {
    while let Some(change) = heard.recv().await {
        if matches!(change, Change::Tools(_)) {
            sleep(GATHERING).await;
        }
        let mut told = Told::default();
        let mut next = Some(change);
        while let Some(change) = next {
            match change {
                Change::Tools(place) => drop(told.places.insert(place)),
                Change::Tokens => tokens.recheck(),
                Change::Lost => metrics.set_listening(false),
                Change::Connected => {
                    metrics.set_listening(true);
                    tokens.recheck();
                    // What happened while nobody listened isn't known; a list too many does no harm.
                    told.all = true;
                }
            }
            next = heard.try_recv().ok();
        }
        if told.all || !told.places.is_empty() {
            metrics.list_changed();
            changes.tell(&told);
        }
    }
}
