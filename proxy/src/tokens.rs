//! Bearer tokens: random, shown once, stored as hashes. Valid ones are cached while notifications arrive.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    changes::{Hint, RECHECK},
    database::{Database, DatabaseError},
    scope::{Identity, Principal},
};

const PREFIX: &str = "pml_";
/// Cache entries live this long, so that an expired token is noticed; a revocation is notified at once.
const LIFETIME: Duration = Duration::from_secs(30);
/// Only valid tokens are cached.
const MOST_CACHED: usize = 10_000;
/// Tokens whose last hint is remembered.
const MOST_HINTED: usize = 1_000;

/// A new token: 256 random bits.
pub fn generate() -> Result<String, getrandom::Error> {
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret)?;
    Ok(format!("{PREFIX}{}", hex(&secret)))
}

/// What Postgres stores. A token is random, so a plain hash can't be reversed by guessing.
pub fn hash(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The cache of valid tokens.
pub struct Tokens {
    database: Database,
    state: Mutex<State>,
    hinted: Notify,
}

#[derive(Default)]
struct State {
    /// Whether notifications arrive, so that what is known may be used.
    is_listening: bool,
    /// Whether it was.
    was_used: bool,
    known: HashMap<String, Known>,
    /// Their hashes.
    by_id: HashMap<Uuid, String>,
    /// Counts hints.
    now: u64,
    /// When any token may have changed.
    all_hinted: u64,
    /// When this token may have changed, if that was later. It may not be cached yet: a query for it may be running.
    hinted: HashMap<Uuid, u64>,
}

struct Known {
    principal: Principal,
    until: Instant,
    /// Ends the streams that were opened with it.
    revoked: Arc<Revocation>,
    /// Whether it must be checked again, because streams depend on it.
    is_hinted: bool,
}

impl Known {
    /// Whether a stream, or briefly a request, depends on it.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.revoked) > 1
    }
}

/// The signal that a token was revoked.
#[derive(Default)]
pub struct Revocation(CancellationToken);

impl Revocation {
    pub(crate) fn signal(&self) -> CancellationToken {
        self.0.clone()
    }
}

/// A valid token's principal, and the signal of its revocation, which must be held to be sent.
#[derive(Clone)]
pub struct Accepted {
    pub principal: Principal,
    pub revoked: Arc<Revocation>,
}

impl Tokens {
    pub fn new(database: Database) -> Tokens {
        Tokens { database, state: Mutex::default(), hinted: Notify::new() }
    }

    /// Whose token it is; `None` if it isn't valid.
    pub async fn check(&self, token: &str) -> Result<Option<Accepted>, DatabaseError> {
        // Only our own form is worth a query.
        if !token.starts_with(PREFIX) || token.len() > 200 {
            return Ok(None);
        }
        let hash = hash(token);
        let asked = {
            let mut state = self.state.lock();
            if let Some(accepted) = state.cached(&hash) {
                return Ok(Some(accepted));
            }
            state.now
        };
        self.ask(hash, asked).await
    }

    async fn ask(&self, hash: String, asked: u64) -> Result<Option<Accepted>, DatabaseError> {
        let principal = self.database.check_token(&hash).await?;
        let mut state = self.state.lock();
        let Some(principal) = principal else {
            state.forget(&hash);
            return Ok(None);
        };
        let (accepted, is_doubtful) = state.remember(hash, principal, asked);
        if is_doubtful {
            self.hinted.notify_one();
        }
        Ok(Some(accepted))
    }

    /// A notification says that this token has changed. It is checked on its next use, and now if streams depend on it.
    pub(crate) fn hint(&self, id: Uuid) -> Hint {
        let mut state = self.state.lock();
        state.note_hint(id);
        let hint = state.doubt(id);
        if hint == Hint::Taken {
            self.hinted.notify_one();
        }
        hint
    }

    /// Notifications arrive from now on, or no longer. Either way some may have been missed.
    pub(crate) fn set_listening(&self, listening: bool) {
        self.state.lock().is_listening = listening;
        if listening {
            self.hint_all();
        }
    }

    /// Whether the cache was used since this was last asked.
    pub(crate) fn take_used(&self) -> bool {
        std::mem::take(&mut self.state.lock().was_used)
    }

    /// Any token may have changed.
    pub(crate) fn hint_all(&self) {
        let mut state = self.state.lock();
        state.now += 1;
        state.all_hinted = state.now;
        state.hinted.clear();
        let ids: Vec<Uuid> = state.by_id.keys().copied().collect();
        for id in ids {
            state.doubt(id);
        }
        self.hinted.notify_one();
    }

    /// Checks hinted tokens on which streams depend.
    pub(crate) async fn follow_hints(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.hinted.notified() => {}
            }
            let next = tokio::time::Instant::now() + RECHECK;
            let (hashes, asked) = self.state.lock().take_hinted();
            for hash in hashes {
                if let Err(error) = self.ask(hash.clone(), asked).await {
                    tracing::warn!(%error, "can't check a token now");
                    if error.is_passing() && self.state.lock().doubt_again(&hash) {
                        self.hinted.notify_one();
                    }
                }
            }
            tokio::time::sleep_until(next).await;
        }
    }
}

impl State {
    fn cached(&mut self, hash: &str) -> Option<Accepted> {
        let known = self.known.get(hash).filter(|known| self.is_listening && known.until > Instant::now())?;
        self.was_used = true;
        Some(Accepted { principal: known.principal.clone(), revoked: known.revoked.clone() })
    }

    /// Bounded: beyond that, any token may have changed.
    fn note_hint(&mut self, id: Uuid) {
        self.now += 1;
        if self.hinted.len() >= MOST_HINTED {
            self.hinted.clear();
            self.all_hinted = self.now;
        }
        self.hinted.insert(id, self.now);
    }

    fn is_hinted_since(&self, id: Uuid, asked: u64) -> bool {
        self.hinted.get(&id).copied().unwrap_or(0).max(self.all_hinted) > asked
    }

    fn doubt(&mut self, id: Uuid) -> Hint {
        let known = self.by_id.get(&id).and_then(|hash| self.known.get_mut(hash));
        let Some(known) = known else { return Hint::Unneeded };
        known.until = Instant::now();
        if std::mem::replace(&mut known.is_hinted, true) { Hint::Coalesced } else { Hint::Taken }
    }

    fn doubt_again(&mut self, hash: &str) -> bool {
        self.known.get_mut(hash).map(|known| known.is_hinted = true).is_some()
    }

    fn take_hinted(&mut self) -> (Vec<String>, u64) {
        let mut hashes = Vec::new();
        for (hash, known) in &mut self.known {
            if std::mem::take(&mut known.is_hinted) && known.is_in_use() {
                hashes.push(hash.clone());
            }
        }
        (hashes, self.now)
    }

    /// Caches the result of a query that was sent at `asked`. Whether a hint came since, so that it may be outdated.
    fn remember(&mut self, hash: String, principal: Principal, asked: u64) -> (Accepted, bool) {
        let now = Instant::now();
        if self.known.len() >= MOST_CACHED {
            self.known.retain(|_, known| known.until > now || known.is_in_use());
            let known = &self.known;
            self.by_id.retain(|_, hash| known.contains_key(hash));
        }
        let id = match principal.identity {
            Identity::Token(id) => Some(id),
            Identity::Configured => None,
        };
        let is_doubtful = id.is_some_and(|id| self.is_hinted_since(id, asked));
        if let Some(id) = id {
            self.by_id.insert(id, hash.clone());
        }
        let entry = self.known.entry(hash).or_insert_with(|| Known {
            principal: principal.clone(),
            until: now,
            revoked: Arc::default(),
            is_hinted: false,
        });
        entry.principal = principal.clone();
        entry.until = if is_doubtful { now } else { now + LIFETIME };
        entry.is_hinted = is_doubtful;
        (Accepted { principal, revoked: entry.revoked.clone() }, is_doubtful)
    }

    fn forget(&mut self, hash: &str) {
        if let Some(known) = self.known.remove(hash) {
            if let Identity::Token(id) = known.principal.identity {
                self.by_id.remove(&id);
            }
            known.revoked.0.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{MOST_HINTED, State, generate, hash};
    use crate::{
        changes::Hint,
        scope::{Identity, Principal, Scope},
    };

    fn principal(id: Uuid) -> Principal {
        let scope = Scope { org: "o".into(), project: "p".into(), actor: "a".into() };
        Principal { identity: Identity::Token(id), scope }
    }

    /// Whether it is used from the cache.
    fn is_known(state: &mut State, hash: &str) -> bool {
        state.cached(hash).is_some()
    }

    fn listening() -> State {
        State { is_listening: true, ..State::default() }
    }

    #[test]
    fn nothing_is_used_while_notifications_do_not_arrive() {
        let mut state = State::default();
        state.remember("h".into(), principal(Uuid::from_u128(1)), 0);
        assert!(!is_known(&mut state, "h") && !state.was_used);
        state.is_listening = true;
        assert!(is_known(&mut state, "h") && state.was_used);
    }

    #[test]
    fn a_hint_drops_the_entry_and_checks_only_for_streams() {
        let (mut state, id) = (listening(), Uuid::from_u128(1));
        let (accepted, _) = state.remember("h".into(), principal(id), 0);
        assert!(is_known(&mut state, "h"));
        state.note_hint(id);
        assert_eq!((state.doubt(id), state.doubt(id)), (Hint::Taken, Hint::Coalesced));
        assert!(!is_known(&mut state, "h"));
        assert_eq!(state.take_hinted().0, ["h"], "a stream depends on it");
        drop(accepted);
        state.doubt(id);
        assert!(state.take_hinted().0.is_empty());
        assert_eq!(state.doubt(Uuid::from_u128(2)), Hint::Unneeded);
    }

    #[test]
    fn a_result_from_before_a_hint_is_not_cached() {
        let (mut state, id) = (listening(), Uuid::from_u128(1));
        let asked = state.now;
        state.note_hint(id);
        let (accepted, is_doubtful) = state.remember("h".into(), principal(id), asked);
        assert!(is_doubtful && !is_known(&mut state, "h"));
        assert_eq!(state.take_hinted().0, ["h"]);
        let now = state.now;
        assert!(!state.remember("h".into(), principal(id), now).1 && is_known(&mut state, "h"));
        state.forget("h");
        assert!(accepted.revoked.signal().is_cancelled() && state.by_id.is_empty());
    }

    #[test]
    fn a_flood_of_hints_takes_bounded_memory() {
        let mut state = State::default();
        let asked = state.now;
        for id in 0..20_000 {
            state.note_hint(Uuid::from_u128(id));
        }
        assert!(state.hinted.len() <= MOST_HINTED && state.known.is_empty());
        assert!(state.is_hinted_since(Uuid::from_u128(0), asked), "nothing is missed");
        assert!(!state.is_hinted_since(Uuid::from_u128(0), state.now));
    }

    #[test]
    fn tokens_are_long_random_and_hashed() {
        let (one, other) = (generate().unwrap(), generate().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 4 + 64);
        assert!(!hash(&one).contains(one.trim_start_matches("pml_")));
        assert_eq!(hash(&one), hash(&one));
    }
}
