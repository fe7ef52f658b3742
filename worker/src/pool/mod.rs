//! The pool: pre-started processes, slots shared fairly between tenants, and no orphans.

mod config;
mod conversation;
mod heavy_users;
mod priority;
mod process;
mod seat;

use std::{
    collections::VecDeque,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

pub use self::{
    config::{Layer, PoolConfig, Run},
    process::StartError,
};
use self::{conversation::converse, heavy_users::HeavyUsers, process::Process, seat::Seat};
use crate::{CallHandler, Counts, Failure, FairGate, LimitKind, Outcome, Refused, Tenant, Trace, Usage};

/// How many processes a run is tried in before it fails.
const BEGINNINGS: usize = 5;

/// A pool of confined processes. Clones share it; when the last is dropped, every process is killed.
#[derive(Clone)]
pub struct Pool(Arc<Handle>);

/// Closes the pool when dropped; the keeper threads hold only `Shared`.
struct Handle(Arc<Shared>);

struct Shared {
    config: PoolConfig,
    /// Reported by the first process; the kernel is the same for all.
    missing: OnceLock<String>,
    /// One for each level of nesting.
    levels: Vec<FairGate>,
    /// Runs that wait for a person: they keep their process but hold no slot.
    stepped_aside: AtomicUsize,
    state: Mutex<State>,
    /// Wakes threads that are backing off after a failed start.
    closing: Condvar,
    /// Wakes `close` when the last process is gone.
    emptied: Notify,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// Least recently used first.
    idle: VecDeque<Process>,
    /// Low-priority processes, for heavy users.
    idle_in_background: Vec<Process>,
    heavy_users: HeavyUsers,
    /// Processes that are starting, idle or busy.
    alive: usize,
    starting: usize,
    /// Starts that failed since the last one that worked.
    failures: u32,
    wanting_process: VecDeque<oneshot::Sender<Result<Process, StartError>>>,
}

impl Pool {
    /// Starts the processes and waits for the first, so that an unsuitable kernel or a wrong path fails here.
    pub async fn start(config: PoolConfig) -> Result<Pool, StartError> {
        if config.slots == 0 || config.runs_per_process == 0 {
            return Err(StartError::Config("slots and runs_per_process must be at least 1".into()));
        }
        let levels = (0..=config.deepest).map(|_| FairGate::new(config.shares())).collect();
        let shared = Arc::new(Shared {
            config,
            missing: OnceLock::new(),
            levels,
            stepped_aside: AtomicUsize::new(0),
            state: Mutex::default(),
            closing: Condvar::new(),
            emptied: Notify::new(),
        });
        let pool = Pool(Arc::new(Handle(shared.clone())));
        shared.keep_ready();
        let first = shared.take_process(0).await?;
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
        let Some(level) = shared.levels.get(run.depth as usize) else { return not_run(Failure::Closed) };
        let bytes = run.code.len() + run.args.get().len();
        let mut seat = match Seat::take(level, &run.tenant, bytes, &shared.stepped_aside).await {
            Ok(seat) => seat,
            Err(Refused::Full(full)) => return not_run(full.into()),
            Err(Refused::Closed) => return not_run(Failure::Closed),
        };
        if let Err(why) = handler.admit() {
            return not_run(Failure::NotAdmitted { why });
        }
        for _ in 0..BEGINNINGS {
            // Taken after the slot, so that the process is returned before the slot is.
            let mut lease = match shared.take_process_for(&run.tenant).await {
                Ok(process) => Lease { process: Some(process), shared, run: &run, since: Instant::now() },
                Err(StartError::Closed) => return not_run(Failure::Closed),
                Err(error) => return not_run(Failure::Unavailable { why: error.to_string() }),
            };
            let Some(process) = lease.process.as_mut() else { break };
            if let Some((outcome, sound)) = converse(process, &run, &mut seat, handler).await {
                if sound {
                    lease.give_back();
                }
                return outcome;
            }
        }
        not_run(Failure::Unavailable { why: "every process ended before the run could begin in it".into() })
    }

    /// Refuses new runs, lets current ones finish, and waits until every process is reaped.
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

    /// The confinement layers that this kernel lacks and the configuration lets be missing; empty if none.
    #[must_use]
    pub fn missing_layers(&self) -> &str {
        self.0.0.missing.get().map_or("", String::as_str)
    }

    /// Process ids of the idle workers, for inspection.
    #[must_use]
    pub fn idle_pids(&self) -> Vec<u32> {
        self.0.0.lock().idle.iter().map(|process| process.pid).collect()
    }

    /// Slots in use and runs waiting, over all levels.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.0.0.levels.iter().map(FairGate::counts).fold(Counts::default(), |sum, level| Counts {
            held: sum.held + level.held,
            waiting: sum.waiting + level.waiting,
            bytes: sum.bytes + level.bytes,
        })
    }

    /// Runs that have released their slot while they wait for a person.
    #[must_use]
    pub fn stepped_aside(&self) -> usize {
        self.0.0.stepped_aside.load(Ordering::Relaxed)
    }

    /// Number of processes, including starting and busy ones.
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
    Outcome {
        result: Err(failure),
        trace: Trace::default(),
        logs: Vec::new(),
        usage: Usage::default(),
        unawaited: Vec::new(),
        missed: Vec::new(),
    }
}

/// A process in use; killed when dropped unless returned to the pool.
struct Lease<'s> {
    process: Option<Process>,
    shared: &'s Arc<Shared>,
    run: &'s Run,
    since: Instant,
}

impl Lease<'_> {
    fn give_back(mut self) {
        self.count_cpu_time();
        if let Some(mut process) = self.process.take() {
            process.runs += 1;
            if process.runs < self.shared.config.runs_per_process {
                self.shared.give_back(process);
            }
        }
    }

    /// From the kernel, not from the worker, which can't report it when killed.
    fn count_cpu_time(&self) {
        if let Some(process) = &self.process {
            // Upper bounds for a process that has exited.
            let most = || self.since.elapsed().min(self.run.limits.cpu_time);
            let time = process.cpu_time_of_run().unwrap_or_else(most);
            self.run.cpu.add(time);
            self.shared.lock().heavy_users.computed(&self.run.tenant, time, Instant::now());
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.count_cpu_time();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock, and the state is consistent at every step.
        self.state.lock()
    }

    fn check(&self, run: &Run) -> Result<(), Failure> {
        let config = &self.config;
        if run.depth > config.deepest {
            let why = format!(
                "capabilities call each other {} deep, and at most {} is allowed (pml: run_depth)",
                run.depth, config.deepest
            );
            return Err(Failure::Invalid { why });
        }
        run.limits.check(config.memory_ceiling).map_err(|why| Failure::Invalid { why })?;
        if (run.code.len() + run.args.get().len()) as u64 > run.limits.memory {
            return Err(Failure::limit(LimitKind::Memory, &run.limits, None));
        }
        Ok(())
    }

    /// A process for a run of this tenant; a low-priority one for a heavy user.
    async fn take_process_for(self: &Arc<Self>, tenant: &Tenant) -> Result<Process, StartError> {
        let is_heavy = {
            let mut state = self.lock();
            let is_heavy = state.heavy_users.is_heavy(tenant, Instant::now());
            while is_heavy && let Some(process) = state.idle_in_background.pop() {
                if !process.ended() {
                    return Ok(process);
                }
            }
            is_heavy
        };
        if !is_heavy {
            return self.take_process(0).await;
        }
        // Starting a process is slow under load, so the ready ones are left to light users.
        let mut process = self.take_process(self.config.spare).await?;
        process.move_to_background();
        Ok(process)
    }

    /// A ready process if more than `left` are idle, else a new one.
    async fn take_process(self: &Arc<Self>, left: usize) -> Result<Process, StartError> {
        let receiver = {
            let mut state = self.lock();
            if state.closed {
                return Err(StartError::Closed);
            }
            state.idle.retain(|process| !process.ended());
            // The last used whose previous engine is torn down: its memory is still in the processor's caches, and those that
            // rest may go on. Or the least recently used, which is done with that first.
            let clear = state.idle.iter().rposition(Process::is_clear).unwrap_or(0);
            if state.idle.len() > left
                && let Some(process) = state.idle.remove(clear)
            {
                let is_short = state.idle.len() < self.config.spare;
                drop(state);
                if is_short {
                    self.keep_ready();
                }
                return Ok(process);
            }
            let (sender, receiver) = oneshot::channel();
            state.wanting_process.push_back(sender);
            receiver
        };
        self.keep_ready();
        receiver.await.map_err(|_| StartError::Closed)?
    }

    /// Hands a process to a waiting run, or keeps it idle; surplus processes are killed.
    fn give_back(&self, process: Process) {
        let mut process = process;
        loop {
            let mut state = self.lock();
            if state.closed {
                return;
            }
            if process.in_background {
                if state.idle_in_background.len() < self.config.slots {
                    state.idle_in_background.push(process);
                }
                return;
            }
            let Some(waiter) = state.wanting_process.pop_front() else {
                if state.idle.len() < self.config.slots + self.config.spare {
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

    /// Starts processes until as many are ready as wanted.
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

    /// Reserves the start of one more process if one is needed.
    fn claim_start(&self) -> bool {
        let mut state = self.lock();
        state.wanting_process.retain(|waiter| !waiter.is_closed());
        // Every slot of every level may be in use at once, and some runs have stepped aside.
        let slots = (self.config.slots + self.config.reserve) * self.levels.len();
        let most = slots + self.stepped_aside.load(Ordering::Relaxed) + self.config.spare;
        let wanted = state.wanting_process.len().max(self.config.spare.saturating_sub(state.idle.len()));
        let short = state.starting < wanted && state.alive < most;
        let more = !state.closed && (short || state.alive < self.config.slots);
        if more {
            state.alive += 1;
            state.starting += 1;
        }
        more
    }

    /// Runs a process to its end and replaces it for as long as the pool needs one.
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

    /// Fails the waiting runs if there is no hope, then backs off.
    fn start_failed(&self, error: &StartError) {
        // With back-off, more than a second of retries.
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
        self.closing.wait_while_for(&mut state, |state| !state.closed, pause);
    }

    fn shut(&self) {
        let mut state = self.lock();
        state.closed = true;
        let idle = (std::mem::take(&mut state.idle), std::mem::take(&mut state.idle_in_background));
        let wanting = std::mem::take(&mut state.wanting_process);
        drop(state);
        // Dropped without the lock, which their destructors take.
        drop((idle, wanting));
        self.levels.iter().for_each(FairGate::close);
        self.closing.notify_all();
    }
}

/// Exponential back-off after this many consecutive failures: 20 ms up to five seconds.
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
