//! One QuickJS runtime, made before its run arrives and thrown away after it.

use std::rc::Rc;

use pml_worker::{
    LimitKind, Limits, Thrown,
    protocol::{AnswerError, FromWorker, ToWorker, WorkerFailure, parse_frame},
};
use rquickjs::{
    Context, Ctx, Error, Function, Module, Promise, Runtime, Value,
    context::EvalOptions,
    loader::{ImportAttributes, Loader, Resolver},
    module::Declared,
    promise::PromiseState,
    qjs,
};

use super::{
    bridge::{self, Bridge, json},
    connection::{Connection, ParentGone},
    heap::{Heap, HeapGauge},
    run_state::RunState,
    thrown::{self, AFTER_CODE, BEFORE_CODE, FILE},
    to_json::JsonError,
};

/// What the engine may use beyond the limit while we read out what went wrong.
const ROOM_FOR_THE_ERROR: u64 = 1024 * 1024;

/// The stack that the prelude may use, before the run's own limit is known.
const PRELUDE_STACK: usize = 256 * 1024;

/// How many jobs may run between two looks at the clock.
const JOBS_PER_LOOK: u32 = 64;

pub(crate) struct Engine {
    // Fields drop in this order: what refers to the runtime goes first.
    bridge: Bridge,
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
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, handled| {
            track_rejection(&run, &ctx, &promise, reason, handled);
        })));
        let context = Context::full(&runtime).map_err(failed)?;
        let bridge = context.with(|ctx| {
            bridge::install(&ctx, &state).map_err(|error| format!("{} {:?}", failed(error), ctx.catch()))
        })?;
        Ok(Engine { bridge, context, runtime, state, heap })
    }

    /// Runs the code and tells the parent how it ended.
    pub(crate) fn run(
        self,
        code: &str,
        args: &str,
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
                .and_then(|conversation| conversation.run(code, args, connection));
            let result = match result {
                Ok(text) => Ok(text),
                Err(End::ParentGone) => return Err(ParentGone),
                Err(End::Failed(failure)) => Err(failure),
            };
            // A limit met anywhere counts, whatever the code made of it afterwards.
            let result = match state.stopped() {
                Some(limit) => Err(WorkerFailure::Limit { limit, node: state.last_node() }),
                None => result,
            };
            state.tell(&FromWorker::Done {
                result: result.as_deref().map_err(Clone::clone),
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
        End::Failed(WorkerFailure::Thrown(thrown))
    }
}

/// The code at work: its promise on one side, the parent on the other.
struct Conversation<'a, 'js> {
    ctx: &'a Ctx<'js>,
    state: &'a RunState,
    heap: &'a HeapGauge,
    mcp: Value<'js>,
    capabilities: Value<'js>,
    settle: Function<'js>,
    fire: Function<'js>,
    failed_call: Function<'js>,
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
            failed_call: bridge.failed_call.clone().restore(ctx).map_err(lost)?,
        })
    }

    fn run(&self, code: &str, args: &str, connection: &mut Connection) -> Result<String, End> {
        let promise = self.begin(code, args).map_err(|error| self.failed(error))?;
        while promise.state() == PromiseState::Pending {
            self.run_jobs(&promise);
            if promise.state() != PromiseState::Pending || self.state.stopped().is_some() {
                break;
            }
            if let Some(timer) = self.state.due_timer() {
                self.fire.call::<_, ()>((timer,)).map_err(|error| self.failed(error))?;
                continue;
            }
            self.state.flush();
            self.state.check_parent()?;
            self.wait(connection)?;
        }
        self.state.log_unhandled(address(promise.as_value()));
        if self.state.stopped().is_some() {
            // The caller says which limit it was.
            return Ok(String::new());
        }
        match promise.result::<Value<'js>>() {
            Some(Ok(value)) => self.result(value),
            Some(Err(error)) => Err(self.failed(error)),
            None => Ok(String::new()),
        }
    }

    fn begin(&self, code: &str, args: &str) -> rquickjs::Result<Promise<'js>> {
        let args = self.ctx.json_parse(args)?;
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

    fn run_jobs(&self, promise: &Promise<'js>) {
        let mut jobs = 0_u32;
        while self.state.stopped().is_none() && promise.state() == PromiseState::Pending {
            if !self.ctx.execute_pending_job() {
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
            // A parent that says anything else is not ours.
            Ok(ToWorker::Run { .. }) | Err(_) => Err(End::ParentGone),
        }
    }

    fn settle(&self, id: u32, answer: Result<&str, AnswerError<'_>>) -> rquickjs::Result<()> {
        match answer {
            Ok(text) => {
                let value = self.ctx.json_parse(text)?;
                self.settle.call((id, true, value))
            }
            Err(AnswerError { message, data }) => {
                let data = data.map(|data| self.ctx.json_parse(data)).transpose()?;
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
                thrown::from_message("TypeError", message, self.state.last_node()).into()
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
        if thrown.name == "InternalError"
            && thrown.message.starts_with("out of memory")
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

fn track_rejection<'js>(
    run: &RunState,
    ctx: &Ctx<'js>,
    promise: &Value<'js>,
    reason: Value<'js>,
    handled: bool,
) {
    if handled {
        run.rejection_handled(address(promise));
    } else if run.stopped().is_none() {
        let message = match reason.as_exception() {
            Some(error) => error.message().unwrap_or_default(),
            None => reason.type_name().to_owned(),
        };
        if ctx.has_exception() {
            ctx.catch();
        }
        run.rejected(address(promise), super::run_state::clipped(&message, 1024).to_owned());
    }
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
