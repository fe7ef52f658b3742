//! Calls that the code didn't await: they are waited for, and the outcome says which they were.

mod support;

use std::time::Duration;

use pml_worker::{Answer, Call, CallError, Json, Limits, Outcome, Run};
use serde_json::json;
use support::{pool, run, tools};
use tokio::sync::Notify;

/// Target and line of each.
fn unawaited(outcome: &Outcome) -> Vec<(&str, Option<u32>)> {
    let calls: Vec<_> = outcome.trace.calls().collect();
    outcome.unawaited.iter().map(|left| (calls[left.call as usize].target.as_str(), left.line)).collect()
}

fn answered(outcome: &Outcome) -> usize {
    outcome.trace.calls().filter(|call| !matches!(call.answer, Answer::Unfinished)).count()
}

#[tokio::test]
async fn a_call_left_running_is_waited_for_and_told() {
    let pool = pool().await;
    let (returned, written) = (Notify::new(), Notify::new());
    // Answers only after the run would long have ended if nobody waited.
    let handler = async |call: Call| -> Result<Json, CallError> {
        if call.target == "fs:write" {
            returned.notified().await;
            written.notify_one();
        } else {
            returned.notify_one();
        }
        Ok(call.args)
    };
    let handler = |call: Call| handler(call);
    let code = "await mcp.a.b();\nmcp.fs.write({ a: 1 });\nmcp.a.b();\nreturn 'done'";
    let outcome = pool.run(Run::new("test", code), &handler).await;
    assert_eq!(*outcome.result.as_ref().unwrap(), json!("done"));
    assert_eq!(unawaited(&outcome), [("fs:write", Some(2)), ("a:b", Some(3))]);
    assert_eq!(answered(&outcome), 3);
    written.notified().await;
}

#[tokio::test]
async fn what_follows_a_call_left_running_still_happens() {
    for code in [
        "mcp.test.echo(1).then(() => mcp.test.describe()); return 1",
        "(async () => { await null; await mcp.test.echo(1); await mcp.test.describe() })(); return 1",
        "Promise.resolve().then(() => mcp.test.echo(1)).then(() => mcp.test.describe()); return 1",
        "(async () => { await mcp.test.echo(1); })(); setTimeout(() => mcp.test.describe(), 0);
         mcp.test.echo().then(() => new Promise((r) => setTimeout(r, 0))).then(() => 1); return 1",
    ] {
        let outcome = run(code).await;
        assert_eq!(*outcome.result.as_ref().unwrap(), json!(1), "{code}");
        let left = unawaited(&outcome);
        assert_eq!((left[0], answered(&outcome)), (("test:echo", Some(1)), left.len()), "{code}");
    }
}

#[tokio::test]
async fn what_the_code_returned_is_what_it_was_then() {
    let outcome =
        run("const got = [];\n[1, 2].map(async (n) => got.push(await mcp.test.echo(n)));\nreturn got").await;
    assert_eq!(*outcome.result.as_ref().unwrap(), json!([]));
    assert_eq!(unawaited(&outcome), [("test:echo", Some(2)), ("test:echo", Some(2))]);
}

#[tokio::test]
async fn a_failure_that_nobody_saw_is_told_whenever_it_came() {
    for code in [
        "mcp.test.fail(); return 1",
        "mcp.test.fail(); await mcp.test.echo(1); await mcp.test.echo(1); return 1",
        "(async () => { await mcp.test.fail() })(); await mcp.test.echo(1); await mcp.test.echo(1); return 1",
    ] {
        let outcome = run(code).await;
        assert_eq!(*outcome.result.as_ref().unwrap(), json!(1), "{code}");
        assert_eq!(unawaited(&outcome), [("test:fail", Some(1))], "{code}");
    }
}

#[tokio::test]
async fn calls_that_were_awaited_are_not_told() {
    for code in [
        "await mcp.test.echo(1); return 1",
        "return mcp.test.echo(1)",
        "await mcp.test.fail().catch(() => 0); return 1",
        "const p = mcp.test.fail(); await mcp.test.echo(1); try { await p } catch {} return 1",
        "await Promise.allSettled([mcp.test.fail(), mcp.test.echo(1)]); return 1",
        "await Promise.race([mcp.test.echo(1)]); return 1",
    ] {
        let outcome = run(code).await;
        assert!(outcome.result.is_ok() && outcome.unawaited.is_empty(), "{code}: {:?}", outcome.unawaited);
    }
    let outcome = run("mcp.test.never(); throw new Error('no')").await;
    assert!(outcome.result.is_err() && outcome.unawaited.is_empty());
}

#[tokio::test]
async fn the_time_limit_ends_the_waiting_but_not_the_run() {
    let pool = pool().await;
    let limits = Limits { wall_time: Duration::from_millis(200), ..Limits::default() };
    let code = "mcp.test.never({}); return await Promise.race([mcp.test.never({}), mcp.test.echo('first')])";
    let outcome = pool.run(Run::new("test", code).with_limits(limits), &tools).await;
    assert_eq!(*outcome.result.as_ref().unwrap(), json!("first"));
    assert_eq!(unawaited(&outcome), [("test:never", Some(1)), ("test:never", Some(1))]);
    assert_eq!(answered(&outcome), 1);
    // The same where the code keeps the engine busy until the end.
    let limits = Limits { wall_time: Duration::from_millis(200), ..Limits::default() };
    let code = "mcp.test.echo(1).then(() => { for (;;); }); return 2";
    let outcome = pool.run(Run::new("test", code).with_limits(limits), &tools).await;
    assert_eq!(*outcome.result.as_ref().unwrap(), json!(2));
    // Nothing that came too late reaches the next run.
    for n in 0..50 {
        let outcome =
            pool.run(Run::new("test", "mcp.test.echo(1); return args").with_args(json!(n)), &tools).await;
        assert_eq!(outcome.result.unwrap(), json!(n));
    }
}

#[tokio::test]
async fn other_limits_hold_for_what_was_left_running() {
    let limits = Limits { calls: 20, ..Limits::default() };
    let code = "(async () => { for (;;) await mcp.test.echo(1) })(); return 1";
    let outcome = pool().await.run(Run::new("test", code).with_limits(limits), &tools).await;
    assert_eq!(support::limit(&outcome), pml_worker::LimitKind::Calls);
}

/// Target and line of each.
fn missed(outcome: &Outcome) -> Vec<(&str, Option<u32>)> {
    outcome.missed.iter().map(|call| (call.target.as_str(), call.line)).collect()
}

#[tokio::test]
async fn a_call_that_a_timer_would_make_after_the_end_is_told_and_not_made() {
    for (code, lines) in [
        ("setTimeout(() => mcp.test.echo(1), 60000); return 1", &[1][..]),
        ("setInterval(() =>\nmcp.test.echo(1), 60000); return 1", &[2]),
        ("const later = async (n) => {\nawait new Promise((done) => setTimeout(done, n * 60000));\nawait mcp.test.echo(n) };
          [1, 2].forEach(later); return 1", &[3, 3]),
        ("setTimeout(() => { throw new Error('no') }, 60000); setTimeout(() => mcp.test.echo(1), 60000); return 1", &[1]),
    ] {
        let outcome = run(code).await;
        assert_eq!(*outcome.result.as_ref().unwrap(), json!(1), "{code}");
        let told: Vec<_> = lines.iter().map(|line| ("test:echo", Some(*line))).collect();
        assert_eq!(missed(&outcome), told, "{code}");
        assert_eq!((outcome.trace.calls().count(), outcome.logs.len()), (0, 0), "{code}");
    }
}

#[tokio::test]
async fn a_pending_timer_that_calls_nothing_changes_nothing() {
    for code in [
        "const late = new Promise((_, fail) => setTimeout(() => fail(new Error('late')), 60000));
         return await Promise.race([late, mcp.test.echo(1)])",
        "setTimeout(() => { for (;;); }, 60000); return 1",
        "setTimeout(() => console.log('never'), 60000); return 1",
        "setTimeout(() => { const kept = []; for (;;) kept.push('x'.repeat(1 << 20) + kept.length) }, 60000); return 1",
        "const timer = setTimeout(() => mcp.test.echo(1), 60000); clearTimeout(timer); return 1",
    ] {
        let outcome = run(code).await;
        assert_eq!(*outcome.result.as_ref().unwrap(), json!(1), "{code}");
        assert!(outcome.missed.is_empty() && outcome.logs.is_empty(), "{code}: {:?}", outcome.logs);
    }
}
