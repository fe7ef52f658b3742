//! What the code threw, told in terms of its source: name, message, and frames with the lines that its author wrote.

use pml_worker::{Thrown, protocol::LONGEST_TEXT};
use rquickjs::{Ctx, FromJs, Function, Object, Value};

use super::{bridge::json, parts::FILE_PREFIX, run_state::clipped, text::Text, to_json::JsonError};

/// The file name of the code in stacks.
pub(crate) const FILE: &str = "code";

/// Stands on the code's first line, before it. The inner function lets the code declare its own `args` or `mcp`.
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
        None => ("Error".into(), shown(ctx, value.clone()), String::new()),
    };
    // Reading a hostile error may have left an exception behind.
    ctx.catch();
    Thrown {
        name: clipped(&name, 256).to_owned(),
        message: clipped(&message, LONGEST_TEXT).to_owned(),
        stack: in_source_lines(clipped(&stack, LONGEST_TEXT)),
        node: of_call("node").or(last_node),
        target: of_call("target"),
    }
}

/// An error of the worker's own.
pub(crate) fn from_message(name: &str, message: impl Into<String>, node: Option<String>) -> Thrown {
    Thrown { name: name.into(), message: message.into(), stack: String::new(), node, target: None }
}

fn field<'js>(ctx: &Ctx<'js>, object: &Object<'js>, name: &str) -> Option<String> {
    let value =
        object.get::<_, Value<'js>>(name).ok().filter(|value| !value.is_undefined() && !value.is_null())?;
    Some(Text::from_js(ctx, value).ok()?.0)
}

/// What was thrown if it isn't an error: text as it is, anything else as JSON.
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

/// The frames of the code, its first line's columns counted without what we put in front of it.
fn in_source_lines(stack: &str) -> String {
    let frames = stack.lines().map(str::trim).filter_map(|frame| {
        let frame = frame.strip_prefix("at ")?;
        if frame.contains(FILE_PREFIX) || frame.contains("(native)") {
            return None;
        }
        Some(format!("at {}", without_prefix_columns(frame)))
    });
    frames.collect::<Vec<_>>().join("\n")
}

fn without_prefix_columns(frame: &str) -> String {
    let first_line = format!("{FILE}:1:");
    let Some((before, rest)) = frame.split_once(&first_line) else { return frame.to_owned() };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    match rest[..digits].parse::<usize>() {
        Ok(column) => {
            let column = column.saturating_sub(BEFORE_CODE.len()).max(1);
            format!("{before}{first_line}{column}{}", &rest[digits..])
        }
        Err(_) => frame.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{BEFORE_CODE, in_source_lines};

    #[test]
    fn stacks_show_the_source_and_nothing_of_the_worker() {
        let column = BEFORE_CODE.len() + 7;
        let stack = format!(
            "    at inner (code:3:9)\n    at apply (native)\n    at invoke (pml:bridge:30:5)\n    at main (code:1:{column})\n"
        );
        assert_eq!(in_source_lines(&stack), "at inner (code:3:9)\nat main (code:1:7)");
        assert_eq!(in_source_lines("a stack that the code made up"), "");
    }
}
