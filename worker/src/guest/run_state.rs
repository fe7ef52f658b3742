//! The state of one run: usage so far, messages for the parent, and whether it must stop.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use pml_worker::{
    CallKind, LimitKind, Limits, LogLevel, Unawaited,
    protocol::{FromWorker, LONGEST_NAME, append_frame},
};
use rustix::time::{ClockId, clock_gettime};

use super::{
    connection::{ParentGone, send},
    watchdog::Watchdog,
};

/// Bytes buffered before messages are sent while the code computes.
const SEND_AT: usize = 64 * 1024;

/// Unhandled rejections reported in the logs, at most.
const UNHANDLED_TOLD: usize = 10;

/// Shared by the engine's callbacks; everything is a cell because they all hold it.
pub(crate) struct RunState {
    pub(crate) limits: RefCell<Limits>,
    deadline: Cell<Option<Instant>>,
    cpu_at_start: Cell<Duration>,
    stop: Cell<Option<LimitKind>>,
    outgoing: RefCell<Vec<u8>>,
    parent_gone: Cell<bool>,
    last_node: RefCell<Option<String>>,
    events: Cell<u64>,
    dropped_events: Cell<u64>,
    calls: Cell<u32>,
    in_flight: Cell<u64>,
    output: Cell<u64>,
    logged: Cell<u64>,
    timers: RefCell<Timers>,
    unhandled: RefCell<Vec<Rejection>>,
    /// Nothing that the code does counts any more.
    over: Cell<bool>,
}

/// A rejected promise without a handler so far.
struct Rejection {
    promise: usize,
    message: String,
    /// The call whose failure it is.
    call: Option<Unawaited>,
}

#[derive(Default)]
struct Timers {
    due: BTreeSet<(Instant, u32)>,
    by_id: HashMap<u32, Instant>,
}

pub(crate) fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The start of `text`, at most `bytes` long.
pub(crate) fn clipped(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

impl RunState {
    pub(crate) fn new() -> RunState {
        RunState {
            limits: RefCell::default(),
            deadline: Cell::default(),
            cpu_at_start: Cell::default(),
            stop: Cell::default(),
            outgoing: RefCell::default(),
            parent_gone: Cell::default(),
            last_node: RefCell::default(),
            events: Cell::default(),
            dropped_events: Cell::default(),
            calls: Cell::default(),
            in_flight: Cell::default(),
            output: Cell::default(),
            logged: Cell::default(),
            timers: RefCell::default(),
            unhandled: RefCell::default(),
            over: Cell::default(),
        }
    }

    pub(crate) fn start(&self, limits: Limits) {
        self.deadline.set(Some(Instant::now() + limits.wall_time));
        self.cpu_at_start.set(cpu_time());
        *self.limits.borrow_mut() = limits;
    }

    pub(crate) fn cpu_used(&self) -> Duration {
        cpu_time().saturating_sub(self.cpu_at_start.get())
    }

    /// The deadline; `None` while the clock is paused.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.get()
    }

    pub(crate) fn pause(&self) {
        self.deadline.set(None);
        Watchdog::pause();
    }

    pub(crate) fn resume(&self, left: Duration) {
        self.deadline.set(Some(Instant::now() + left));
        Watchdog::resume(left);
    }

    // --- stopping ----------------------------------------------------------------------------------------------------

    pub(crate) fn stop(&self, limit: LimitKind) {
        if self.stop.get().is_none() {
            self.stop.set(Some(limit));
        }
    }

    pub(crate) fn stopped(&self) -> Option<LimitKind> {
        self.stop.get()
    }

    /// Interrupt handler, called by the engine every few thousand steps; true stops it.
    pub(crate) fn interrupt(&self) -> bool {
        if self.stop.get().is_none() {
            if self.deadline().is_some_and(|deadline| Instant::now() >= deadline) {
                self.stop(LimitKind::WallTime);
            } else if self.cpu_used() >= self.limits.borrow().cpu_time {
                self.stop(LimitKind::CpuTime);
            }
        }
        self.stop.get().is_some() || self.parent_gone.get()
    }

    /// Lets the code run for `time` more without leaving a trace.
    pub(crate) fn end(&self, time: Duration) {
        self.over.set(true);
        let end = Instant::now() + time;
        self.deadline.set(Some(self.deadline.get().map_or(end, |deadline| deadline.min(end))));
    }

    /// Forgets a limit that was reached after the end.
    pub(crate) fn ended(&self) {
        self.stop.set(None);
    }

    // --- messages to the parent --------------------------------------------------------------------------------------

    pub(crate) fn tell(&self, message: &FromWorker<'_>) {
        let mut outgoing = self.outgoing.borrow_mut();
        // Only a bug makes a message that can't be encoded; the parent then reports the missing one.
        if append_frame(&mut outgoing, message).is_err() {
            self.parent_gone.set(true);
        }
        if outgoing.len() >= SEND_AT {
            drop(outgoing);
            self.flush();
        }
    }

    pub(crate) fn flush(&self) {
        let mut outgoing = self.outgoing.borrow_mut();
        if !outgoing.is_empty() {
            if send(&outgoing).is_err() {
                self.parent_gone.set(true);
            }
            outgoing.clear();
            outgoing.shrink_to(SEND_AT);
        }
    }

    pub(crate) fn check_parent(&self) -> Result<(), ParentGone> {
        if self.parent_gone.get() { Err(ParentGone) } else { Ok(()) }
    }

    /// Whether the run may send `bytes` more; if not, it ends.
    pub(crate) fn take_output(&self, bytes: usize) -> bool {
        let total = self.output.get().saturating_add(bytes as u64);
        self.output.set(total);
        let fits = total <= self.limits.borrow().output;
        if !fits {
            self.stop(LimitKind::Output);
        }
        fits
    }

    pub(crate) fn output_left(&self) -> usize {
        let left = self.limits.borrow().output.saturating_sub(self.output.get());
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    // --- calls, trace and logs -----------------------------------------------------------------------------------------

    pub(crate) fn visit(&self, node: &str) {
        self.record(node, |node| FromWorker::Visit { node });
    }

    pub(crate) fn decision(&self, node: &str, outcome: &str) {
        let outcome = clipped(outcome, LONGEST_NAME);
        self.record(node, |node| FromWorker::Decision { node, outcome });
    }

    fn record<'a>(&self, node: &'a str, message: impl FnOnce(&'a str) -> FromWorker<'a>) {
        if self.over.get() {
            return;
        }
        let node = clipped(node, LONGEST_NAME);
        self.remember_node(node);
        if self.events.get() < self.limits.borrow().trace_events {
            self.events.set(self.events.get() + 1);
            self.tell(&message(node));
        } else {
            self.dropped_events.set(self.dropped_events.get() + 1);
        }
    }

    fn remember_node(&self, node: &str) {
        let mut last = self.last_node.borrow_mut();
        let last = last.get_or_insert_default();
        last.clear();
        last.push_str(node);
    }

    pub(crate) fn last_node(&self) -> Option<String> {
        self.last_node.borrow().clone()
    }

    pub(crate) fn dropped_events(&self) -> u64 {
        self.dropped_events.get()
    }

    /// Whether one more call is within the limits; if not, the run ends.
    pub(crate) fn take_call(&self) -> bool {
        let limits = self.limits.borrow();
        let exceeded = if u64::from(self.calls.get()) >= limits.calls {
            Some(LimitKind::Calls)
        } else if self.in_flight.get() >= limits.calls_in_flight {
            Some(LimitKind::CallsInFlight)
        } else {
            None
        };
        drop(limits);
        if let Some(limit) = exceeded {
            self.stop(limit);
        }
        exceeded.is_none()
    }

    pub(crate) fn call(&self, node: Option<&str>, kind: CallKind, target: &str, args: &str) -> u32 {
        if let Some(node) = node {
            self.remember_node(node);
        }
        let id = self.calls.get();
        self.calls.set(id + 1);
        self.in_flight.set(self.in_flight.get() + 1);
        self.tell(&FromWorker::Call { id, node, kind, target, args });
        id
    }

    pub(crate) fn answered(&self) {
        self.in_flight.set(self.in_flight.get().saturating_sub(1));
    }

    pub(crate) fn waits_for_calls(&self) -> bool {
        self.in_flight.get() > 0
    }

    pub(crate) fn log(&self, level: LogLevel, text: &str) {
        if self.over.get() {
            return;
        }
        let total = self.logged.get().saturating_add(text.len() as u64);
        if total > self.limits.borrow().logs {
            self.stop(LimitKind::Logs);
        } else {
            self.logged.set(total);
            self.tell(&FromWorker::Log { level, text });
        }
    }

    // --- unhandled rejections ------------------------------------------------------------------------------------------

    pub(crate) fn rejected(&self, promise: usize, message: String, call: Option<Unawaited>) {
        let mut unhandled = self.unhandled.borrow_mut();
        if unhandled.len() < UNHANDLED_TOLD && !self.over.get() {
            unhandled.push(Rejection { promise, message, call });
        }
    }

    pub(crate) fn rejection_handled(&self, promise: usize) {
        self.unhandled.borrow_mut().retain(|unhandled| unhandled.promise != promise);
    }

    /// Logs them as far as there is room, since a warning must not end the run. Returns the failed calls among them.
    pub(crate) fn log_unhandled(&self, except: usize) -> Vec<Unawaited> {
        let mut calls = Vec::new();
        for Rejection { promise, message, call } in self.unhandled.take() {
            if promise == except {
                continue;
            }
            calls.extend(call);
            let text = format!("A promise was rejected and nothing awaited it: {message}");
            if self.logged.get() + text.len() as u64 <= self.limits.borrow().logs {
                self.log(LogLevel::Warn, &text);
            }
        }
        calls
    }

    // --- timers --------------------------------------------------------------------------------------------------------

    pub(crate) fn start_timer(&self, id: u32, wait: Duration) {
        let mut timers = self.timers.borrow_mut();
        let due = Instant::now() + wait;
        timers.due.insert((due, id));
        timers.by_id.insert(id, due);
    }

    pub(crate) fn stop_timer(&self, id: u32) {
        let mut timers = self.timers.borrow_mut();
        if let Some(due) = timers.by_id.remove(&id) {
            timers.due.remove(&(due, id));
        }
    }

    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timers.borrow().due.first().map(|(due, _)| *due)
    }

    /// Takes all timers, in the order in which they are due.
    pub(crate) fn pending_timers(&self) -> Vec<u32> {
        let timers = self.timers.take();
        timers.due.into_iter().map(|(_, id)| id).collect()
    }

    /// Takes one timer that is due.
    pub(crate) fn due_timer(&self) -> Option<u32> {
        let mut timers = self.timers.borrow_mut();
        let (due, id) = *timers.due.first()?;
        if due > Instant::now() {
            return None;
        }
        timers.due.pop_first();
        timers.by_id.remove(&id);
        Some(id)
    }
}
