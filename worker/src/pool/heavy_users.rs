//! Tenants that recently used much CPU time: their runs start at low priority. Pure bookkeeping.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use crate::Tenant;

/// Shorter runs don't count, however many there are.
const FREE: Duration = Duration::from_millis(2);
/// Seconds beyond that which make a heavy user.
const HEAVY: f64 = 0.05;
/// Decay per second: slow, because a heavy user at low priority gets less CPU time.
const FORGOTTEN: f64 = 0.02;
/// Cap, so that everybody is light again after a minute and a half.
const MOST: f64 = 1.8;
/// Entries kept before light users are evicted.
const REMEMBERED: usize = 1_000;

/// Decayed CPU seconds, and when they were last updated.
#[derive(Default)]
pub(super) struct HeavyUsers(HashMap<Tenant, (f64, Instant)>);

impl HeavyUsers {
    pub(super) fn computed(&mut self, tenant: &Tenant, time: Duration, now: Instant) {
        let counted = time.saturating_sub(FREE).as_secs_f64();
        if counted > 0.0 {
            if self.0.len() >= REMEMBERED {
                self.0.retain(|_, (seconds, since)| lately(*seconds, *since, now) > 0.0);
            }
            let (seconds, since) = self.0.entry(tenant.clone()).or_insert((0.0, now));
            (*seconds, *since) = ((lately(*seconds, *since, now) + counted).min(MOST), now);
        }
    }

    pub(super) fn is_heavy(&self, tenant: &Tenant, now: Instant) -> bool {
        self.0.get(tenant).is_some_and(|(seconds, since)| lately(*seconds, *since, now) > HEAVY)
    }
}

fn lately(seconds: f64, since: Instant, now: Instant) -> f64 {
    (seconds - FORGOTTEN * now.saturating_duration_since(since).as_secs_f64()).max(0.0)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::HeavyUsers;

    #[test]
    fn many_short_runs_are_light_and_a_few_long_ones_heavy_for_a_while() {
        let (mut users, now) = (HeavyUsers::default(), Instant::now());
        for _ in 0..10_000 {
            users.computed(&"light".into(), Duration::from_millis(2), now);
        }
        users.computed(&"heavy".into(), Duration::from_secs(1), now);
        assert!(!users.is_heavy(&"light".into(), now) && users.is_heavy(&"heavy".into(), now));
        users.computed(&"heavy".into(), Duration::from_secs(3600), now);
        assert!(users.is_heavy(&"heavy".into(), now + Duration::from_secs(80)));
        assert!(!users.is_heavy(&"heavy".into(), now + Duration::from_secs(90)));
    }
}
