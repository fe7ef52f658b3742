//! The slot of a run. The run steps aside while it waits for somebody who isn't part of it, such as a person: its slot
//! is another's meanwhile, and it takes one again before it goes on.

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
    /// The time that it takes to get a slot again isn't the run's.
    _pause: Pause,
    _counted: Counted<'s>,
    /// There if nobody else is waited for.
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

    /// Steps aside if the clock stands still, and begins to come back when it would go on.
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

    /// Whether it has to wait for a slot before anything may go on.
    pub(super) fn is_coming_back(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.coming.is_some())
    }

    /// Ends when it has a slot again; never if it isn't about to.
    pub(super) async fn back(&mut self) {
        let Some(coming) = self.aside.as_mut().and_then(|aside| aside.coming.as_mut()) else {
            return pending().await;
        };
        // None if the pool is being closed: nobody else wants a slot then.
        self.permit = coming.await.ok();
        self.aside = None;
    }
}
