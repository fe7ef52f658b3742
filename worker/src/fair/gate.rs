//! An async semaphore over a fair queue.

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

/// Why no slot is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The queue is full.
    Full(Full),
    /// The gate was closed.
    Closed,
}

impl From<Full> for Refused {
    fn from(full: Full) -> Refused {
        Refused::Full(full)
    }
}

/// One slot; released when dropped.
pub struct Permit {
    gate: FairGate,
    tenant: Tenant,
}

impl FairGate {
    /// A gate with these slots and bounds.
    #[must_use]
    pub fn new(shares: Shares) -> FairGate {
        FairGate(Arc::new(Mutex::new(State { queue: FairQueue::new(shares), closed: false })))
    }

    /// Waits for a slot; `bytes` is the memory held by the caller meanwhile. Dropping the future leaves the queue.
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

    /// Waits for a slot again, ignoring the bounds: for a run that stepped aside.
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

    /// Refuses new callers and those in the queue.
    pub fn close(&self) {
        let waiting = {
            let mut state = self.lock();
            state.closed = true;
            state.queue.drain()
        };
        // Dropped without the lock, which their destructors take.
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

    /// Changes the queue, then grants free slots.
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
            // If the waiter is gone, dropping its permit grants the slot to the next.
            let _ = waiter.send(Ok(self.permit(tenant)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock, and the state is consistent at every step.
        self.0.lock()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let gate = self.gate.clone();
        gate.change(|queue| queue.release(&self.tenant, Instant::now()));
    }
}

/// Leaves the queue if the waiting future is dropped.
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
