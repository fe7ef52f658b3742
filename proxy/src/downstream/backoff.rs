//! How long to wait before a server is started again.

use std::time::{Duration, Instant};

/// When a server that died is started again.
#[derive(Clone, Debug)]
pub struct RestartPolicy {
    /// The wait after the first failure; it doubles with each one that follows.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// A server that stayed up this long has recovered: the next wait is the first one again.
    pub stable: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(60),
            stable: Duration::from_secs(30),
        }
    }
}

/// The waits of one server.
pub(super) struct Backoff {
    policy: RestartPolicy,
    failures: u32,
}

impl Backoff {
    pub(super) fn new(policy: RestartPolicy) -> Self {
        Self { policy, failures: 0 }
    }

    /// To be told when a server that was up since `since` went down.
    pub(super) fn was_up(&mut self, since: Instant) {
        if since.elapsed() >= self.policy.stable {
            self.failures = 0;
        }
    }

    /// The next wait: doubled each time, and 50 to 100 % of that by chance, so that many don't return at one moment.
    pub(super) fn next(&mut self) -> Duration {
        let doubled = self.policy.first.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        doubled.min(self.policy.longest).mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_longest_and_starts_over_after_a_stable_time() {
        let policy = RestartPolicy {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(10),
            stable: Duration::from_secs(3600),
        };
        let mut backoff = Backoff::new(policy);
        for expected in [1, 2, 4, 8, 10, 10] {
            let wait = backoff.next().as_secs_f64();
            assert!(
                (f64::from(expected) / 2.0..=f64::from(expected)).contains(&wait),
                "{wait} of {expected}"
            );
        }
        backoff.was_up(Instant::now());
        assert!(backoff.next() >= Duration::from_secs(5), "a short life resets nothing");
        backoff.policy.stable = Duration::ZERO;
        backoff.was_up(Instant::now());
        assert!(backoff.next() <= Duration::from_secs(1));
    }

    #[test]
    fn never_overflows() {
        let mut backoff = Backoff::new(RestartPolicy::default());
        for _ in 0..100 {
            assert!(backoff.next() <= Duration::from_secs(60));
        }
    }
}
