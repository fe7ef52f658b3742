//! Limits of each principal: request rate, concurrent requests, streams, sessions, wrong tokens.

use std::{collections::HashMap, hash::Hash, net::IpAddr, num::NonZeroU32, sync::Arc, time::Duration};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter, clock::Clock};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::{config::HttpConfig, scope::Identity};

/// All principals together may have this many times the limit of one.
const TOGETHER: usize = 10;
/// Event streams of one principal.
const STREAMS: usize = 200;
/// Unfinished bodies of `max_body` bytes, of one principal and of all together.
const UNFINISHED_BODIES: usize = 16;
const UNFINISHED_BODIES_TOGETHER: usize = 64;
/// Sessions of one principal.
pub(super) const SESSIONS: usize = 1_000;
/// Wrong tokens from one address.
const WRONG_TOKENS_A_MINUTE: NonZeroU32 = NonZeroU32::new(30).unwrap();

/// The key of all limits: the token, or the address without one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Identity(Identity),
    Address(IpAddr),
}

/// A limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    Rate,
    WrongTokens,
    Requests,
    Streams,
    Sessions,
    Bodies,
}

impl Load {
    /// Its label in metrics and logs.
    pub(super) fn label(self) -> &'static str {
        match self {
            Load::Rate => "rate",
            Load::WrongTokens => "wrong_tokens",
            Load::Requests => "concurrency",
            Load::Streams => "streams",
            Load::Sessions => "sessions",
            Load::Bodies => "bodies",
        }
    }
}

/// Which limit was reached, and when to retry.
pub(super) struct TooMuch {
    pub load: Load,
    pub retry_after: Duration,
}

pub(super) struct HttpLimits {
    rate: Option<DefaultKeyedRateLimiter<Key>>,
    wrong_tokens: DefaultKeyedRateLimiter<IpAddr>,
    requests: Arc<Counted>,
    streams: Arc<Counted>,
    /// Bytes of unfinished bodies, which don't count as requests yet.
    bodies: Arc<Counted>,
}

impl HttpLimits {
    pub(super) fn new(config: &HttpConfig) -> HttpLimits {
        let quota = |rate: NonZeroU32| Quota::per_second(rate).allow_burst(rate.saturating_mul(TWO));
        HttpLimits {
            rate: config.rate.map(|rate| RateLimiter::keyed(quota(rate))),
            wrong_tokens: RateLimiter::keyed(Quota::per_minute(WRONG_TOKENS_A_MINUTE)),
            requests: Arc::new(Counted::new(config.concurrency, config.concurrency * TOGETHER)),
            streams: Arc::new(Counted::new(STREAMS, STREAMS * TOGETHER)),
            bodies: Arc::new(Counted::new(
                config.max_body.saturating_mul(UNFINISHED_BODIES),
                config.max_body.saturating_mul(UNFINISHED_BODIES_TOGETHER),
            )),
        }
    }

    pub(super) fn check_rate(&self, key: &Key) -> Result<(), TooMuch> {
        let Some(rate) = &self.rate else { return Ok(()) };
        check(rate, key, Load::Rate)
    }

    /// Whether this address has sent too many wrong tokens lately.
    pub(super) fn wrong_token(&self, address: IpAddr) -> Result<(), TooMuch> {
        check(&self.wrong_tokens, &address, Load::WrongTokens)
    }

    pub(super) fn begin_request(&self, key: Key) -> Result<Permit, TooMuch> {
        self.requests.take(key, Load::Requests)
    }

    pub(super) fn begin_stream(&self, key: Key) -> Result<Permit, TooMuch> {
        self.streams.take(key, Load::Streams)
    }

    /// A permit for the bytes of a body, empty at first.
    pub(super) fn room_for_body(&self, key: Key) -> Permit {
        Permit { counted: self.bodies.clone(), key, amount: 0 }
    }

    /// Waits until no request is running.
    pub(super) async fn requests_ended(&self) {
        loop {
            let given_back = self.requests.given_back.notified();
            if self.requests.lock().all == 0 {
                return;
            }
            given_back.await;
        }
    }

    /// Drops rate limiters whose quota is full again.
    pub(super) fn tidy(&self) {
        if let Some(rate) = &self.rate {
            rate.retain_recent();
        }
        self.wrong_tokens.retain_recent();
    }
}

const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();

fn check<K: Hash + Eq + Clone>(
    limiter: &DefaultKeyedRateLimiter<K>,
    key: &K,
    load: Load,
) -> Result<(), TooMuch> {
    limiter
        .check_key(key)
        .map_err(|wait| TooMuch { load, retry_after: wait.wait_time_from(limiter.clock().now()) })
}

struct Counted {
    each: usize,
    together: usize,
    state: Mutex<Counts>,
    given_back: Notify,
}

#[derive(Default)]
struct Counts {
    of: HashMap<Key, usize>,
    all: usize,
}

impl Counted {
    fn new(each: usize, together: usize) -> Counted {
        Counted { each, together, state: Mutex::default(), given_back: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.state.lock()
    }

    fn take(self: &Arc<Self>, key: Key, load: Load) -> Result<Permit, TooMuch> {
        let mut permit = Permit { counted: self.clone(), key, amount: 0 };
        permit.take(1, load)?;
        Ok(permit)
    }
}

/// A permit for a request, a stream or some bytes, released when dropped.
pub(super) struct Permit {
    counted: Arc<Counted>,
    key: Key,
    amount: usize,
}

impl Permit {
    /// Extends the permit by so many bytes.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), TooMuch> {
        self.take(bytes, Load::Bodies)
    }

    fn take(&mut self, amount: usize, load: Load) -> Result<(), TooMuch> {
        let mut counts = self.counted.lock();
        let own = counts.of.get(&self.key).copied().unwrap_or(0);
        if own + amount > self.counted.each || counts.all + amount > self.counted.together {
            return Err(TooMuch { load, retry_after: Duration::from_secs(1) });
        }
        counts.all += amount;
        counts.of.insert(self.key.clone(), own + amount);
        drop(counts);
        self.amount += amount;
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = self.counted.lock();
        counts.all -= self.amount;
        if let Some(own) = counts.of.get_mut(&self.key) {
            *own -= self.amount;
            if *own == 0 {
                counts.of.remove(&self.key);
            }
        }
        drop(counts);
        self.counted.given_back.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Counted, Key, Load};
    use crate::scope::Identity;

    #[test]
    fn one_principal_does_not_use_up_the_limit_of_others() {
        let counted = Arc::new(Counted::new(2, 20));
        let one = Key::Identity(Identity::Token(uuid::Uuid::from_u128(1)));
        let other = Key::Identity(Identity::Token(uuid::Uuid::from_u128(2)));
        let held: Vec<_> = (0..2).map(|_| counted.take(one.clone(), Load::Requests).ok().unwrap()).collect();
        assert!(counted.take(one.clone(), Load::Requests).is_err());
        assert!(counted.take(other, Load::Requests).is_ok());
        drop(held);
        assert!(counted.take(one, Load::Requests).is_ok());
        assert!(counted.lock().all == 0 && counted.lock().of.is_empty());
    }

    #[test]
    fn unfinished_bodies_are_counted_in_bytes() {
        let counted = Arc::new(Counted::new(10, 15));
        let room = |id| {
            let key = Key::Identity(Identity::Token(uuid::Uuid::from_u128(id)));
            super::Permit { counted: counted.clone(), key, amount: 0 }
        };
        let (mut one, mut another, mut other) = (room(1), room(1), room(2));
        assert!(one.grow(6).is_ok() && another.grow(5).is_err() && another.grow(4).is_ok());
        assert!(other.grow(6).is_err() && other.grow(5).is_ok());
        drop((one, another, other));
        assert!(counted.lock().all == 0 && counted.lock().of.is_empty());
    }
}
