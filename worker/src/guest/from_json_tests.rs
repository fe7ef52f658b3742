use std::thread;

use proptest::prelude::*;
use rquickjs::{CatchResultExt, Context, Ctx, Function, Runtime, Value};

use super::{DEEPEST, HELD_ELEMENTS, parse};

/// Compares values, keys and their order, and prototypes.
const SAME: &str = "(function same(a, b) {
    if (typeof a !== 'object' || a === null) return Object.is(a, b);
    const [ours, theirs] = [Reflect.ownKeys(a), Reflect.ownKeys(b)];
    return Object.getPrototypeOf(a) === Object.getPrototypeOf(b)
        && ours.length === theirs.length
        && ours.every((key, i) => key === theirs[i] && same(
            Object.getOwnPropertyDescriptor(a, key).value, Object.getOwnPropertyDescriptor(b, key).value));
})";

/// The comparison has several of the engine's frames for each level, so it needs more than a test's stack.
const STACK: usize = 32 * 1024 * 1024;

fn in_engine(work: impl FnOnce(&Ctx<'_>) + Send) {
    let run = || {
        let runtime = Runtime::new().unwrap();
        runtime.set_max_stack_size(STACK / 2);
        Context::full(&runtime).unwrap().with(|ctx| work(&ctx));
    };
    let done = thread::scope(|scope| {
        thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).unwrap().join()
    });
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn check(ctx: &Ctx<'_>, text: &str) {
    let same: Function<'_> = ctx.eval(SAME).unwrap();
    let (ours, engines) = (parse(ctx, text).unwrap(), ctx.json_parse(text).unwrap());
    assert!(same.call::<_, bool>((ours, engines)).catch(ctx).unwrap(), "{text}");
}

#[test]
fn values_are_those_that_the_engine_makes() {
    let texts = [
        "null",
        " [ true , false , null ] ",
        "[0, -0, 1, -1, 2147483647, 2147483648, -2147483648, -2147483649]",
        "[1.5, -0.0, 1e3, 1E+3, 1e-7, 5.0, 1e308, 1e400, -1e400, 4.9e-324, 0.1e1, 123456789012345678901234567890]",
        r#"["", "a", "é", "😀", "\u0041\u00e9\ud83d\ude00", "\ud800", "\ude00\ud83d", "\"\\\/\b\f\n\r\t", "\\n", "\\\\"]"#,
        r#"["é\n", "Ж\u0000", "a\\", "\u2028"]"#,
        r#"{"b": 1, "a": 2, "2": 3, "1": 4, "01": 5, "-1": 6, "4294967295": 7, "b": {"b": 8}}"#,
        r#"{"__proto__": {"x": 1}, "constructor": 1, "toString": null, "": 0, "é": 1, "\u00c3\u00a9": 2, "\ud800": 3}"#,
        r#"{"a\u0062": 1, "ab": 2, "length": 3}"#,
        r#"[{"a_rather_long_key_1": 1}, {"a_rather_long_key_2": 1}, {"a_rather_long_key_1": 2}]"#,
    ];
    in_engine(|ctx| texts.iter().for_each(|text| check(ctx, text)));
}

#[test]
fn deep_and_long_values_too() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let numbers = vec!["7"; HELD_ELEMENTS + 10].join(",");
    in_engine(|ctx| {
        for depth in [DEEPEST, DEEPEST + 1, DEEPEST + 2, 2 * DEEPEST] {
            check(ctx, &nested(depth));
        }
        check(ctx, &format!("[{numbers}]"));
        check(ctx, &format!("[\"a\", [{numbers}], [[{numbers}], {{}}], \"b\"]"));
    });
}

#[test]
fn setters_of_prototypes_are_not_called() {
    in_engine(|ctx| {
        let trap =
            "for (const p of [Object.prototype, Array.prototype]) for (const k of ['a', '0', 'toJSON'])
            Object.defineProperty(p, k, { set() { throw new Error(k) }, configurable: true })";
        ctx.eval::<(), _>(trap).unwrap();
        check(ctx, r#"{"a": 1, "0": 2, "toJSON": [1, 2, {"a": 3}]}"#);
    });
}

#[test]
fn what_is_not_json_is_the_engines_error() {
    let texts = [
        "",
        "[",
        "{",
        "[1,]",
        "{\"a\"}",
        "{\"a\":1,}",
        "01",
        "1.",
        "-",
        "1e",
        "\"",
        "\"\\",
        "\"\\x\"",
        "nul",
        "1 2",
    ];
    in_engine(|ctx| {
        for text in texts {
            let message = |result: rquickjs::Result<Value<'_>>| result.catch(ctx).unwrap_err().to_string();
            let (ours, engines) = (message(parse(ctx, text)), message(ctx.json_parse(text)));
            assert_eq!(ours, engines, "{text}");
        }
    });
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
            prop::collection::vec((".{0,20}", inner), 0..8)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_the_engines(value in any_json()) {
        in_engine(|ctx| {
            check(ctx, &value.to_string());
            check(ctx, &serde_json::to_string_pretty(&value).unwrap());
        });
    }
}
