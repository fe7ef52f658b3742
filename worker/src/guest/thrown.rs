//! Exceptions from the code in terms of its source: name, message, and frames with the author's line numbers.

use pml_worker::{
    MissedCall, Thrown, Unawaited,
    protocol::{LONGEST_NAME, LONGEST_TEXT},
};
use rquickjs::{Ctx, FromJs, Function, Object, Value};

use super::{bridge::json, run_state::clipped, text::Text, to_json::JsonError};

/// The file name of the code in stacks.
pub(crate) const FILE: &str = "code";

/// Prepended to the first line of the code. The inner function lets the code declare its own `args` or `mcp`.
pub(crate) const BEFORE_CODE: &str =
    "(function (args, mcp, capabilities) { return async function main() { \"use strict\"; ";
pub(crate) const AFTER_CODE: &str = "\n} })";

/// An exception that ended the run.
pub(crate) fn from_value<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
    failed_call: &Function<'js>,
    last_node: Option<String>,
) -> Thrown {
    let call = failed_call.call::<_, Option<Object<'js>>>((value.clone(),)).ok().flatten();
    let of_call = |name: &str| call.as_ref().and_then(|call| field(ctx, call, name));
    let (name, message, stack) = match value.as_object().filter(|object| object.is_error()) {
        Some(error) => (
            field(ctx, error, "name").unwrap_or_else(|| "Error".into()),
            field(ctx, error, "message").unwrap_or_default(),
            field(ctx, error, "stack").unwrap_or_default(),
        ),
        None => {
            let origin = call.as_ref().and_then(|call| call.get::<_, Object<'js>>("origin").ok());
            let stack = origin.and_then(|origin| field(ctx, &origin, "stack")).unwrap_or_default();
            ("Error".into(), shown(ctx, value.clone()), stack)
        }
    };
    // Reading a hostile error may have left an exception behind.
    ctx.catch();
    let frames = Frame::all(clipped(&stack, LONGEST_TEXT));
    Thrown {
        name: clipped(&name, 256).to_owned(),
        message: clipped(&message, LONGEST_TEXT).to_owned(),
        stack: frames.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        line: frames.first().map(|frame| frame.line),
        node: of_call("node").or(last_node),
        target: of_call("name"),
    }
}

/// An error raised by the worker itself.
pub(crate) fn from_message(name: &str, message: impl Into<String>, node: Option<String>) -> Thrown {
    Thrown {
        name: name.into(),
        message: message.into(),
        stack: String::new(),
        line: None,
        node,
        target: None,
    }
}

/// The bridge's record of a call as an unawaited one.
pub(crate) fn unawaited<'js>(ctx: &Ctx<'js>, call: &Object<'js>) -> Option<Unawaited> {
    Some(Unawaited { call: call.get("id").ok()?, line: line_of(ctx, call) })
}

/// The bridge's record of a call that came too late to be made.
pub(crate) fn missed_call<'js>(ctx: &Ctx<'js>, call: &Object<'js>) -> Option<MissedCall> {
    let target = field(ctx, call, "target")?;
    Some(MissedCall { target: clipped(&target, LONGEST_NAME).to_owned(), line: line_of(ctx, call) })
}

/// The line where the bridge made this record.
pub(crate) fn line_of<'js>(ctx: &Ctx<'js>, call: &Object<'js>) -> Option<u32> {
    let origin = call.get::<_, Object<'js>>("origin").ok();
    let stack = origin.and_then(|origin| field(ctx, &origin, "stack")).unwrap_or_default();
    Frame::all(&stack).first().map(|frame| frame.line)
}

fn field<'js>(ctx: &Ctx<'js>, object: &Object<'js>, name: &str) -> Option<String> {
    let value =
        object.get::<_, Value<'js>>(name).ok().filter(|value| !value.is_undefined() && !value.is_null())?;
    Some(Text::from_js(ctx, value).ok()?.0)
}

/// The message for a thrown value that isn't an error: text as it is, anything else as JSON.
fn shown<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> String {
    if value.is_string() || value.is_undefined() || value.is_symbol() {
        let text = Text::from_js(ctx, value.clone()).map(|text| text.0);
        return text.unwrap_or_else(|_| value.type_name().to_owned());
    }
    match json(ctx, value, LONGEST_TEXT, "undefined") {
        Ok(text) => text,
        Err(JsonError::TooLong) => "a large object".into(),
        Err(JsonError::Threw { .. } | JsonError::Refused { .. }) => "an object that can't be shown".into(),
    }
}

/// A position in the code from a stack trace.
struct Frame<'s> {
    /// Empty if the stack doesn't say.
    function: &'s str,
    line: u32,
    /// On the first line, without the text prepended to the code.
    column: u32,
}

impl<'s> Frame<'s> {
    /// The frames of the code, innermost first, without those of the engine, of the worker's own parts and of parsed text
    /// (`JSON.parse`, `eval`).
    fn all(stack: &'s str) -> Vec<Frame<'s>> {
        stack.lines().filter_map(|frame| Frame::of(frame.trim().strip_prefix("at ")?)).collect()
    }

    fn of(frame: &'s str) -> Option<Frame<'s>> {
        let (function, place) = match frame.strip_suffix(')').and_then(|frame| frame.rsplit_once(" (")) {
            Some((function, place)) => (function, place),
            None => ("", frame),
        };
        let (line, column) = place.strip_prefix(FILE)?.strip_prefix(':')?.split_once(':')?;
        let (line, column): (u32, u32) = (line.parse().ok()?, column.parse().ok()?);
        let before = if line == 1 { BEFORE_CODE.len() as u32 } else { 0 };
        Some(Frame { function, line, column: column.saturating_sub(before).max(1) })
    }
}

impl std::fmt::Display for Frame<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Frame { function, line, column } = self;
        match function.is_empty() {
            true => write!(f, "at {FILE}:{line}:{column}"),
            false => write!(f, "at {function} ({FILE}:{line}:{column})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BEFORE_CODE, Frame};

    #[test]
    fn stacks_show_the_source_and_nothing_of_the_worker() {
        let column = BEFORE_CODE.len() + 7;
        let stack = format!(
            "    at <input>:1:5\n    at inner (code:3:9)\n    at apply (native)\n    at invoke (pml:bridge:30:5)\n    \
             at main (code:1:{column})\n    at code:4:2"
        );
        let shown: Vec<_> = Frame::all(&stack).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["at inner (code:3:9)", "at main (code:1:7)", "at code:4:2"]);
        assert!(Frame::all("a stack that the code made up").is_empty());
    }
}
