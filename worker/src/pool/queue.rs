//! Who runs next: bounded, and fair between tenants. Pure bookkeeping, no I/O.

use std::collections::{HashMap, VecDeque};

/// Why a run may not wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full {
    pub(super) waiting: usize,
    pub(super) setting: &'static str,
}

/// The slots of one level of nesting and those who wait for them.
pub(super) struct FairQueue<W> {
    slots: usize,
    longest: usize,
    longest_per_tenant: usize,
    running: HashMap<String, usize>,
    running_in_all: usize,
    waiting: HashMap<String, VecDeque<(u64, W)>>,
    waiting_in_all: usize,
    /// The tenants that wait, the one served longest ago first.
    turns: VecDeque<String>,
    next_ticket: u64,
}

impl<W> FairQueue<W> {
    pub(super) fn new(slots: usize, longest: usize, longest_per_tenant: usize) -> FairQueue<W> {
        FairQueue {
            slots,
            longest,
            longest_per_tenant,
            running: HashMap::new(),
            running_in_all: 0,
            waiting: HashMap::new(),
            waiting_in_all: 0,
            turns: VecDeque::new(),
            next_ticket: 0,
        }
    }

    /// Takes a slot if one is free and nobody waits for it.
    pub(super) fn try_take(&mut self, tenant: &str) -> bool {
        let free = self.running_in_all < self.slots && self.waiting_in_all == 0;
        if free {
            self.count(tenant);
        }
        free
    }

    /// Waits for a slot; the ticket serves to give up.
    pub(super) fn wait(&mut self, tenant: &str, waiter: W) -> Result<u64, Full> {
        if self.waiting_in_all >= self.longest {
            return Err(Full { waiting: self.waiting_in_all, setting: "queue" });
        }
        let of_tenant = self.waiting.get(tenant).map_or(0, VecDeque::len);
        if of_tenant >= self.longest_per_tenant {
            return Err(Full { waiting: of_tenant, setting: "queue_per_tenant" });
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        if of_tenant == 0 {
            self.turns.push_back(tenant.to_owned());
        }
        self.waiting.entry(tenant.to_owned()).or_default().push_back((ticket, waiter));
        self.waiting_in_all += 1;
        Ok(ticket)
    }

    /// Gives up waiting; nothing happens if the turn has come meanwhile.
    pub(super) fn give_up(&mut self, tenant: &str, ticket: u64) {
        if let Some(waiting) = self.waiting.get_mut(tenant)
            && let Some(place) = waiting.iter().position(|(waits, _)| *waits == ticket)
        {
            waiting.remove(place);
            self.waiting_in_all -= 1;
            self.forget_if_none_waits(tenant);
        }
    }

    /// Frees a slot and gives it to who is next, if anyone waits.
    pub(super) fn release(&mut self, tenant: &str) -> Option<(String, W)> {
        self.running_in_all -= 1;
        if let Some(running) = self.running.get_mut(tenant) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(tenant);
            }
        }
        let next = self.next_tenant()?;
        let (_, waiter) = self.waiting.get_mut(&next)?.pop_front()?;
        self.waiting_in_all -= 1;
        self.count(&next);
        if let Some(place) = self.turns.iter().position(|tenant| *tenant == next) {
            self.turns.remove(place);
            self.turns.push_back(next.clone());
        }
        self.forget_if_none_waits(&next);
        Some((next, waiter))
    }

    /// Everyone who waits, for a pool that closes.
    pub(super) fn drain(&mut self) -> Vec<W> {
        self.turns.clear();
        self.waiting_in_all = 0;
        self.waiting.drain().flat_map(|(_, waiting)| waiting).map(|(_, waiter)| waiter).collect()
    }

    /// The tenant with the fewest runs; of equals the one served longest ago.
    fn next_tenant(&self) -> Option<String> {
        let running = |tenant: &&String| self.running.get(*tenant).copied().unwrap_or(0);
        self.turns.iter().min_by_key(running).cloned()
    }

    fn count(&mut self, tenant: &str) {
        self.running_in_all += 1;
        *self.running.entry(tenant.to_owned()).or_default() += 1;
    }

    fn forget_if_none_waits(&mut self, tenant: &str) {
        if self.waiting.get(tenant).is_some_and(VecDeque::is_empty) {
            self.waiting.remove(tenant);
            self.turns.retain(|waits| waits != tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FairQueue, Full};

    fn served(queue: &mut FairQueue<u32>, first: &str) -> Vec<u32> {
        let mut tenant = first.to_owned();
        let mut order = Vec::new();
        while let Some((next, waiter)) = queue.release(&tenant) {
            order.push(waiter);
            tenant = next;
        }
        order
    }

    #[test]
    fn a_tenant_with_many_runs_does_not_hold_up_one_with_few() {
        let mut queue = FairQueue::new(1, 100, 100);
        assert!(queue.try_take("busy"));
        for waiter in 0..10 {
            queue.wait("busy", waiter).unwrap();
        }
        queue.wait("quiet", 100).unwrap();
        queue.wait("quiet", 101).unwrap();
        assert_eq!(served(&mut queue, "busy"), [0, 100, 1, 101, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn the_tenant_with_the_fewest_running_is_next() {
        let mut queue = FairQueue::new(3, 100, 100);
        for tenant in ["busy", "busy", "quiet"] {
            assert!(queue.try_take(tenant));
        }
        queue.wait("busy", 1).unwrap();
        queue.wait("new", 2).unwrap();
        assert_eq!(queue.release("quiet"), Some(("new".into(), 2)));
        assert_eq!(queue.release("new"), Some(("busy".into(), 1)));
        assert_eq!(queue.release("busy"), None);
    }

    #[test]
    fn a_full_queue_says_which_setting_made_it_so() {
        let mut queue = FairQueue::new(1, 3, 2);
        assert!(queue.try_take("a"));
        queue.wait("a", 1).unwrap();
        queue.wait("a", 2).unwrap();
        assert_eq!(queue.wait("a", 3), Err(Full { waiting: 2, setting: "queue_per_tenant" }));
        queue.wait("b", 4).unwrap();
        assert_eq!(queue.wait("c", 5), Err(Full { waiting: 3, setting: "queue" }));
    }

    #[test]
    fn who_gives_up_makes_room_and_is_not_served() {
        let mut queue = FairQueue::new(1, 2, 2);
        assert!(queue.try_take("a"));
        let ticket = queue.wait("a", 1).unwrap();
        queue.wait("a", 2).unwrap();
        queue.give_up("a", ticket);
        queue.give_up("a", ticket);
        queue.wait("a", 3).unwrap();
        assert_eq!(served(&mut queue, "a"), [2, 3]);
        assert!(queue.try_take("a"), "the slot is free again");
    }
}
