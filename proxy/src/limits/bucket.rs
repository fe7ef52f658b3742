//! An allowance for each minute that is spent afterwards: what a run will cost isn't known before it has ended. Pure.

use std::time::{Duration, Instant};

/// This part of a minute's allowance may be spent at once.
const BURST: f64 = 0.25;

/// What was spent and hasn't been earned back yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    owed: f64,
    at: Instant,
}

impl Bucket {
    pub(super) fn new(now: Instant) -> Bucket {
        Bucket { owed: 0.0, at: now }
    }

    pub(super) fn spend(&mut self, amount: f64, per_minute: f64, now: Instant) {
        self.owed = self.owed(per_minute, now) + amount;
        self.at = now;
    }

    /// How long until something may be spent again; nothing if that is now.
    pub(super) fn wait(&self, per_minute: f64, now: Instant) -> Option<Duration> {
        let over = self.owed(per_minute, now) - per_minute * BURST;
        (over >= 0.0).then(|| {
            let seconds = (over * 60.0 / per_minute).clamp(0.001, 3600.0);
            Duration::from_secs_f64(seconds)
        })
    }

    /// How long until something may be spent again, if a whole minute's allowance and more is gone.
    pub(super) fn overdrawn(&self, per_minute: f64, now: Instant) -> Option<Duration> {
        if self.owed(per_minute, now) > per_minute { self.wait(per_minute, now) } else { None }
    }

    pub(super) fn is_settled(&self, per_minute: f64, now: Instant) -> bool {
        self.owed(per_minute, now) <= 0.0
    }

    fn owed(&self, per_minute: f64, now: Instant) -> f64 {
        let earned = per_minute / 60.0 * now.saturating_duration_since(self.at).as_secs_f64();
        (self.owed - earned).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Bucket;

    #[test]
    fn what_was_spent_is_earned_back_within_the_minute() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        for _ in 0..15 {
            assert_eq!(bucket.wait(60.0, start), None);
            bucket.spend(1.0, 60.0, start);
        }
        assert_eq!(bucket.wait(60.0, start), Some(Duration::from_millis(1)), "a quarter at once");
        assert_eq!(bucket.wait(60.0, start + Duration::from_secs(1)), None, "then one a second");
        bucket.spend(120.0, 60.0, start);
        assert_eq!(bucket.wait(60.0, start), Some(Duration::from_secs(120)), "a large one takes its time");
        assert!(!bucket.is_settled(60.0, start + Duration::from_secs(134)));
        assert!(bucket.is_settled(60.0, start + Duration::from_secs(135)));
    }
}
