//! Waits for a slot of a fair queue, without blocking.

use std::{sync::Arc, time::Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::{
    Counts, Full, Shares, Tenant,
    queue::{FairQueue, Ticket},
};

type Queue = FairQueue<oneshot::Sender<Result<Permit, Full>>>;

/// Slots that tenants share. Clones share them too.
#[derive(Clone)]
pub struct FairGate(Arc<Mutex<State>>);

struct State {
    queue: Queue,
    closed: bool,
}

/// Why nobody is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Too many wait.
    Full(Full),
    /// The gate was closed.
    Closed,
}

impl From<Full> for Refused {
    fn from(full: Full) -> Refused {
        Refused::Full(full)
    }
}

/// One slot; given on when dropped.
pub struct Permit {
    gate: FairGate,
    tenant: Tenant,
}

impl FairGate {
    /// With these slots and bounds.
    #[must_use]
    pub fn new(shares: Shares) -> FairGate {
        FairGate(Arc::new(Mutex::new(State { queue: FairQueue::new(shares), closed: false })))
    }

    /// Waits for a slot; `bytes` is what is held meanwhile. Dropping the future gives the place in the queue up.
    pub async fn enter(&self, tenant: &Tenant, bytes: usize) -> Result<Permit, Refused> {
        let (sender, receiver) = oneshot::channel();
        let (waiting, displaced) = {
            let mut state = self.lock();
            if state.closed {
                return Err(Refused::Closed);
            }
            if state.queue.try_take(tenant, Instant::now()) {
                return Ok(self.permit(tenant.clone()));
            }
            let waits = state.queue.wait(tenant, bytes, sender);
            (waits.ticket.map(|ticket| Waiting { gate: self, tenant, ticket }), waits.displaced)
        };
        for (who, full) in displaced {
            let _ = who.send(Err(full));
        }
        let _waiting = waiting?;
        receiver.await.map_err(|_| Refused::Closed)?.map_err(Refused::Full)
    }

    /// Waits for a slot again, whatever the bounds: for what was let in before and gave its slot back for a while.
    pub async fn enter_again(&self, tenant: &Tenant) -> Result<Permit, Refused> {
        let (sender, receiver) = oneshot::channel();
        let _waiting = {
            let mut state = self.lock();
            if state.closed {
                return Err(Refused::Closed);
            }
            if state.queue.try_take(tenant, Instant::now()) {
                return Ok(self.permit(tenant.clone()));
            }
            let ticket = state.queue.wait_again(tenant, sender);
            Waiting { gate: self, tenant, ticket }
        };
        receiver.await.map_err(|_| Refused::Closed)?.map_err(Refused::Full)
    }

    /// Lets nobody in any more, and sends away those who wait.
    pub fn close(&self) {
        let waiting = {
            let mut state = self.lock();
            state.closed = true;
            state.queue.drain()
        };
        // Dropped without the lock: their ends take it.
        drop(waiting);
    }

    /// How much is in use.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.lock().queue.counts()
    }

    fn permit(&self, tenant: Tenant) -> Permit {
        Permit { gate: self.clone(), tenant }
    }

    /// Changes the queue, and lets in whoever is next then.
    fn change(&self, change: impl FnOnce(&mut Queue)) {
        let (mut next, now) = (Vec::new(), Instant::now());
        {
            let mut state = self.lock();
            change(&mut state.queue);
            while let Some(granted) = state.queue.next(now) {
                next.push(granted);
            }
        }
        for (tenant, waiter) in next {
            // If the waiter is gone, the permit comes back here and is given on once more.
            let _ = waiter.send(Ok(self.permit(tenant)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock, and the state is whole at every step.
        self.0.lock()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let gate = self.gate.clone();
        gate.change(|queue| queue.release(&self.tenant, Instant::now()));
    }
}

/// Gives up the place in the queue if the future that waits is dropped.
struct Waiting<'g> {
    gate: &'g FairGate,
    tenant: &'g Tenant,
    ticket: Ticket,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.gate.change(|queue| queue.give_up(self.tenant, self.ticket));
    }
}
