//! Bearer tokens: random, shown once, known to Postgres by their hash only.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::{
    database::{Database, DatabaseError},
    scope::Principal,
};

const PREFIX: &str = "pml_";
/// Postgres is asked again after this long, so that an expiry is noticed; a revocation is told at once.
const REMEMBERED: Duration = Duration::from_secs(30);
/// Wrong tokens aren't remembered, so only valid ones take room.
const MOST_REMEMBERED: usize = 10_000;

/// A new token: 256 random bits.
pub fn generate() -> Result<String, getrandom::Error> {
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret)?;
    Ok(format!("{PREFIX}{}", hex(&secret)))
}

/// What Postgres knows of a token. A token is random, so a plain hash can't be guessed back.
pub fn hash(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Valid tokens as far as this proxy knows.
pub struct Tokens {
    database: Database,
    known: Mutex<HashMap<String, Known>>,
}

#[derive(Clone)]
struct Known {
    principal: Principal,
    until: Instant,
    /// Ends the streams that were opened with it.
    revoked: CancellationToken,
}

/// A token that is good, and the signal that it no longer is.
#[derive(Clone)]
pub struct Accepted {
    pub principal: Principal,
    pub revoked: CancellationToken,
}

impl Tokens {
    pub fn new(database: Database) -> Tokens {
        Tokens { database, known: Mutex::default() }
    }

    /// Whose token it is; `None` if it isn't valid.
    pub async fn check(&self, token: &str) -> Result<Option<Accepted>, DatabaseError> {
        // Nothing else than our own form is worth a question to Postgres.
        if !token.starts_with(PREFIX) || token.len() > 200 {
            return Ok(None);
        }
        let hash = hash(token);
        if let Some(known) = self.lock().get(&hash).filter(|known| known.until > Instant::now()) {
            return Ok(Some(Accepted { principal: known.principal.clone(), revoked: known.revoked.clone() }));
        }
        match self.database.check_token(&hash).await? {
            Some(principal) => Ok(Some(self.remember(hash, principal))),
            None => {
                self.forget(&hash);
                Ok(None)
            }
        }
    }

    fn remember(&self, hash: String, principal: Principal) -> Accepted {
        let mut known = self.lock();
        if known.len() >= MOST_REMEMBERED {
            let now = Instant::now();
            known.retain(|_, known| known.until > now);
        }
        let entry = known.entry(hash).or_insert_with(|| Known {
            principal: principal.clone(),
            until: Instant::now(),
            revoked: CancellationToken::new(),
        });
        entry.principal = principal.clone();
        entry.until = Instant::now() + REMEMBERED;
        Accepted { principal, revoked: entry.revoked.clone() }
    }

    fn forget(&self, hash: &str) {
        if let Some(known) = self.lock().remove(hash) {
            known.revoked.cancel();
        }
    }

    /// Asks Postgres about every known token again; until it answers, none is taken for granted.
    pub fn recheck(self: &Arc<Self>) {
        let hashes: Vec<String> = {
            let mut known = self.lock();
            let now = Instant::now();
            known.values_mut().for_each(|known| known.until = now);
            known.keys().cloned().collect()
        };
        if hashes.is_empty() {
            return;
        }
        let tokens = self.clone();
        tokio::spawn(async move {
            for hash in hashes {
                match tokens.database.check_token(&hash).await {
                    Ok(Some(principal)) => drop(tokens.remember(hash, principal)),
                    Ok(None) => tokens.forget(&hash),
                    Err(error) => tracing::warn!(%error, "a token can't be checked now"),
                }
            }
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{generate, hash};

    #[test]
    fn tokens_are_long_random_and_hashed() {
        let (one, other) = (generate().unwrap(), generate().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 4 + 64);
        assert!(!hash(&one).contains(one.trim_start_matches("pml_")));
        assert_eq!(hash(&one), hash(&one));
    }
}
