//! The outcome of a run. Results and call arguments are stored as the text that the code gave: jsonb would reorder keys
//! and reject U+0000, which JSON can hold.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::value::RawValue;

type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// The outcome with each result and each call's arguments replaced by its index, followed by these; indexes start at 2, as
/// in a SQL array.
pub fn parts(outcome: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let rest = without_nul(run(outcome, &mut parts)).into_owned();
    parts[0] = rest;
    parts
}

/// The outcome of a run that succeeded and called nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct PlainOutcome<'a> {
    /// As JSON, or `null`.
    pub duration_ms: &'a str,
    pub path: Vec<String>,
    pub decisions: &'a str,
    pub result: &'a str,
}

impl<'a> PlainOutcome<'a> {
    /// None for outcomes of any other form, and for those whose path or decisions hold what Postgres can't store.
    pub fn read(outcome: &'a str) -> Option<PlainOutcome<'a>> {
        let fields: Fields<'a> = serde_json::from_str(outcome).ok()?;
        let mut plain =
            PlainOutcome { duration_ms: "null", path: Vec::new(), decisions: "[]", result: "null" };
        let mut success = false;
        for (name, value) in fields {
            let value = value.get();
            match &*name {
                "success" => success = value == "true",
                "result" => plain.result = value,
                "duration_ms" if value.parse::<f64>().is_ok() => plain.duration_ms = value,
                "path" => plain.path = serde_json::from_str(value).ok()?,
                "decisions" if value.starts_with('[') && !value.contains("\\u") => plain.decisions = value,
                "logs" if value.starts_with('[') => {}
                "tasks" | "missed_calls" if value == "[]" => {}
                _ => return None,
            }
        }
        let is_storable = |node: &String| !node.is_empty() && !node.chars().any(char::is_control);
        (success && plain.path.iter().all(is_storable)).then_some(plain)
    }
}

/// A run and its nested runs. Anything of another form is left as it is, for the caller's validation to report.
fn run<'a>(outcome: &'a str, parts: &mut Vec<String>) -> Cow<'a, str> {
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(outcome) else { return outcome.into() };
    object(fields.into_iter().map(|(name, value)| {
        let value = match &*name {
            "result" => number(value, parts),
            "tasks" => tasks(value, parts),
            _ => value.get().into(),
        };
        (name, value)
    }))
}

fn tasks<'a>(list: &'a RawValue, parts: &mut Vec<String>) -> Cow<'a, str> {
    let Ok(tasks) = serde_json::from_str::<Vec<&RawValue>>(list.get()) else { return list.get().into() };
    let tasks: Vec<Cow<'_, str>> = tasks.into_iter().map(|task| one_task(task, parts)).collect();
    format!("[{}]", tasks.join(",")).into()
}

fn one_task<'a>(task: &'a RawValue, parts: &mut Vec<String>) -> Cow<'a, str> {
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(task.get()) else { return task.get().into() };
    object(fields.into_iter().map(|(name, value)| {
        let value = match &*name {
            "result" => number(value, parts),
            "args" => {
                // They are read again as part of the trace, where U+0000 would be refused.
                parts.push(without_nul(value.get().into()).into_owned());
                parts.len().to_string().into()
            }
            "run" => run(value.get(), parts),
            _ => value.get().into(),
        };
        (name, value)
    }))
}

fn number<'a>(value: &RawValue, parts: &mut Vec<String>) -> Cow<'a, str> {
    parts.push(value.get().to_owned());
    parts.len().to_string().into()
}

fn object<'a, 'b>(fields: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>) -> Cow<'b, str> {
    let fields: Vec<String> =
        fields.map(|(name, value)| format!("{}:{value}", serde_json::Value::from(&*name))).collect();
    format!("{{{}}}", fields.join(",")).into()
}

/// The start of a result: a string's text, anything else as JSON.
pub fn preview(value: &str) -> String {
    const LENGTH: usize = 240;
    let text = serde_json::from_str::<String>(value);
    let text = text.as_deref().unwrap_or(value);
    text.chars().take(LENGTH).map(|c| if c == '\0' { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Indented JSON, with keys in their original order.
pub fn pretty(value: &str) -> String {
    let mut pretty = String::with_capacity(value.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    let mut characters = value.chars().filter(char_outside_space()).peekable();
    while let Some(c) = characters.next() {
        if in_text {
            pretty.push(c);
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                pretty.push(c);
                if let Some(end) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    pretty.push(end);
                } else {
                    depth += 1;
                    new_line(&mut pretty, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                new_line(&mut pretty, depth);
                pretty.push(c);
            }
            ',' => {
                pretty.push(c);
                new_line(&mut pretty, depth);
            }
            ':' => pretty.push_str(": "),
            '"' => {
                pretty.push(c);
                in_text = true;
            }
            _ => pretty.push(c),
        }
    }
    pretty
}

/// A filter that drops white space outside of strings.
fn char_outside_space() -> impl FnMut(&char) -> bool {
    let (mut in_text, mut escaped) = (false, false);
    move |c| {
        if in_text {
            in_text = escaped || *c != '"';
            escaped = !escaped && *c == '\\';
            return true;
        }
        in_text = *c == '"';
        !c.is_ascii_whitespace()
    }
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("    ", depth));
}

/// Replaces U+0000, which jsonb can't hold, by U+FFFD.
fn without_nul(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains("\\u0000") {
        return text;
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        clean.push_str(before);
        let length = if escape.starts_with("\\u") { 6 } else { 2 };
        let (escape, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        clean.push_str(if escape == "\\u0000" { "\\ufffd" } else { escape });
        rest = after;
    }
    clean.push_str(rest);
    clean.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_taken_out_wherever_they_are_and_keep_their_bytes() {
        let outcome = r#"{"success": true, "result": {"z": 1,  "a": "\u0000"}, "error": {"message": "\u0000"},
            "tasks": [{"result": [2], "args": {"z": "\u0000", "a": 1}, "run": {"result": 3.0, "tasks": [{"result": null}]}}, 5]}"#;
        let parts = parts(outcome);
        let (result, args) = (r#"{"z": 1,  "a": "\u0000"}"#, r#"{"z": "\ufffd", "a": 1}"#);
        assert_eq!(parts[1..], [result, args, "[2]", "3.0", "null"]);
        let rest: serde_json::Value = serde_json::from_str(&parts[0]).unwrap();
        assert_eq!(
            rest,
            serde_json::json!({
                "success": true, "result": 2, "error": {"message": "\u{fffd}"},
                "tasks": [{"args": 3, "result": 4, "run": {"result": 5, "tasks": [{"result": 6}]}}, 5]
            })
        );
        for other in ["null", "[1]", "\"x\"", "{\"tasks\": 1}", "{}"] {
            let parts = super::parts(other);
            assert_eq!(parts.len(), 1, "{other}");
            assert_eq!(parts[0].replace(' ', ""), other.replace(' ', ""));
        }
    }

    #[test]
    fn plain_outcomes_are_those_of_successful_runs_without_calls() {
        let outcome = r#"{"success":true,"result":{"z": 1, "a":"\u0000"},"duration_ms":1.5,"path":["n1","d\u0031"],
            "decisions":[{"node":"d1","outcome":"true"}],"tasks":[],"missed_calls":[],"logs":[1]}"#;
        let plain = PlainOutcome::read(outcome).unwrap();
        assert_eq!(plain.result, r#"{"z": 1, "a":"\u0000"}"#);
        assert_eq!((plain.duration_ms, plain.path.join(" ").as_str()), ("1.5", "n1 d1"));
        assert_eq!(plain.decisions, r#"[{"node":"d1","outcome":"true"}]"#);
        let least = PlainOutcome { duration_ms: "null", path: vec![], decisions: "[]", result: "null" };
        assert_eq!(PlainOutcome::read(r#"{"success": true}"#), Some(least));
        for other in [
            r#"{"success": false}"#,
            r#"{"success": true, "error": {}}"#,
            r#"{"success": true, "tasks": [{}]}"#,
            r#"{"success": true, "missed_calls": [{}]}"#,
            r#"{"success": true, "path": [1]}"#,
            r#"{"success": true, "path": ["a\u0000"]}"#,
            r#"{"success": true, "decisions": ["\ud800"]}"#,
            r#"{"success": true, "decisions": {}}"#,
            r#"{"success": true, "duration_ms": "1"}"#,
            r#"{"success": true, "fqdn": "x"}"#,
            "{}",
            "[]",
            "x",
        ] {
            assert_eq!(PlainOutcome::read(other), None, "{other}");
        }
    }

    #[test]
    fn only_the_escape_of_nul_is_replaced() {
        let text = r#"["\u0000","\\u0000","\\\u0000","é\u0001","\"\u0000"]"#;
        assert_eq!(without_nul(text.into()), r#"["\ufffd","\\u0000","\\\ufffd","é\u0001","\"\ufffd"]"#);
    }

    #[test]
    fn a_preview_is_the_beginning_of_the_text_or_of_the_json() {
        assert_eq!(preview(r#""a\u0000\n""#), "a\u{fffd}\n");
        assert_eq!(preview(r#"{"b":1,"a":2}"#), r#"{"b":1,"a":2}"#);
        assert_eq!(preview(&format!("\"{}\"", "ä".repeat(500))).chars().count(), 240);
    }

    #[test]
    fn pretty_json_has_the_same_values_in_the_same_order() {
        let text = r#"{"z":[1, 2,{"a b":"x,{ \" y\\"}],"a":{},"b":[ ],"c":null}"#;
        let lines = pretty(text);
        assert_eq!(
            lines,
            "{\n    \"z\": [\n        1,\n        2,\n        {\n            \"a b\": \"x,{ \\\" y\\\\\"\n        }\n    ],\n    \"a\": {},\n    \"b\": [],\n    \"c\": null\n}"
        );
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(parse(&lines), parse(text));
    }
}
