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

use crate::{database::Change, metrics::Metrics, tokens::Tokens, tools::known::KnownTools};

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

/// Who is told.
pub(crate) struct Listeners {
    pub changes: Arc<Changes>,
    pub known: Arc<KnownTools>,
    pub tokens: Arc<Tokens>,
    pub metrics: Arc<Metrics>,
}

/// Takes what the database tells, and passes it on.
pub(crate) async fn pass_on(mut heard: mpsc::UnboundedReceiver<Change>, listeners: Listeners) {
    let Listeners { changes, known, tokens, metrics } = listeners;
    while let Some(change) = heard.recv().await {
        let mut told = Told::default();
        let mut next = Some(change);
        let mut gathered = false;
        while let Some(change) = next {
            match change {
                Change::Tools(place) => {
                    known.changed(&place);
                    told.places.insert(place);
                    // Clients are told a little later, of all that comes together.
                    if !std::mem::replace(&mut gathered, true) {
                        sleep(GATHERING).await;
                    }
                }
                Change::Tokens => tokens.recheck(),
                Change::Lost => {
                    known.set_listening(false);
                    metrics.set_listening(false);
                }
                Change::Connected => {
                    known.set_listening(true);
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
