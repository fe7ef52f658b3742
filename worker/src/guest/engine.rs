//! One QuickJS runtime, created before its run arrives and discarded after it.

use std::{
    cell::RefCell,
    rc::{Rc, Weak},
    time::Duration,
};

use pml_worker::{
    LimitKind, Limits, MissedCall, Thrown, Unawaited,
    protocol::{AnswerError, FromWorker, MOST_MISSED, ToWorker, WorkerFailure, parse_frame},
};
use rquickjs::{
    Atom, Context, Ctx, Error, Function, Module, Object, Promise, Runtime, Value,
    context::EvalOptions,
    loader::{ImportAttributes, Loader, Resolver},
    module::Declared,
    promise::PromiseState,
    qjs,
};

use super::{
    bridge::{self, Bridge, json},
    connection::{Connection, ParentGone},
    from_json,
    heap::{Heap, HeapGauge},
    run_state::RunState,
    thrown::{self, AFTER_CODE, BEFORE_CODE, FILE},
    to_json::JsonError,
};

/// Extra memory for reading out the error after the limit was reached.
const ROOM_FOR_THE_ERROR: u64 = 1024 * 1024;

/// The stack that the prelude may use, before the run's own limit is known.
const PRELUDE_STACK: usize = 256 * 1024;

/// How long timers may run that are only asked for what they would call.
const REHEARSAL: Duration = Duration::from_millis(50);

/// Jobs to run between two checks of the clock.
const JOBS_PER_LOOK: u32 = 64;

pub(crate) struct Engine {
    // Fields drop in this order: what refers to the runtime goes first.
    bridge: Rc<Bridge>,
    context: Context,
    runtime: Runtime,
    state: Rc<RunState>,
    heap: Rc<HeapGauge>,
}

impl Engine {
    pub(crate) fn prepare() -> Result<Engine, String> {
        let heap = HeapGauge::unlimited();
        let state = Rc::new(RunState::new());
        let failed = |error: Error| format!("the engine could not be made: {error}");
        let runtime = Runtime::new_with_alloc(Heap(heap.clone())).map_err(failed)?;
        runtime.set_max_stack_size(PRELUDE_STACK);
        runtime.set_loader(NoModules, NoModules);
        let run = state.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || run.interrupt())));
        let run = state.clone();
        // The runtime owns the tracker, so it must not own anything of the runtime's.
        let tracked = Rc::new(RefCell::new(Weak::<Bridge>::new()));
        let known = tracked.clone();
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, handled| {
            if handled {
                run.rejection_handled(address(&promise));
            } else if run.stopped().is_none() {
                let bridge = known.borrow().upgrade();
                rejected(&run, &ctx, bridge.as_deref(), &promise, reason);
            }
        })));
        let context = Context::full(&runtime).map_err(failed)?;
        let bridge = Rc::new(context.with(|ctx| {
            bridge::install(&ctx, &state).map_err(|error| format!("{} {:?}", failed(error), ctx.catch()))
        })?);
        *tracked.borrow_mut() = Rc::downgrade(&bridge);
        Ok(Engine { bridge, context, runtime, state, heap })
    }

    /// Runs the code and tells the parent how it ended.
    pub(crate) fn run(
        self,
        code: &str,
        args: &str,
        names: &[(&str, &str)],
        limits: Limits,
        connection: &mut Connection,
    ) -> Result<u64, ParentGone> {
        self.heap.set_limit(limits.memory);
        // Only cycles need the collector; the engine's own threshold of 256 KiB has it walk a growing heap over and over.
        self.runtime.set_gc_threshold(usize::try_from(limits.memory / 4).unwrap_or(usize::MAX));
        self.runtime.set_max_stack_size(usize::try_from(limits.stack).unwrap_or(PRELUDE_STACK));
        self.state.start(limits);
        let state = &self.state;
        self.context.with(|ctx| {
            let result = Conversation::new(&ctx, &self)
                .and_then(|conversation| conversation.run(code, args, names, connection));
            let result = match result {
                Ok(returned) => Ok(returned),
                Err(End::ParentGone) => return Err(ParentGone),
                Err(End::Failed(failure)) => Err(failure),
            };
            let result = match (state.stopped(), result) {
                // The result is kept; only the calls still running were cut off.
                (Some(LimitKind::WallTime), Ok(Some(returned))) => Ok(returned),
                (None, Ok(returned)) => Ok(returned.unwrap_or_default()),
                // A limit counts even if the code caught the error.
                (Some(limit), _) => Err(WorkerFailure::Limit { limit, node: state.last_node() }),
                (None, Err(failure)) => Err(failure),
            };
            state.tell(&FromWorker::Done {
                result: result.as_ref().map(|returned| returned.json.as_str()).map_err(Clone::clone),
                unawaited: result.as_ref().map(|returned| returned.unawaited.clone()).unwrap_or_default(),
                missed: result.as_ref().map(|returned| returned.missed.clone()).unwrap_or_default(),
                cpu_time: state.cpu_used(),
                memory_peak: self.heap.peak(),
                dropped_events: state.dropped_events(),
            });
            state.flush();
            state.check_parent()
        })?;
        Ok(self.heap.peak())
    }
}

/// What the code returned, the calls that it didn't await, and those that its timers would still have made.
#[derive(Default)]
struct Returned {
    json: String,
    unawaited: Vec<Unawaited>,
    missed: Vec<MissedCall>,
}

/// Why a run has no result.
enum End {
    ParentGone,
    Failed(WorkerFailure),
}

impl From<ParentGone> for End {
    fn from(_: ParentGone) -> End {
        End::ParentGone
    }
}

impl From<Thrown> for End {
    fn from(thrown: Thrown) -> End {
        End::Failed(WorkerFailure::Thrown(Box::new(thrown)))
    }
}

/// What the event loop is waiting for.
enum Until<'p, 'js> {
    Settled(&'p Promise<'js>),
    NoCallRuns,
}

/// The event loop of a run: its promise on one side, the parent on the other.
struct Conversation<'a, 'js> {
    ctx: &'a Ctx<'js>,
    state: &'a RunState,
    heap: &'a HeapGauge,
    mcp: Value<'js>,
    capabilities: Value<'js>,
    settle: Function<'js>,
    fire: Function<'js>,
    set_name: Function<'js>,
    code_returned: Function<'js>,
    code_ended: Function<'js>,
    failed_call: Function<'js>,
    returned_from: Function<'js>,
}

impl<'a, 'js> Conversation<'a, 'js> {
    fn new(ctx: &'a Ctx<'js>, engine: &'a Engine) -> Result<Conversation<'a, 'js>, End> {
        let lost = |error: Error| End::from(thrown::from_message("InternalError", error.to_string(), None));
        let bridge = &engine.bridge;
        Ok(Conversation {
            ctx,
            state: &engine.state,
            heap: &engine.heap,
            mcp: bridge.mcp.clone().restore(ctx).map_err(lost)?,
            capabilities: bridge.capabilities.clone().restore(ctx).map_err(lost)?,
            settle: bridge.settle.clone().restore(ctx).map_err(lost)?,
            fire: bridge.fire.clone().restore(ctx).map_err(lost)?,
            set_name: bridge.set_name.clone().restore(ctx).map_err(lost)?,
            code_returned: bridge.code_returned.clone().restore(ctx).map_err(lost)?,
            code_ended: bridge.code_ended.clone().restore(ctx).map_err(lost)?,
            failed_call: bridge.failed_call.clone().restore(ctx).map_err(lost)?,
            returned_from: bridge.returned_from.clone().restore(ctx).map_err(lost)?,
        })
    }

    /// `None` if a limit ended the run before the code returned.
    fn run(
        &self,
        code: &str,
        args: &str,
        names: &[(&str, &str)],
        connection: &mut Connection,
    ) -> Result<Option<Returned>, End> {
        let promise = self.begin(code, args, names).map_err(|error| self.failed(error))?;
        self.go_on(connection, Until::Settled(&promise))?;
        let json = match promise.result::<Value<'js>>() {
            Some(Ok(value)) if self.state.stopped().is_none() => self.result(value).map(Some),
            Some(Err(error)) if self.state.stopped().is_none() => Err(self.failed(error)),
            _ => Ok(None),
        };
        let left = match &json {
            Ok(Some(json)) => {
                self.state.take_output(json.len());
                self.wait_for_left_calls(connection)?
            }
            _ => Vec::new(),
        };
        let failed = self.state.log_unhandled(address(promise.as_value()));
        let json = json?;
        let missed = self.missed_calls();
        Ok(json.map(|json| {
            let mut unawaited = left;
            unawaited.extend(failed);
            unawaited.sort_unstable_by_key(|unawaited| unawaited.call);
            unawaited.dedup_by_key(|unawaited| unawaited.call);
            Returned { json, unawaited, missed }
        }))
    }

    /// Waits for calls still running after the code has returned, up to the wall time.
    fn wait_for_left_calls(&self, connection: &mut Connection) -> Result<Vec<Unawaited>, End> {
        // Jobs of settled promises may still make calls.
        self.run_jobs(&Until::NoCallRuns);
        if !self.state.waits_for_calls() || self.state.stopped().is_some() {
            return Ok(Vec::new());
        }
        let left: Object<'js> = self.code_returned.call(()).map_err(|error| self.failed(error))?;
        self.go_on(connection, Until::NoCallRuns)?;
        let calls = left.props::<Atom<'js>, Object<'js>>().filter_map(Result::ok);
        Ok(calls.filter_map(|(_, call)| thrown::unawaited(self.ctx, &call)).collect())
    }

    /// What the timers that are still pending would call. Waiting for them would make every run with a time-out as slow as
    /// the time-out, so each is called once, now, and its calls are recorded instead of made.
    fn missed_calls(&self) -> Vec<MissedCall> {
        if self.state.next_timer().is_none() || self.state.stopped().is_some() {
            return Vec::new();
        }
        self.state.end(REHEARSAL);
        let missed = self.code_ended.call::<_, Object<'js>>(()).ok();
        for timer in self.state.pending_timers() {
            if self.state.interrupt() {
                break;
            }
            if self.fire.call::<_, ()>((timer,)).is_err() {
                self.ctx.catch();
            }
            self.run_jobs(&Until::NoCallRuns);
        }
        self.state.ended();
        let calls = missed.iter().flat_map(Object::props::<Atom<'js>, Object<'js>>);
        calls.filter_map(|call| thrown::missed_call(self.ctx, &call.ok()?.1)).take(MOST_MISSED).collect()
    }

    /// Runs jobs, timers and answers until the awaited event or a limit.
    fn go_on(&self, connection: &mut Connection, until: Until<'_, 'js>) -> Result<(), End> {
        loop {
            self.run_jobs(&until);
            let over = match until {
                Until::Settled(promise) => promise.state() != PromiseState::Pending,
                Until::NoCallRuns => !self.state.waits_for_calls(),
            };
            if over || self.state.stopped().is_some() {
                return Ok(());
            }
            if let Some(timer) = self.state.due_timer() {
                self.fire.call::<_, ()>((timer,)).map_err(|error| self.failed(error))?;
                continue;
            }
            self.state.flush();
            self.state.check_parent()?;
            self.wait(connection)?;
        }
    }

    fn begin(&self, code: &str, args: &str, names: &[(&str, &str)]) -> rquickjs::Result<Promise<'js>> {
        for name in names {
            self.set_name.call::<_, ()>(*name)?;
        }
        let args = from_json::parse(self.ctx, args)?;
        let source = [BEFORE_CODE, code, AFTER_CODE].concat();
        let mut options = EvalOptions::default();
        options.filename = Some(FILE.to_owned());
        if source.contains('\0') {
            return Err(rquickjs::Exception::throw_syntax(
                self.ctx,
                "the code contains the character U+0000",
            ));
        }
        let outer: Function<'js> = self.ctx.eval_with_options(source, options)?;
        let main: Function<'js> = outer.call((args, self.mcp.clone(), self.capabilities.clone()))?;
        main.call(())
    }

    fn run_jobs(&self, until: &Until<'_, 'js>) {
        let mut jobs = 0_u32;
        while self.state.stopped().is_none() {
            if matches!(until, Until::Settled(promise) if promise.state() != PromiseState::Pending)
                || !self.ctx.execute_pending_job()
            {
                break;
            }
            jobs += 1;
            if jobs.is_multiple_of(JOBS_PER_LOOK) {
                self.state.interrupt();
            }
        }
    }

    /// Waits for an answer, a timer or the end of the run's time.
    fn wait(&self, connection: &mut Connection) -> Result<(), End> {
        let timer = self.state.next_timer();
        if timer.is_none() && !self.state.waits_for_calls() {
            let message = "the code waits for a promise that nothing will settle: no call, timer or job is left. \
                           Settle every promise you make";
            return Err(thrown::from_message("Error", message, self.state.last_node()).into());
        }
        let until = timer.into_iter().chain(self.state.deadline()).min();
        let Some(frame) = connection.receive(until)? else {
            self.state.interrupt();
            return Ok(());
        };
        match parse_frame(frame) {
            Ok(ToWorker::Answer { id, answer }) => {
                self.state.answered();
                self.settle(id, answer).map_err(|error| self.failed(error))
            }
            Ok(ToWorker::Pause) => {
                self.state.pause();
                Ok(())
            }
            Ok(ToWorker::Resume { left }) => {
                self.state.resume(left);
                Ok(())
            }
            // Any other message is a protocol violation.
            Ok(ToWorker::Run { .. }) | Err(_) => Err(End::ParentGone),
        }
    }

    fn settle(&self, id: u32, answer: Result<&str, AnswerError<'_>>) -> rquickjs::Result<()> {
        match answer {
            Ok(text) => {
                let value = from_json::parse(self.ctx, text)?;
                self.settle.call((id, true, value))
            }
            Err(AnswerError { message, data }) => {
                let data = data.map(|data| from_json::parse(self.ctx, data)).transpose()?;
                self.settle.call((id, false, message, data))
            }
        }
    }

    fn result(&self, value: Value<'js>) -> Result<String, End> {
        json(self.ctx, value, self.state.output_left(), "null").map_err(|error| match error {
            JsonError::Threw { value, path } => {
                let mut thrown = self.thrown(value);
                let path = JsonError::path(&path);
                thrown.message = format!("{} (while the result was made JSON, at {path})", thrown.message);
                self.limit_or(thrown)
            }
            JsonError::Refused { why, path } => {
                let message = format!("the result can't be JSON: {why}, at {}", JsonError::path(&path));
                let line = self.returned_from.call::<_, Object<'js>>(()).ok();
                let line = line.and_then(|returned| thrown::line_of(self.ctx, &returned));
                Thrown { line, ..thrown::from_message("TypeError", message, self.state.last_node()) }.into()
            }
            JsonError::TooLong => self.limit(LimitKind::Output),
        })
    }

    fn failed(&self, error: Error) -> End {
        match error {
            Error::Exception => self.limit_or(self.thrown(self.ctx.catch())),
            Error::Allocation | Error::Unknown if self.heap.exhausted() => self.limit(LimitKind::Memory),
            other => thrown::from_message("InternalError", other.to_string(), self.state.last_node()).into(),
        }
    }

    fn thrown(&self, value: Value<'js>) -> Thrown {
        self.heap.set_limit(self.state.limits.borrow().memory + ROOM_FOR_THE_ERROR);
        if value.is_null() && self.heap.exhausted() {
            // The engine throws null when it hasn't even the memory for an error.
            return thrown::from_message("InternalError", "out of memory", self.state.last_node());
        }
        thrown::from_value(self.ctx, value, &self.failed_call, self.state.last_node())
    }

    /// The engine's own errors for memory and stack are limits; everything else is the code's error.
    fn limit_or(&self, thrown: Thrown) -> End {
        // The second is what the engine says when it hasn't the memory for the first.
        let says_memory = ["out of memory", "Invalid error message"];
        if thrown.name == "InternalError"
            && says_memory.iter().any(|message| thrown.message.starts_with(message))
            && self.heap.exhausted()
        {
            self.limit(LimitKind::Memory)
        } else if thrown.name == "RangeError" && thrown.message == "Maximum call stack size exceeded" {
            self.limit(LimitKind::Stack)
        } else {
            thrown.into()
        }
    }

    fn limit(&self, limit: LimitKind) -> End {
        End::Failed(WorkerFailure::Limit { limit, node: self.state.last_node() })
    }
}

fn address(value: &Value<'_>) -> usize {
    // SAFETY: only reads the pointer out of a live object's value.
    unsafe { qjs::JS_VALUE_GET_PTR(value.as_raw()) as usize }
}

/// Records a rejection that is not handled yet.
fn rejected<'js>(
    run: &RunState,
    ctx: &Ctx<'js>,
    bridge: Option<&Bridge>,
    promise: &Value<'js>,
    reason: Value<'js>,
) {
    let message = match reason.as_exception() {
        Some(error) => error.message().unwrap_or_default(),
        None => reason.type_name().to_owned(),
    };
    let call = bridge
        .and_then(|bridge| bridge.rejected.clone().restore(ctx).ok())
        .and_then(|rejected| rejected.call::<_, Option<Object<'js>>>((reason,)).ok().flatten())
        .and_then(|call| thrown::unawaited(ctx, &call));
    if ctx.has_exception() {
        ctx.catch();
    }
    run.rejected(address(promise), super::run_state::clipped(&message, 1024).to_owned(), call);
}

/// `import` has nothing to import from.
struct NoModules;

fn no_modules(name: &str) -> Error {
    let message =
        "the sandbox has no modules or files. Call a tool instead, for example mcp.server.tool({ … })";
    Error::new_loading_message(name, message)
}

impl Resolver for NoModules {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        _base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        Err(no_modules(name))
    }
}

impl Loader for NoModules {
    fn load<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        Err(no_modules(name))
    }
}
