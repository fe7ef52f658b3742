//! Point 4: each limit has an error of its own that says which and how much, inside the worker and from outside.

mod support;

use std::time::Duration;

use pml_worker::{Call, CallError, Failure, LimitKind, Limits, Outcome, Run};
use serde_json::json;
use support::{limit, pool, tools};

async fn run_within(code: &str, limits: Limits) -> Outcome {
    pool().await.run(Run::new("test", code).with_limits(limits), &tools).await
}

#[tokio::test]
async fn each_limit_names_itself_and_its_value() {
    let short = Duration::from_millis(100);
    // A loop runs at low priority, and on a busy machine its CPU time limit can be minutes away.
    let defaults = || Limits { wall_time: Duration::from_secs(600), ..Limits::default() };
    let cases = [
        ("for (;;);", Limits { wall_time: short, ..defaults() }, "wall_time (100ms)"),
        ("await mcp.test.never()", Limits { wall_time: short, ..defaults() }, "wall_time (100ms)"),
        (
            "await new Promise((r) => setTimeout(r, 1e6))",
            Limits { wall_time: short, ..defaults() },
            "wall_time (100ms)",
        ),
        ("for (;;);", Limits { cpu_time: short, ..defaults() }, "cpu_time (100ms)"),
        (
            "const a = []; for (;;) a.push({})",
            Limits { memory: 4 << 20, ..defaults() },
            "memory (4194304 bytes)",
        ),
        ("const f = () => f() + 1; f()", defaults(), "stack (524288 bytes)"),
        ("return 'x'.repeat(2000)", Limits { output: 1000, ..defaults() }, "output (1000 bytes)"),
        (
            "await mcp.test.echo('x'.repeat(2000))",
            Limits { output: 1000, ..defaults() },
            "output (1000 bytes)",
        ),
        (
            "for (let i = 0; i < 3; i++) await mcp.test.echo('x'.repeat(400))",
            Limits { output: 1000, ..defaults() },
            "output (1000 bytes)",
        ),
        ("for (;;) console.log('line')", Limits { logs: 1000, ..defaults() }, "logs (1000 bytes)"),
        (
            "for (;;) await mcp.test.echo(1).catch(() => 0)",
            Limits { calls: 7, ..defaults() },
            "calls (7 calls)",
        ),
        (
            "await Promise.all(Array.from({ length: 9 }, () => mcp.test.echo(1)))",
            Limits { calls_in_flight: 8, ..defaults() },
            "calls_in_flight (8 calls at once)",
        ),
    ];
    for (code, limits, expected) in cases {
        let outcome = run_within(code, limits).await;
        limit(&outcome);
        let message = outcome.result.unwrap_err().to_string();
        assert!(message.starts_with(&format!("the run met its limit {expected}: ")), "{code}\n{message}");
    }
}

#[tokio::test]
async fn a_run_just_within_its_limits_succeeds() {
    let limits = Limits { output: 12, calls: 2, calls_in_flight: 2, logs: 3, ..Limits::default() };
    let outcome = run_within(
        "console.log('abc'); await Promise.all([mcp.test.echo(1), mcp.test.echo(2)]); return '12345678'",
        limits,
    )
    .await;
    assert_eq!(outcome.result.unwrap(), json!("12345678"));
    assert_eq!((outcome.usage.output, outcome.usage.calls, outcome.usage.logs), (12, 2, 3));
    assert!(outcome.usage.memory_peak > 0 && outcome.usage.wall_time > Duration::ZERO);
}

#[tokio::test]
async fn the_code_cannot_catch_a_time_limit() {
    let limits = Limits { cpu_time: Duration::from_millis(50), ..Limits::default() };
    for code in [
        "try { for (;;); } catch {} finally { for (;;); }",
        "const f = async () => { for (;;); }; try { await f() } catch { return 'escaped' } return 'escaped'",
        "await f(); async function f() { try { for (;;); } finally { await f() } }",
        "new Promise(() => { for (;;); }).catch(() => 1); return 'escaped'",
    ] {
        assert_eq!(limit(&run_within(code, limits.clone()).await), LimitKind::CpuTime, "{code}");
    }
}

#[tokio::test]
async fn memory_and_stack_errors_may_be_caught() {
    let code = "try { new Array(1e8).fill(0) } catch (e) { return e.message }";
    assert_eq!(
        run_within(code, Limits { memory: 8 << 20, ..Limits::default() }).await.result.unwrap(),
        json!("out of memory")
    );
    let code = "const f = () => f(); try { f() } catch (e) { return e.name }";
    assert_eq!(run_within(code, Limits::default()).await.result.unwrap(), json!("RangeError"));
}

#[tokio::test]
async fn the_memory_limit_is_named_even_if_none_is_left_for_the_error() {
    // One run in forty leaves the engine without memory for the error's message.
    let code = "const again = () => Promise.resolve().then(again); await again()";
    let limits = Limits { memory: 16 << 20, wall_time: Duration::from_secs(600), ..Limits::default() };
    let pool = pool().await;
    for _ in 0..40 {
        let outcome = pool.run(Run::new("test", code).with_limits(limits.clone()), &tools).await;
        assert_eq!(limit(&outcome), LimitKind::Memory);
    }
}

#[tokio::test]
async fn what_the_engine_does_not_notice_is_ended_from_outside() {
    // indexOf over 2^53 missing elements never asks the engine whether it may go on.
    let code = "return Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)";
    let patient = Limits { wall_time: Duration::from_secs(600), ..Limits::default() };
    let cpu = Limits { cpu_time: Duration::from_millis(100), ..patient };
    assert_eq!(limit(&run_within(code, cpu).await), LimitKind::CpuTime);
    let wall = Limits { wall_time: Duration::from_millis(100), ..Limits::default() };
    let pool = pool().await;
    let outcome = pool.run(Run::new("test", code).with_limits(wall), &tools).await;
    assert_eq!(limit(&outcome), LimitKind::WallTime);
    // The process was killed; the pool has another.
    assert_eq!(pool.run(Run::new("test", "return 1"), &tools).await.result.unwrap(), json!(1));
}

#[tokio::test]
async fn a_waiting_run_that_nothing_will_wake_ends_at_once() {
    let outcome = run_within("await new Promise(() => {})", Limits::default()).await;
    let message = outcome.result.unwrap_err().to_string();
    assert!(message.contains("a promise that nothing will settle"), "{message}");
}

#[tokio::test]
async fn limits_that_make_no_sense_are_refused() {
    for limits in [
        Limits { memory: 1 << 40, ..Limits::default() },
        Limits { stack: 1 << 30, ..Limits::default() },
        Limits { wall_time: Duration::ZERO, ..Limits::default() },
    ] {
        let outcome = run_within("return 1", limits).await;
        assert!(matches!(outcome.result, Err(Failure::Invalid { .. })), "{:?}", outcome.result);
    }
    let limits = Limits { memory: 1 << 20, ..Limits::default() };
    let large = Run::new("test", "return 1").with_args(json!("x".repeat(2 << 20))).with_limits(limits);
    assert_eq!(limit(&pool().await.run(large, &tools).await), LimitKind::Memory);
}

#[tokio::test]
async fn a_large_answer_counts_as_memory() {
    let pool = pool().await;
    let larger_than_the_heap = |_call: Call| async { Ok(json!("x".repeat(5 << 20)).into()) };
    let limits = Limits { memory: 4 << 20, ..Limits::default() };
    let run = Run::new("test", "return (await mcp.a.b()).length").with_limits(limits);
    assert_eq!(limit(&pool.run(run, &larger_than_the_heap).await), LimitKind::Memory);
    let large = |_call: Call| async { Ok(json!(vec![0; 3 << 20]).into()) };
    let limits = Limits { memory: 4 << 20, ..Limits::default() };
    let outcome =
        pool.run(Run::new("test", "return (await mcp.a.b()).length").with_limits(limits), &large).await;
    assert_eq!(limit(&outcome), LimitKind::Memory);
}

#[tokio::test]
async fn time_stands_still_while_a_call_pauses_the_clock() {
    let limits = Limits { wall_time: Duration::from_millis(300), ..Limits::default() };
    let waits_for_a_person = async |call: Call| {
        let _pause = call.clock.pause();
        tokio::time::sleep(Duration::from_millis(900)).await;
        Ok(json!("yes").into())
    };
    let asks = "return [await mcp.person.ask(), await mcp.person.ask()]";
    let outcome =
        pool().await.run(Run::new("test", asks).with_limits(limits.clone()), &waits_for_a_person).await;
    assert_eq!(outcome.result.unwrap(), json!(["yes", "yes"]));
    let forgets_the_time = "await mcp.person.ask(); for (;;);";
    let outcome =
        pool().await.run(Run::new("test", forgets_the_time).with_limits(limits), &waits_for_a_person).await;
    assert_eq!(limit(&outcome), LimitKind::WallTime);
}

#[tokio::test]
async fn a_nested_run_that_waits_stops_the_time_of_those_around_it() {
    let limits = Limits { wall_time: Duration::from_millis(300), ..Limits::default() };
    let pool = pool().await;
    let person = async |call: Call| {
        let _pause = call.clock.pause();
        tokio::time::sleep(Duration::from_millis(900)).await;
        Ok(json!("yes").into())
    };
    let nested = async |call: Call| {
        let run = call.nested_run("return await mcp.person.ask()", json!({}).into());
        pool.run(run, &person).await.result.map_err(|error| CallError::new(error.to_string()))
    };
    let run = Run::new("test", "return await mcp.capability.nested()").with_limits(limits);
    assert_eq!(pool.run(run, &nested).await.result.unwrap(), json!("yes"));
}
