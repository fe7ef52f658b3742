//! How many subscriptions to resources a tenant has. Each costs memory here and at a server.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use pml_worker::Tenant;

/// Of one tenant.
pub const MOST_SUBSCRIPTIONS: usize = 1_000;

/// The number of each tenant's subscriptions.
#[derive(Debug, Default)]
pub struct SubscriptionCounts(Mutex<HashMap<Tenant, usize>>);

/// A subscription that is counted, until it is dropped.
#[derive(Debug)]
pub struct CountedSubscription {
    counts: Arc<SubscriptionCounts>,
    tenant: Tenant,
}

impl SubscriptionCounts {
    /// None if the tenant has enough.
    pub fn add(self: &Arc<Self>, tenant: &Tenant) -> Option<CountedSubscription> {
        let mut counts = self.0.lock();
        let own = counts.entry(tenant.clone()).or_default();
        if *own >= MOST_SUBSCRIPTIONS {
            return None;
        }
        *own += 1;
        Some(CountedSubscription { counts: self.clone(), tenant: tenant.clone() })
    }
}

impl Drop for CountedSubscription {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        if let Some(own) = counts.get_mut(&self.tenant) {
            *own -= 1;
            if *own == 0 {
                counts.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pml_worker::Tenant;

    use super::{MOST_SUBSCRIPTIONS, SubscriptionCounts};

    #[test]
    fn each_tenant_has_its_own() {
        let counts = Arc::<SubscriptionCounts>::default();
        let (ann, bob) = (Tenant::new("a", "ann"), Tenant::new("a", "bob"));
        let mut open: Vec<_> = (0..MOST_SUBSCRIPTIONS).map(|_| counts.add(&ann).unwrap()).collect();
        assert!(counts.add(&ann).is_none() && counts.add(&bob).is_some());
        open.pop();
        assert!(counts.add(&ann).is_some());
        drop(open);
        assert!(counts.0.lock().is_empty());
    }
}
