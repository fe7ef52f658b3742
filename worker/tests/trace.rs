//! Point 3: the run reports its path, its decisions and its calls.

mod support;

use pml_worker::{Answer, Failure, Limits, Run, TraceEvent};
use serde_json::json;
use support::{pool, run, tools};

#[tokio::test]
async fn nodes_and_decisions_come_in_order() {
    let outcome = run(
        "__pml.visit('f1');
         const [a] = await Promise.all([__pml.at('n1', mcp.test.echo)({ ok: true }), __pml.at('n2', mcp.test.echo)(2)]);
         if (__pml.branch('d1', a.ok)) await __pml.at('n3', mcp.test.echo)();
         __pml.nullish('d2', null) ?? 1;
         __pml.branch('d3', '') || __pml.nullish('d4', 0);
         switch (2) { case 2: __pml.outcome('d5', 'case:2') }
         try { await __pml.at('n4', mcp.test.fail)() } catch { __pml.outcome('d6', 'catch') }
         return 1",
    )
    .await;
    assert_eq!(outcome.result.unwrap(), json!(1));
    let path: Vec<_> = outcome.trace.path().collect();
    assert_eq!(path, ["f1", "n1", "n2", "d1", "n3", "d2", "d3", "d4", "d5", "n4", "d6"]);
    let decisions: Vec<_> = outcome.trace.decisions().collect();
    assert_eq!(
        decisions,
        [("d1", "true"), ("d2", "true"), ("d3", "false"), ("d4", "false"), ("d5", "case:2"), ("d6", "catch")]
    );
}

#[tokio::test]
async fn each_call_has_arguments_answer_start_and_duration() {
    let outcome =
        run("await mcp.test.echo({ a: 1 }); await mcp.test.fail('x').catch(() => 0); return 1").await;
    let calls: Vec<_> = outcome.trace.calls().collect();
    assert_eq!(calls[0].args, json!({"a": 1}));
    assert!(matches!(&calls[0].answer, Answer::Result(value) if *value == json!({"a": 1})));
    assert!(matches!(&calls[1].answer, Answer::Error(error) if error.message == "no such file"));
    assert!(calls[0].start + calls[0].duration <= calls[1].start);
    assert!(calls[1].start + calls[1].duration <= outcome.usage.wall_time);
}

#[tokio::test]
async fn a_failed_run_keeps_its_trace_and_logs() {
    let pool = pool().await;
    let limits = Limits { wall_time: std::time::Duration::from_millis(50), ..Limits::default() };
    let code = "console.log('begun'); await __pml.at('n1', mcp.test.echo)(1); __pml.visit('l1'); for (;;);";
    let outcome = pool.run(Run::new("test", code).with_limits(limits), &tools).await;
    assert!(
        matches!(&outcome.result, Err(Failure::Limit { node: Some(node), .. }) if node == "l1"),
        "{:?}",
        outcome.result
    );
    assert_eq!(outcome.trace.path().collect::<Vec<_>>(), ["n1", "l1"]);
    assert_eq!(outcome.logs[0].text, "begun");
    // The same when the process is killed from outside: what was sent before counts.
    let pool = pool.clone();
    let pid = std::sync::atomic::AtomicU32::new(0);
    let before = pool.idle_pids();
    let kill = |call: pml_worker::Call| {
        let busy: Vec<u32> = before.iter().copied().filter(|pid| !pool.idle_pids().contains(pid)).collect();
        pid.store(busy.first().copied().unwrap_or(0), std::sync::atomic::Ordering::Relaxed);
        for pid in busy {
            // SAFETY: the process is a worker of this pool that is in use.
            unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
        }
        async move { Ok(call.args) }
    };
    let outcome = pool
        .run(Run::new("test", "console.log('x'); await __pml.at('n1', mcp.a.b)(1); for (;;);"), &kill)
        .await;
    assert!(matches!(outcome.result, Err(Failure::Crashed { .. })), "{:?}", outcome.result);
    assert_eq!(outcome.trace.path().collect::<Vec<_>>(), ["n1"]);
    assert_eq!(outcome.logs[0].text, "x");
}

#[tokio::test]
async fn a_long_trace_is_cut_and_says_so() {
    let pool = pool().await;
    let limits = Limits { trace_events: 10, ..Limits::default() };
    let code =
        "for (let i = 0; i < 1000; i++) __pml.visit('l1'); await __pml.at('n1', mcp.test.echo)(1); return 1";
    let outcome = pool.run(Run::new("test", code).with_limits(limits), &tools).await;
    assert_eq!(outcome.result.unwrap(), json!(1));
    assert_eq!((outcome.trace.events.len(), outcome.trace.dropped), (11, 990));
    assert!(matches!(outcome.trace.events[10], TraceEvent::Call(_)), "calls are never cut");
}

#[tokio::test]
async fn an_outcome_serialises_for_storage() {
    let outcome = run("__pml.branch('d1', 1); return await __pml.at('n1', mcp.test.echo)({ a: 1 })").await;
    let stored = serde_json::to_value(&outcome).unwrap();
    assert_eq!(stored["result"], json!({"Ok": {"a": 1}}));
    assert_eq!(stored["trace"]["events"][0], json!({"event": "decision", "node": "d1", "outcome": "true"}));
    assert_eq!(stored["trace"]["events"][1]["answer"], json!({"result": {"a": 1}}));
}
