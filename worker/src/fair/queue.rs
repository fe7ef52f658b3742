//! A bounded queue, fair between groups and between the tenants of a group. Pure bookkeeping, no I/O.
//!
//! Slots can't be preempted, so a group below its share doesn't wait for another to release one: it gets a slot of the
//! reserve. A group alone has the slots and never the reserve.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use super::{Tenant, present::Present};

/// How much there is to share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Slots for anybody.
    pub slots: usize,
    /// Further slots, for tenants below their share while the others are taken.
    pub reserve: usize,
    /// The most that one group may hold while another is active: each slot in use slows down the others, and a client with a
    /// call every few milliseconds would feel it on each of them.
    pub in_company: usize,
    /// Queue length, in all.
    pub queue: usize,
    /// Queue length per tenant.
    pub queue_per_tenant: usize,
    /// Bytes held by the queue, in all.
    pub queue_bytes: usize,
    /// Bytes held by the queue per tenant.
    pub queue_bytes_per_tenant: usize,
}

impl Shares {
    /// An unbounded queue, where the number of callers is bounded elsewhere.
    #[must_use]
    pub fn unbounded(slots: usize, reserve: usize) -> Shares {
        let any = usize::MAX;
        Shares {
            slots,
            reserve,
            in_company: any,
            queue: any,
            queue_per_tenant: any,
            queue_bytes: any,
            queue_bytes_per_tenant: any,
        }
    }
}

/// The bound that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullOf {
    /// The queue.
    Waiting,
    /// This tenant's part of the queue.
    WaitingOfTenant,
    /// The bytes in the queue.
    Bytes,
    /// This tenant's bytes in the queue.
    BytesOfTenant,
}

/// Why a caller can't queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// The bound that was reached.
    pub of: FullOf,
    /// Its value.
    pub most: usize,
}

/// How much is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Slots, those of the reserve included.
    pub held: usize,
    /// Callers in the queue.
    pub waiting: usize,
    /// The bytes that they hold.
    pub bytes: usize,
}

/// Identifies a queued caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// The result of queueing.
pub(super) struct Waits<W> {
    pub(super) ticket: Result<Ticket, Full>,
    /// Callers evicted from the queue, with the bound that was reached.
    pub(super) displaced: Vec<(W, Full)>,
}

struct Waiter<W> {
    ticket: Ticket,
    bytes: usize,
    who: W,
}

/// One tenant.
struct Member<W> {
    held: usize,
    bytes: usize,
    queue: VecDeque<Waiter<W>>,
    /// When it was last served, or arrived.
    turn: u64,
}

struct Group<W> {
    held: usize,
    waiting: usize,
    members: HashMap<Arc<str>, Member<W>>,
    turn: u64,
}

/// The slots and the queue for them.
pub(super) struct FairQueue<W> {
    shares: Shares,
    /// Only groups that hold a slot or wait for one.
    groups: HashMap<Arc<str>, Group<W>>,
    counts: Counts,
    present: Present,
    /// A logical clock, which breaks ties in favour of whoever was served longest ago.
    turns: u64,
}

impl<W> FairQueue<W> {
    pub(super) fn new(shares: Shares) -> FairQueue<W> {
        FairQueue {
            shares,
            groups: HashMap::new(),
            counts: Counts::default(),
            present: Present::default(),
            turns: 0,
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes a slot if one is free for this tenant.
    pub(super) fn try_take(&mut self, tenant: &Tenant, now: Instant) -> bool {
        self.member(tenant);
        let taken = self.may_take(tenant.group(), tenant.name(), now);
        if taken {
            self.take(tenant);
        }
        self.forget_if_idle(tenant);
        taken
    }

    /// Queues for a slot; the ticket serves to leave the queue. If it is full, the newest entry of the group that has the
    /// most is evicted, unless this caller's group would have as many.
    pub(super) fn wait(&mut self, tenant: &Tenant, bytes: usize, who: W) -> Waits<W> {
        let mut displaced = Vec::new();
        let ticket =
            self.make_room(tenant, bytes, &mut displaced).map(|()| self.enqueue(tenant, bytes, who, false));
        Waits { ticket, displaced }
    }

    /// Queues at the front of its tenant's queue, ignoring the bounds: for a run that stepped aside.
    pub(super) fn wait_again(&mut self, tenant: &Tenant, who: W) -> Ticket {
        self.enqueue(tenant, 0, who, true)
    }

    /// Leaves the queue; does nothing if the slot was already granted.
    pub(super) fn give_up(&mut self, tenant: &Tenant, ticket: Ticket) {
        let Some(member) = self.groups.get(tenant.group()).and_then(|group| group.members.get(tenant.name()))
        else {
            return;
        };
        if let Some(at) = member.queue.iter().position(|waiter| waiter.ticket == ticket) {
            self.dequeue(tenant, at);
            self.forget_if_idle(tenant);
        }
    }

    /// Releases a slot. Call `next` afterwards.
    pub(super) fn release(&mut self, tenant: &Tenant, now: Instant) {
        self.present.seen(tenant.group(), now);
        if let Some(group) = self.groups.get_mut(tenant.group())
            && let Some(member) = group.members.get_mut(tenant.name())
            && member.held > 0
        {
            member.held -= 1;
            group.held -= 1;
            self.counts.held -= 1;
            self.forget_if_idle(tenant);
        }
    }

    /// Grants a free slot to the next in the queue. Call it until it returns `None`.
    pub(super) fn next(&mut self, now: Instant) -> Option<(Tenant, W)> {
        if self.counts.waiting == 0 || self.counts.held >= self.ceiling() {
            return None;
        }
        let tenant = self.next_tenant(now)?;
        let waiter = self.dequeue(&tenant, 0)?;
        self.take(&tenant);
        Some((tenant, waiter.who))
    }

    /// Empties the queue.
    pub(super) fn drain(&mut self) -> Vec<W> {
        self.counts.waiting = 0;
        self.counts.bytes = 0;
        let mut all = Vec::new();
        for group in self.groups.values_mut() {
            group.waiting = 0;
            for member in group.members.values_mut() {
                member.bytes = 0;
                all.extend(member.queue.drain(..).map(|waiter| waiter.who));
            }
            group.members.retain(|_, member| member.held > 0);
        }
        self.groups.retain(|_, group| group.held > 0);
        all
    }

    fn ceiling(&self) -> usize {
        self.shares.slots + self.shares.reserve
    }

    /// A group's share of the slots among the active groups.
    fn share(&self) -> usize {
        (self.shares.slots / self.groups.len().max(1)).max(1)
    }

    /// Whether a tenant may have one more slot now.
    fn may_take(&self, group_name: &Arc<str>, name: &Arc<str>, now: Instant) -> bool {
        let Some(group) = self.groups.get(group_name) else { return false };
        if group.held >= self.shares.in_company && self.has_company(group_name, now) {
            return false;
        }
        if self.counts.held < self.shares.slots {
            return true;
        }
        let Some(member) = group.members.get(name) else { return false };
        if self.counts.held >= self.ceiling() {
            return false;
        }
        let share = self.share();
        if group.held < share {
            return true;
        }
        // Half of the reserve is also shared between the tenants of one group.
        group.held < self.shares.slots + self.shares.reserve / 2
            && member.held < share.div_ceil(group.members.len())
    }

    /// Whether another group is active, or recently was.
    fn has_company(&self, group: &Arc<str>, now: Instant) -> bool {
        self.groups.keys().any(|other| other != group) || self.present.others(group, now)
    }

    /// The eligible group with the fewest slots, and in it the tenant with the fewest; ties go to whoever was served longest
    /// ago.
    fn next_tenant(&self, now: Instant) -> Option<Tenant> {
        let mut best: Option<(_, Tenant)> = None;
        for (group_name, group) in self.groups.iter().filter(|(_, group)| group.waiting > 0) {
            let waiting = group.members.iter().filter(|(_, member)| !member.queue.is_empty());
            let next = waiting.min_by_key(|(_, member)| (member.held, member.turn));
            let Some((name, member)) = next else { continue };
            let rank = (group.held, group.turn, member.turn);
            if best.as_ref().is_none_or(|(other, _)| rank < *other) && self.may_take(group_name, name, now) {
                best = Some((rank, Tenant::new(group_name.clone(), name.clone())));
            }
        }
        best.map(|(_, tenant)| tenant)
    }

    /// Checks the bounds, evicting others into `displaced` if the global ones are reached.
    fn make_room(
        &mut self,
        tenant: &Tenant,
        bytes: usize,
        displaced: &mut Vec<(W, Full)>,
    ) -> Result<(), Full> {
        let shares = &self.shares;
        let (queue, queue_bytes) = (shares.queue, shares.queue_bytes);
        let (waiting, held_bytes) = self
            .groups
            .get(tenant.group())
            .and_then(|group| group.members.get(tenant.name()))
            .map_or((0, 0), |member| (member.queue.len(), member.bytes));
        if waiting >= shares.queue_per_tenant {
            return Err(Full { of: FullOf::WaitingOfTenant, most: shares.queue_per_tenant });
        }
        if held_bytes.saturating_add(bytes) > shares.queue_bytes_per_tenant {
            return Err(Full { of: FullOf::BytesOfTenant, most: shares.queue_bytes_per_tenant });
        }
        loop {
            let full = if self.counts.waiting >= queue {
                Full { of: FullOf::Waiting, most: queue }
            } else if self.counts.bytes.saturating_add(bytes) > queue_bytes {
                Full { of: FullOf::Bytes, most: queue_bytes }
            } else {
                return Ok(());
            };
            displaced.push((self.displace_for(tenant, bytes, full).ok_or(full)?, full));
        }
    }

    /// Evicts the newest entry of the group with the longest queue, if longer than this caller's group would have.
    fn displace_for(&mut self, tenant: &Tenant, bytes: usize, full: Full) -> Option<W> {
        let by_bytes = full.of == FullOf::Bytes;
        let weight = |member: &Member<W>| if by_bytes { member.bytes } else { member.queue.len() };
        let of_group = |group: &Group<W>| group.members.values().map(weight).sum::<usize>();
        let own = self.groups.get(tenant.group()).map_or(0, of_group);
        let (name, group) = self.groups.iter().max_by_key(|(_, group)| of_group(group))?;
        if of_group(group) <= own + if by_bytes { bytes } else { 1 } {
            return None;
        }
        let (member, most) = group.members.iter().max_by_key(|(_, member)| weight(member))?;
        let (victim, last) = (Tenant::new(name.clone(), member.clone()), most.queue.len().checked_sub(1)?);
        let waiter = self.dequeue(&victim, last)?;
        self.forget_if_idle(&victim);
        Some(waiter.who)
    }

    fn enqueue(&mut self, tenant: &Tenant, bytes: usize, who: W, first: bool) -> Ticket {
        self.turns += 1;
        let ticket = Ticket(self.turns);
        let waiter = Waiter { ticket, bytes, who };
        let member = self.member(tenant);
        member.bytes += bytes;
        if first {
            member.queue.push_front(waiter);
        } else {
            member.queue.push_back(waiter);
        }
        if let Some(group) = self.groups.get_mut(tenant.group()) {
            group.waiting += 1;
        }
        self.counts.waiting += 1;
        self.counts.bytes += bytes;
        ticket
    }

    fn dequeue(&mut self, tenant: &Tenant, at: usize) -> Option<Waiter<W>> {
        let group = self.groups.get_mut(tenant.group())?;
        let member = group.members.get_mut(tenant.name())?;
        let waiter = member.queue.remove(at)?;
        member.bytes -= waiter.bytes;
        group.waiting -= 1;
        self.counts.waiting -= 1;
        self.counts.bytes -= waiter.bytes;
        Some(waiter)
    }

    fn take(&mut self, tenant: &Tenant) {
        self.turns += 1;
        let turn = self.turns;
        let member = self.member(tenant);
        member.held += 1;
        member.turn = turn;
        if let Some(group) = self.groups.get_mut(tenant.group()) {
            group.held += 1;
            group.turn = turn;
        }
        self.counts.held += 1;
    }

    /// The tenant's entry; a new one is last in turn.
    fn member(&mut self, tenant: &Tenant) -> &mut Member<W> {
        let turn = self.turns;
        let group = self.groups.entry(tenant.group().clone()).or_insert_with(|| Group {
            held: 0,
            waiting: 0,
            members: HashMap::new(),
            turn,
        });
        group.members.entry(tenant.name().clone()).or_insert_with(|| Member {
            held: 0,
            bytes: 0,
            queue: VecDeque::new(),
            turn,
        })
    }

    fn forget_if_idle(&mut self, tenant: &Tenant) {
        if let Some(group) = self.groups.get_mut(tenant.group()) {
            if group.members.get(tenant.name()).is_some_and(|m| m.held == 0 && m.queue.is_empty()) {
                group.members.remove(tenant.name());
            }
            if group.members.is_empty() {
                self.groups.remove(tenant.group());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::{FairQueue, Full, FullOf, Shares, Tenant, Ticket};

    fn shares(slots: usize, reserve: usize) -> Shares {
        Shares {
            slots,
            reserve,
            in_company: usize::MAX,
            queue: 100,
            queue_per_tenant: 100,
            queue_bytes: 1_000,
            queue_bytes_per_tenant: 1_000,
        }
    }

    fn wait(queue: &mut FairQueue<u32>, tenant: &str, who: u32) -> Ticket {
        queue.wait(&tenant.into(), 0, who).ticket.unwrap()
    }

    /// Who is served, in order, when each gives its slot back at once.
    fn served(queue: &mut FairQueue<u32>, first: &str) -> Vec<u32> {
        let mut order = Vec::new();
        let mut held = vec![Tenant::from(first)];
        while let Some(tenant) = held.pop() {
            queue.release(&tenant, Instant::now());
            while let Some((next, who)) = queue.next(Instant::now()) {
                order.push(who);
                held.push(next);
            }
        }
        order
    }

    #[test]
    fn a_tenant_with_many_runs_does_not_hold_up_one_with_few() {
        let mut queue = FairQueue::new(shares(1, 0));
        assert!(queue.try_take(&"busy".into(), Instant::now()));
        for who in 0..10 {
            wait(&mut queue, "busy", who);
        }
        wait(&mut queue, "quiet", 100);
        wait(&mut queue, "quiet", 101);
        assert_eq!(served(&mut queue, "busy"), [0, 100, 1, 101, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn whoever_holds_less_than_its_share_does_not_wait() {
        let mut queue = FairQueue::<u32>::new(shares(4, 4));
        let takes = |queue: &mut FairQueue<u32>, tenant: &str| queue.try_take(&tenant.into(), Instant::now());
        assert_eq!((0..6).filter(|_| takes(&mut queue, "busy")).count(), 4, "one alone has the slots");
        assert_eq!((0..6).filter(|_| takes(&mut queue, "quiet")).count(), 2, "the other its half");
        assert!(!takes(&mut queue, "busy"));
        assert!(takes(&mut queue, "third"));
    }

    #[test]
    fn the_tenants_of_a_group_share_what_the_group_has() {
        let mut queue = FairQueue::<u32>::new(shares(4, 8));
        let of = |name: &str| Tenant::new("org", name);
        assert_eq!((0..9).filter(|_| queue.try_take(&of("busy"), Instant::now())).count(), 4);
        assert_eq!((0..9).filter(|_| queue.try_take(&of("quiet"), Instant::now())).count(), 2);
        let others = (0..50).filter(|n| queue.try_take(&of(&n.to_string()), Instant::now())).count();
        assert_eq!(others, 2, "half of the reserve is for other groups");
        assert!(queue.try_take(&"another".into(), Instant::now()));
    }

    #[test]
    fn a_full_queue_says_what_is_full() {
        let limits = Shares { queue: 3, queue_per_tenant: 2, queue_bytes_per_tenant: 10, ..shares(1, 0) };
        let mut queue = FairQueue::new(limits);
        assert!(queue.try_take(&"a".into(), Instant::now()));
        wait(&mut queue, "a", 1);
        let full = queue.wait(&"a".into(), 11, 2).ticket;
        assert_eq!(full, Err(Full { of: FullOf::BytesOfTenant, most: 10 }));
        wait(&mut queue, "a", 2);
        let full = queue.wait(&"a".into(), 0, 3).ticket;
        assert_eq!(full, Err(Full { of: FullOf::WaitingOfTenant, most: 2 }));
        wait(&mut queue, "b", 4);
        let waits = queue.wait(&"c".into(), 0, 5);
        assert!(waits.ticket.is_ok(), "who has the most waiting makes room");
        let full = Full { of: FullOf::Waiting, most: 3 };
        assert_eq!(waits.displaced, [(2, full)]);
        assert_eq!(queue.wait(&"d".into(), 0, 6).ticket, Err(full), "all have as many");
    }

    #[test]
    fn who_gives_up_makes_room_and_is_not_served() {
        let mut queue = FairQueue::new(Shares { queue: 2, ..shares(1, 0) });
        assert!(queue.try_take(&"a".into(), Instant::now()));
        let ticket = wait(&mut queue, "a", 1);
        wait(&mut queue, "a", 2);
        queue.give_up(&"a".into(), ticket);
        queue.give_up(&"a".into(), ticket);
        wait(&mut queue, "a", 3);
        assert_eq!(served(&mut queue, "a"), [2, 3]);
        assert!(queue.try_take(&"a".into(), Instant::now()), "the slot is free again");
    }

    #[test]
    fn who_comes_back_is_before_the_others_of_its_tenant_whatever_the_bounds() {
        let mut queue = FairQueue::new(Shares { queue: 1, ..shares(1, 0) });
        assert!(queue.try_take(&"a".into(), Instant::now()));
        wait(&mut queue, "a", 1);
        queue.wait_again(&"a".into(), 2);
        assert_eq!(served(&mut queue, "a"), [2, 1]);
    }

    #[test]
    fn who_is_alone_has_all_slots_and_in_company_only_some() {
        let mut queue = FairQueue::new(Shares { in_company: 2, ..shares(4, 4) });
        let (busy, quiet, start) = ("busy".into(), "quiet".into(), Instant::now());
        assert_eq!((0..6).filter(|_| queue.try_take(&busy, start)).count(), 4);
        wait(&mut queue, "busy", 1);
        assert!(queue.try_take(&quiet, start), "whatever others hold");
        queue.release(&quiet, start);
        for _ in 0..2 {
            queue.release(&busy, start);
            assert_eq!(queue.next(start), None, "somebody else was here");
        }
        queue.release(&busy, start);
        assert_eq!(queue.next(start), Some((busy.clone(), 1)), "there are always some");
        assert!(!queue.try_take(&busy, start));
        let later = start + Duration::from_secs(1);
        assert_eq!((0..6).filter(|_| queue.try_take(&busy, later)).count(), 2, "alone again");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Arrive { group: u8, member: u8, bytes: usize },
        Release(usize),
        ReleaseOldest,
        GiveUp(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..4_u8, 0..3_u8, 0..60_usize)
                .prop_map(|(group, member, bytes)| Step::Arrive { group, member, bytes }),
            2 => any::<usize>().prop_map(Step::Release),
            1 => any::<usize>().prop_map(Step::GiveUp),
        ]
    }

    /// A queue, and beside it who holds and who waits.
    struct Model {
        queue: FairQueue<u32>,
        shares: Shares,
        held: Vec<Tenant>,
        waiting: Vec<(Tenant, usize, u32, Ticket)>,
        arrived: u32,
    }

    impl Model {
        fn new(shares: Shares) -> Model {
            let queue = FairQueue::new(shares.clone());
            Model { queue, shares, held: Vec::new(), waiting: Vec::new(), arrived: 0 }
        }

        fn step(&mut self, step: &Step) {
            match step {
                Step::Arrive { group, member, bytes } => {
                    let tenant = Tenant::new(format!("g{group}"), format!("m{member}"));
                    self.arrived += 1;
                    if self.queue.try_take(&tenant, Instant::now()) {
                        self.held.push(tenant);
                    } else {
                        let waits = self.queue.wait(&tenant, *bytes, self.arrived);
                        self.waiting
                            .retain(|(_, _, who, _)| !waits.displaced.iter().any(|(gone, _)| gone == who));
                        if let Ok(ticket) = waits.ticket {
                            self.waiting.push((tenant, *bytes, self.arrived, ticket));
                        }
                    }
                }
                Step::Release(at) if !self.held.is_empty() => {
                    let tenant = self.held.remove(at % self.held.len());
                    self.queue.release(&tenant, Instant::now());
                }
                Step::ReleaseOldest if !self.held.is_empty() => {
                    let tenant = self.held.remove(0);
                    self.queue.release(&tenant, Instant::now());
                }
                Step::GiveUp(at) if !self.waiting.is_empty() => {
                    let (tenant, _, _, ticket) = self.waiting.swap_remove(at % self.waiting.len());
                    self.queue.give_up(&tenant, ticket);
                }
                _ => {}
            }
            while let Some((tenant, who)) = self.queue.next(Instant::now()) {
                let at = self.waiting.iter().position(|(_, _, waits, _)| *waits == who).expect("it waits");
                assert_eq!(self.waiting.remove(at).0, tenant);
                self.held.push(tenant);
            }
        }

        fn held_by(&self, group: &str) -> usize {
            self.held.iter().filter(|tenant| &**tenant.group() == group).count()
        }

        fn active_groups(&self) -> Vec<String> {
            let waiting = self.waiting.iter().map(|(tenant, ..)| tenant);
            let mut groups: Vec<String> =
                self.held.iter().chain(waiting).map(|tenant| tenant.group().to_string()).collect();
            groups.sort();
            groups.dedup();
            groups
        }
    }

    proptest! {
        #[test]
        fn shares_and_bounds_hold_at_every_step(
            slots in 1..6_usize,
            reserve in 0..8_usize,
            steps in prop::collection::vec(step(), 1..120),
        ) {
            let shares = Shares {
                queue: 12, queue_per_tenant: 5, queue_bytes: 300, queue_bytes_per_tenant: 120, ..shares(slots, reserve)
            };
            let mut model = Model::new(shares);
            for step in &steps {
                model.step(step);
                let (held, waiting) = (model.held.len(), model.waiting.len());
                let bytes: usize = model.waiting.iter().map(|(_, bytes, ..)| bytes).sum();
                prop_assert_eq!(model.queue.counts(), super::Counts { held, waiting, bytes });
                prop_assert!(held <= slots + reserve);
                prop_assert!(waiting <= model.shares.queue && bytes <= model.shares.queue_bytes);
                prop_assert!(waiting == 0 || held >= slots, "a slot is free while somebody waits");
                let groups = model.active_groups();
                let share = (slots / groups.len().max(1)).max(1);
                for (tenant, ..) in &model.waiting {
                    let own = model.waiting.iter().filter(|(other, ..)| other == tenant);
                    prop_assert!(own.clone().count() <= model.shares.queue_per_tenant);
                    prop_assert!(
                        own.map(|(_, bytes, ..)| bytes).sum::<usize>() <= model.shares.queue_bytes_per_tenant
                    );
                    prop_assert!(
                        model.held_by(tenant.group()) >= share || held == slots + reserve,
                        "{tenant} has less than its share and waits, though there is something in reserve"
                    );
                }
                prop_assert_eq!(model.queue.groups.len(), groups.len(), "nobody is remembered for nothing");
            }
        }

        #[test]
        fn one_group_alone_has_the_slots_and_half_of_the_reserve_at_most(
            slots in 1..6_usize,
            reserve in 0..8_usize,
            members in prop::collection::vec(0..3_u8, 1..60),
        ) {
            let mut model = Model::new(shares(slots, reserve));
            for member in &members {
                model.step(&Step::Arrive { group: 0, member: *member, bytes: 0 });
            }
            prop_assert!(model.held.len() <= slots + reserve / 2);
            if members.iter().all(|member| *member == members[0]) {
                prop_assert_eq!(model.held.len(), members.len().min(slots));
            }
        }

        #[test]
        fn everyone_is_served(
            slots in 1..4_usize,
            reserve in 0..4_usize,
            in_company in 1..9_usize,
            steps in prop::collection::vec(step(), 1..80),
        ) {
            let mut model = Model::new(Shares { in_company, ..shares(slots, reserve) });
            for step in &steps {
                model.step(step);
            }
            // An endless stream of others doesn't starve those who waited before.
            let waited: Vec<u32> = model.waiting.iter().map(|(_, _, who, _)| *who).collect();
            for turn in (0..3).cycle().take(300) {
                model.step(&Step::Arrive { group: 9, member: turn, bytes: 0 });
                model.step(&Step::ReleaseOldest);
            }
            for who in waited {
                prop_assert!(model.waiting.iter().all(|(_, _, waits, _)| *waits != who));
            }
        }
    }
}
