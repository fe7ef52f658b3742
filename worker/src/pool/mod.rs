//! The pool: processes that are ready before a run arrives, slots that tenants share fairly, and nothing left behind.

mod config;
mod conversation;
mod process;
mod queue;

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::Duration,
};

use tokio::sync::{Notify, oneshot};

pub use self::{
    config::{Layer, PoolConfig, Run},
    process::StartError,
};
use self::{
    conversation::converse,
    process::Process,
    queue::{FairQueue, Full},
};
use crate::{CallHandler, Failure, LimitKind, Outcome, Trace, Usage};

/// In how many processes a run may try to begin.
const BEGINNINGS: usize = 5;

/// A pool of confined processes. Clones share it; when the last is dropped, every process is killed.
#[derive(Clone)]
pub struct Pool(Arc<Handle>);

/// Its drop is the end of the pool; the threads that keep the processes hold only `Shared`.
struct Handle(Arc<Shared>);

struct Shared {
    config: PoolConfig,
    /// What the first process said; the kernel is the same for all.
    missing: OnceLock<String>,
    state: Mutex<State>,
    /// Wakes threads that wait before they try again to start a process.
    closing: Condvar,
    /// Wakes `close` when the last process is gone.
    emptied: Notify,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// Used longest ago first: that one has thrown away its last engine by now.
    idle: VecDeque<Process>,
    /// Processes that are starting, idle or busy.
    alive: usize,
    starting: usize,
    /// Starts that failed since the last one that worked.
    failures: u32,
    wanting_process: VecDeque<oneshot::Sender<Result<Process, StartError>>>,
    levels: Vec<FairQueue<oneshot::Sender<Slot>>>,
}

impl Pool {
    /// Starts the processes and waits until the first is ready, so that a kernel or a path that won't do is told here.
    pub async fn start(config: PoolConfig) -> Result<Pool, StartError> {
        if config.slots == 0 || config.runs_per_process == 0 {
            return Err(StartError::Config("slots and runs_per_process must be at least 1".into()));
        }
        let levels = (0..=config.deepest)
            .map(|_| FairQueue::new(config.slots, config.queue, config.queue_per_tenant))
            .collect();
        let shared = Arc::new(Shared {
            config,
            missing: OnceLock::new(),
            state: Mutex::new(State { levels, ..State::default() }),
            closing: Condvar::new(),
            emptied: Notify::new(),
        });
        let pool = Pool(Arc::new(Handle(shared.clone())));
        shared.keep_ready();
        let first = shared.take_process().await?;
        let _ = shared.missing.set(first.missing.clone());
        shared.give_back(first);
        Ok(pool)
    }

    /// Runs the code, answering its calls with `handler`. Drop the future to cancel: the process is killed at once.
    pub async fn run<H: CallHandler>(&self, run: Run, handler: &H) -> Outcome {
        let shared = &self.0.0;
        if let Err(failure) = shared.check(&run) {
            return not_run(failure);
        }
        let _slot = match shared.take_slot(&run.tenant, run.depth).await {
            Ok(slot) => slot,
            Err(failure) => return not_run(failure),
        };
        for _ in 0..BEGINNINGS {
            // Taken after the slot, so that the process is back before the slot is free.
            let mut lease = match shared.take_process().await {
                Ok(process) => Lease { process: Some(process), shared },
                Err(StartError::Closed) => return not_run(Failure::Closed),
                Err(error) => return not_run(Failure::Unavailable { why: error.to_string() }),
            };
            let Some(process) = lease.process.as_mut() else { break };
            if let Some((outcome, sound)) = converse(process, &run, handler).await {
                if sound {
                    lease.give_back();
                }
                return outcome;
            }
        }
        not_run(Failure::Unavailable { why: "every process ended before the run could begin in it".into() })
    }

    /// Takes no more runs, lets those that run finish, and waits until every process is gone and reaped.
    pub async fn close(&self) {
        let shared = &self.0.0;
        shared.shut();
        loop {
            let emptied = shared.emptied.notified();
            if shared.lock().alive == 0 {
                return;
            }
            emptied.await;
        }
    }

    /// The layers of the confinement that this kernel lacks, though the configuration allows it; empty if none.
    #[must_use]
    pub fn missing_layers(&self) -> &str {
        self.0.0.missing.get().map_or("", String::as_str)
    }

    /// The ids of the processes that are idle now, for looking at them from outside.
    #[must_use]
    pub fn idle_pids(&self) -> Vec<u32> {
        self.0.0.lock().idle.iter().map(|process| process.pid).collect()
    }

    /// How many processes there are, starting and busy ones included.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.0.0.lock().alive
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.shut();
    }
}

fn not_run(failure: Failure) -> Outcome {
    Outcome { result: Err(failure), trace: Trace::default(), logs: Vec::new(), usage: Usage::default() }
}

/// A slot that a run holds; gives itself on when dropped.
struct Slot {
    shared: Arc<Shared>,
    tenant: String,
    depth: usize,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let next = {
            let mut state = self.shared.lock();
            state.levels.get_mut(self.depth).and_then(|level| level.release(&self.tenant))
        };
        if let Some((tenant, waiter)) = next {
            // If the waiter is gone, the slot comes back here and is given on once more.
            let _ = waiter.send(Slot { shared: self.shared.clone(), tenant, depth: self.depth });
        }
    }
}

/// Gives up the place in the queue if the future that waits is dropped.
struct Waiting<'s> {
    shared: &'s Shared,
    tenant: &'s str,
    depth: usize,
    ticket: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(level) = self.shared.lock().levels.get_mut(self.depth) {
            level.give_up(self.tenant, self.ticket);
        }
    }
}

/// A process in use; killed when dropped, unless given back.
struct Lease<'s> {
    process: Option<Process>,
    shared: &'s Arc<Shared>,
}

impl Lease<'_> {
    fn give_back(mut self) {
        if let Some(mut process) = self.process.take() {
            process.runs += 1;
            if process.runs < self.shared.config.runs_per_process {
                self.shared.give_back(process);
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock, and the state is whole at every step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, run: &Run) -> Result<(), Failure> {
        let config = &self.config;
        if run.depth > config.deepest {
            let why =
                format!("it is nested {} deep, and PoolConfig::deepest is {}", run.depth, config.deepest);
            return Err(Failure::Invalid { why });
        }
        run.limits.check(config.memory_ceiling).map_err(|why| Failure::Invalid { why })?;
        if (run.code.len() + run.args.get().len()) as u64 > run.limits.memory {
            return Err(Failure::limit(LimitKind::Memory, &run.limits, None));
        }
        Ok(())
    }

    async fn take_slot(self: &Arc<Self>, tenant: &str, depth: u32) -> Result<Slot, Failure> {
        let depth = depth as usize;
        let (sender, receiver) = oneshot::channel();
        let _waiting = {
            let mut state = self.lock();
            if state.closed {
                return Err(Failure::Closed);
            }
            let Some(level) = state.levels.get_mut(depth) else { return Err(Failure::Closed) };
            if level.try_take(tenant) {
                return Ok(Slot { shared: self.clone(), tenant: tenant.to_owned(), depth });
            }
            let full = |Full { waiting, setting }| Failure::QueueFull { waiting, setting };
            let ticket = level.wait(tenant, sender).map_err(full)?;
            Waiting { shared: self, tenant, depth, ticket }
        };
        receiver.await.map_err(|_| Failure::Closed)
    }

    async fn take_process(self: &Arc<Self>) -> Result<Process, StartError> {
        let receiver = {
            let mut state = self.lock();
            if state.closed {
                return Err(StartError::Closed);
            }
            while let Some(process) = state.idle.pop_front() {
                if !process.ended() {
                    return Ok(process);
                }
            }
            let (sender, receiver) = oneshot::channel();
            state.wanting_process.push_back(sender);
            receiver
        };
        self.keep_ready();
        receiver.await.map_err(|_| StartError::Closed)?
    }

    /// Hands a process to who waits for one, or keeps it. More than the pool keeps ready are let go.
    fn give_back(&self, process: Process) {
        let mut process = process;
        loop {
            let mut state = self.lock();
            if state.closed {
                return;
            }
            let Some(waiter) = state.wanting_process.pop_front() else {
                if state.idle.len() < self.config.slots {
                    state.idle.push_back(process);
                }
                return;
            };
            drop(state);
            match waiter.send(Ok(process)) {
                Ok(()) | Err(Err(_)) => return,
                Err(Ok(unwanted)) => process = unwanted,
            }
        }
    }

    /// Starts as many processes as are wanted and not there yet.
    fn keep_ready(self: &Arc<Self>) {
        while self.claim_start() {
            let shared = self.clone();
            let keeper = thread::Builder::new().name("pml-worker-keeper".into()).stack_size(256 * 1024);
            if let Err(error) = keeper.spawn(move || shared.keep_process()) {
                let mut state = self.lock();
                state.alive -= 1;
                state.starting -= 1;
                let error = StartError::NotReady(format!("no thread can be started: {error}"));
                for waiter in state.wanting_process.drain(..) {
                    let _ = waiter.send(Err(error.clone()));
                }
                return;
            }
        }
    }

    /// Counts one more process as alive if one more should be.
    fn claim_start(&self) -> bool {
        let mut state = self.lock();
        state.wanting_process.retain(|waiter| !waiter.is_closed());
        // Every slot of every level may be in use at once.
        let most = self.config.slots * (self.config.deepest as usize + 1);
        let short = state.starting < state.wanting_process.len() && state.alive < most;
        let more = !state.closed && (short || state.alive < self.config.slots);
        if more {
            state.alive += 1;
            state.starting += 1;
        }
        more
    }

    /// Starts one process after another, each when the one before has ended, as long as the pool wants one.
    fn keep_process(self: Arc<Self>) {
        loop {
            let started = Process::start(&self.config);
            self.lock().starting -= 1;
            match started {
                Ok((process, keeper)) => {
                    self.lock().failures = 0;
                    self.give_back(process);
                    keeper.wait();
                }
                Err(error) => self.start_failed(&error),
            }
            self.lock().alive -= 1;
            if !self.claim_start() {
                break;
            }
        }
        if self.lock().alive == 0 {
            self.emptied.notify_waiters();
        }
    }

    /// Tells those who wait, then waits itself: longer after each failure in a row.
    fn start_failed(&self, error: &StartError) {
        // With the pauses between them this is more than a second of trying.
        const TOLERATED: u32 = 6;
        let mut state = self.lock();
        state.failures += 1;
        let hopeless = matches!(error, StartError::Program { .. } | StartError::Refused(_));
        if hopeless || state.failures >= TOLERATED {
            for waiter in state.wanting_process.drain(..) {
                let _ = waiter.send(Err(error.clone()));
            }
        }
        let pause = back_off(state.failures);
        drop(self.closing.wait_timeout_while(state, pause, |state| !state.closed));
    }

    fn shut(&self) {
        let mut state = self.lock();
        state.closed = true;
        let waiting: Vec<_> = state.levels.iter_mut().flat_map(FairQueue::drain).collect();
        let idle = std::mem::take(&mut state.idle);
        let wanting = std::mem::take(&mut state.wanting_process);
        drop(state);
        // Dropped without the lock: their ends take it.
        drop((waiting, idle, wanting));
        self.closing.notify_all();
    }
}

/// How long to wait before the next start after this many failures in a row: 20 ms, doubled up to five seconds.
fn back_off(failures: u32) -> Duration {
    Duration::from_millis(10 << failures.min(9))
}

#[cfg(test)]
mod tests {
    use super::back_off;

    #[test]
    fn pauses_double_up_to_five_seconds() {
        assert_eq!([1, 2, 3].map(|failures| back_off(failures).as_millis()), [20, 40, 80]);
        assert_eq!(back_off(9), back_off(u32::MAX));
        assert_eq!(back_off(9).as_millis(), 5120);
    }
}
