//! The back-off between restarts of a server.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff};

use crate::backoff::pauses;

/// When a server that died is started again.
#[derive(Clone, Debug)]
pub struct RestartPolicy {
    /// The wait after the first failure; it doubles with each one that follows.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// A server that stayed up this long has recovered: the back-off starts over.
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
    waits: ExponentialBackoff,
}

impl Backoff {
    pub(super) fn new(policy: RestartPolicy) -> Self {
        Self { waits: policy.waits(), policy }
    }

    /// Reports that a server that was up since `since` went down.
    pub(super) fn was_up(&mut self, since: Instant) {
        if since.elapsed() >= self.policy.stable {
            self.waits = self.policy.waits();
        }
    }

    pub(super) fn next(&mut self) -> Duration {
        self.waits.next().unwrap_or(self.policy.longest)
    }
}

impl RestartPolicy {
    fn waits(&self) -> ExponentialBackoff {
        pauses(self.first, self.longest).build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_over_after_a_stable_time_only() {
        let policy = RestartPolicy {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(10),
            stable: Duration::from_secs(3600),
        };
        let mut backoff = Backoff::new(policy);
        for _ in 0..6 {
            backoff.next();
        }
        backoff.was_up(Instant::now());
        assert!(backoff.next() >= Duration::from_secs(5), "a short uptime resets nothing");
        backoff.policy.stable = Duration::ZERO;
        backoff.was_up(Instant::now());
        assert!(backoff.next() <= Duration::from_secs(1));
    }
}
