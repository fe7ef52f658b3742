//! The native functions behind `mcp`, `capabilities`, `__pml`, timers and `console`. They hold no JavaScript values.

use std::{rc::Rc, time::Duration};

use pml_worker::{CallKind, LogLevel, protocol::LONGEST_NAME};
use rquickjs::{Ctx, Exception, Function, Object, Persistent, Result, Value, function::Args};

use super::{
    parts,
    run_state::{RunState, clipped},
    text::Text,
    to_json::{JsonError, JsonWriter},
    web,
};

/// The functions that the prelude gave us, kept between preparing a runtime and running code in it.
pub(crate) struct Bridge {
    pub(crate) mcp: Persistent<Value<'static>>,
    pub(crate) capabilities: Persistent<Value<'static>>,
    pub(crate) settle: Persistent<Function<'static>>,
    pub(crate) fire: Persistent<Function<'static>>,
    pub(crate) set_name: Persistent<Function<'static>>,
    pub(crate) code_returned: Persistent<Function<'static>>,
    pub(crate) code_ended: Persistent<Function<'static>>,
    pub(crate) failed_call: Persistent<Function<'static>>,
    pub(crate) rejected: Persistent<Function<'static>>,
    pub(crate) returned_from: Persistent<Function<'static>>,
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, state: &Rc<RunState>) -> Result<Bridge> {
    let native = Object::new(ctx.clone())?;
    natives(ctx, &native, state)?;
    web::install(ctx, &native)?;
    let made: Object<'js> = parts::load(ctx, "bridge")?.call((native,))?;
    Ok(Bridge {
        mcp: Persistent::save(ctx, made.get::<_, Value<'js>>("mcp")?),
        capabilities: Persistent::save(ctx, made.get::<_, Value<'js>>("capabilities")?),
        settle: Persistent::save(ctx, made.get::<_, Function<'js>>("settle")?),
        fire: Persistent::save(ctx, made.get::<_, Function<'js>>("fire")?),
        set_name: Persistent::save(ctx, made.get::<_, Function<'js>>("setName")?),
        code_returned: Persistent::save(ctx, made.get::<_, Function<'js>>("codeReturned")?),
        code_ended: Persistent::save(ctx, made.get::<_, Function<'js>>("codeEnded")?),
        failed_call: Persistent::save(ctx, made.get::<_, Function<'js>>("failedCall")?),
        rejected: Persistent::save(ctx, made.get::<_, Function<'js>>("rejected")?),
        returned_from: Persistent::save(ctx, made.get::<_, Function<'js>>("returnedFrom")?),
    })
}

fn natives<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<RunState>) -> Result<()> {
    let run = state.clone();
    native.set(
        "call",
        Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>,
                  kind: Text,
                  target: Text,
                  name: Text,
                  node: Option<Text>,
                  input: Value<'js>| {
                let kind = if kind.0 == "capability" { CallKind::Capability } else { CallKind::Tool };
                let node = node.as_ref().map(|node| node.0.as_str());
                call(&ctx, &run, kind, &target.0, &name.0, node, input)
            },
        )?,
    )?;
    let run = state.clone();
    native.set("visit", Function::new(ctx.clone(), move |node: Text| run.visit(&node.0))?)?;
    let run = state.clone();
    native.set(
        "decision",
        Function::new(ctx.clone(), move |node: Text, outcome: Text| run.decision(&node.0, &outcome.0))?,
    )?;
    let run = state.clone();
    native.set(
        "log",
        Function::new(ctx.clone(), move |level: Text, text: Text| log(&run, &level.0, &text.0))?,
    )?;
    let run = state.clone();
    native.set(
        "startTimer",
        Function::new(ctx.clone(), move |id: u32, milliseconds: f64| {
            run.start_timer(id, Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or_default());
        })?,
    )?;
    let run = state.clone();
    native.set("stopTimer", Function::new(ctx.clone(), move |id: u32| run.stop_timer(id))?)?;
    native.set("load", Function::new(ctx.clone(), |ctx: Ctx<'js>, part: Text| parts::load(&ctx, &part.0))?)
}

fn call<'js>(
    ctx: &Ctx<'js>,
    run: &RunState,
    kind: CallKind,
    target: &str,
    name: &str,
    node: Option<&str>,
    input: Value<'js>,
) -> Result<u32> {
    if target.len() > LONGEST_NAME {
        let message =
            format!("the name of a tool may have {LONGEST_NAME} bytes; this one has {}", target.len());
        return Err(Exception::throw_range(ctx, &message));
    }
    let args = json(ctx, input, run.output_left(), "{}").map_err(|error| match error {
        JsonError::Threw { value, .. } => ctx.throw(value),
        JsonError::Refused { why, path } => {
            let message = format!("{name}: the argument can't be sent: {why}, at {}", JsonError::path(&path));
            Exception::throw_type(ctx, &message)
        }
        JsonError::TooLong => {
            run.take_output(usize::MAX);
            Exception::throw_range(ctx, &format!("{name}: the argument is larger than the run may send"))
        }
    })?;
    if !run.take_call() || !run.take_output(args.len()) {
        return Err(Exception::throw_range(ctx, &format!("{name}: the run has met a limit")));
    }
    Ok(run.call(node.map(|node| clipped(node, LONGEST_NAME)), kind, target, &args))
}

/// `value` as JSON.
pub(crate) fn json<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
    longest: usize,
    for_undefined: &str,
) -> std::result::Result<String, JsonError<'js>> {
    let exotic = {
        let ctx = ctx.clone();
        move || parts::load(&ctx, "json")?.call_arg::<Function<'js>>(Args::new(ctx.clone(), 0))
    };
    let writer = JsonWriter::new(ctx, longest, exotic)
        .map_err(|_| JsonError::Threw { value: ctx.catch(), path: Vec::new() })?;
    let text = writer.write(value, for_undefined)?;
    if text.len() > longest { Err(JsonError::TooLong) } else { Ok(text) }
}

fn log(run: &RunState, level: &str, text: &str) {
    let level = match level {
        "debug" => LogLevel::Debug,
        "info" => LogLevel::Info,
        "warn" => LogLevel::Warn,
        "error" => LogLevel::Error,
        _ => LogLevel::Log,
    };
    run.log(level, text);
}
