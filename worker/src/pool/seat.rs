//! The slot of a run. While the run waits for a person it steps aside: it releases the slot, and takes one again before it
//! continues.

use std::{
    future::{Future, pending},
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{Clock, FairGate, Pause, Permit, Refused, Tenant};

type Coming<'s> = Pin<Box<dyn Future<Output = Result<Permit, Refused>> + Send + 's>>;

pub(super) struct Seat<'s> {
    gate: &'s FairGate,
    tenant: &'s Tenant,
    stepped_aside: &'s AtomicUsize,
    permit: Option<Permit>,
    aside: Option<Aside<'s>>,
}

struct Aside<'s> {
    /// Waiting for a slot again doesn't count against the run's wall time.
    _pause: Pause,
    _counted: Counted<'s>,
    /// Set once the run wants a slot again.
    coming: Option<Coming<'s>>,
}

/// Counts while it lives.
struct Counted<'s>(&'s AtomicUsize);

impl<'s> Counted<'s> {
    fn new(count: &'s AtomicUsize) -> Counted<'s> {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<'s> Seat<'s> {
    pub(super) async fn take(
        gate: &'s FairGate,
        tenant: &'s Tenant,
        bytes: usize,
        stepped_aside: &'s AtomicUsize,
    ) -> Result<Seat<'s>, Refused> {
        let permit = gate.enter(tenant, bytes).await?;
        Ok(Seat { gate, tenant, stepped_aside, permit: Some(permit), aside: None })
    }

    /// Steps aside when the clock is paused, and queues for a slot again when it would resume.
    pub(super) fn follow(&mut self, clock: &Clock) {
        let held_by_others = clock.pauses() > usize::from(self.aside.is_some());
        match &mut self.aside {
            None if held_by_others => {
                self.permit = None;
                let counted = Counted::new(self.stepped_aside);
                self.aside = Some(Aside { _pause: clock.pause(), _counted: counted, coming: None });
            }
            Some(aside) if held_by_others => aside.coming = None,
            Some(aside) => {
                aside.coming.get_or_insert_with(|| Box::pin(self.gate.enter_again(self.tenant)));
            }
            None => {}
        }
    }

    /// Whether it is waiting for a slot before the run can continue.
    pub(super) fn is_coming_back(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.coming.is_some())
    }

    /// Completes when it has a slot again; never if it isn't waiting for one.
    pub(super) async fn back(&mut self) {
        let Some(coming) = self.aside.as_mut().and_then(|aside| aside.coming.as_mut()) else {
            return pending().await;
        };
        // None if the pool is closing, when slots no longer matter.
        self.permit = coming.await.ok();
        self.aside = None;
    }
}
