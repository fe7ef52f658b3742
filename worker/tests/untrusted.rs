//! What the pool does with a process that has been taken over and says whatever it likes.

mod support;

use std::{fs, path::PathBuf, time::Duration};

use pml_worker::{
    CallKind, Failure, LimitKind, Limits, LogLevel, Outcome, Pool, PoolConfig, Run, Unawaited,
    protocol::{FromWorker, append_frame},
};
use support::{config, tools, until};

/// A worker that greets as it should and then, once it has a run, sends these bytes and stays.
struct Impostor {
    dir: PathBuf,
    pool: Pool,
}

impl Impostor {
    async fn new(name: &str, bytes: &[u8]) -> Impostor {
        Impostor::that_then(name, bytes, "exec /bin/sleep 1000").await
    }

    async fn that_then(name: &str, bytes: &[u8], last: &str) -> Impostor {
        let dir = std::env::temp_dir().join(format!("pml-worker-impostor-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        // The byte with which a worker sends its descriptor, and none with it.
        let greeting = [vec![0], frames(&[FromWorker::Ready { missing: "" }])].concat();
        fs::write(dir.join("greeting"), greeting).unwrap();
        fs::write(dir.join("bytes"), bytes).unwrap();
        let script = dir.join("worker");
        let path = dir.display();
        let wait_for_run = "/usr/bin/head -c 1 > /dev/null";
        let text = format!(
            "#!/bin/sh\n/bin/cat '{path}/greeting' >&0\n{wait_for_run}\n/bin/cat '{path}/bytes' >&0\n{last}\n"
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let pool = Pool::start(PoolConfig { program: script, slots: 1, ..config() }).await.unwrap();
        Impostor { dir, pool }
    }

    async fn run(self) -> Outcome {
        until("the impostor to be ready", || self.pool.idle_pids().len() == 1).await;
        let pid = self.pool.idle_pids()[0];
        let limits = Limits {
            wall_time: Duration::from_secs(5),
            output: 1000,
            logs: 1000,
            calls: 3,
            calls_in_flight: 2,
            trace_events: 2,
            ..Limits::default()
        };
        let outcome = self.pool.run(Run::new("test", "return 1").with_limits(limits), &tools).await;
        until("the impostor to be killed", || !fs::exists(format!("/proc/{pid}")).unwrap()).await;
        fs::remove_dir_all(&self.dir).unwrap();
        outcome
    }
}

fn frames(messages: &[FromWorker<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for message in messages {
        append_frame(&mut bytes, message).unwrap();
    }
    bytes
}

fn call(id: u32, args: &'static str) -> FromWorker<'static> {
    FromWorker::Call { id, node: None, kind: CallKind::Tool, target: "test:never", args }
}

fn done(result: &str) -> FromWorker<'_> {
    done_without(result, &[])
}

fn done_without<'a>(result: &'a str, unawaited: &[u32]) -> FromWorker<'a> {
    FromWorker::Done {
        result: Ok(result),
        unawaited: unawaited.iter().map(|call| Unawaited { call: *call, line: None }).collect(),
        missed: Vec::new(),
        cpu_time: Duration::ZERO,
        memory_peak: 0,
        dropped_events: 0,
    }
}

#[tokio::test]
async fn nonsense_is_a_protocol_failure_and_the_process_is_killed() {
    let long = "x".repeat(5000);
    let cases = [
        ("garbage", vec![0x05, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff]),
        ("huge-length", vec![0xff; 64]),
        ("empty-frame", vec![0; 4]),
        ("greeting", frames(&[FromWorker::Ready { missing: "" }])),
        ("refusal", frames(&[FromWorker::Refused { why: "no" }])),
        ("call-id", frames(&[call(7, "{}")])),
        ("call-twice", frames(&[call(0, "{}"), call(0, "{}")])),
        ("call-not-json", frames(&[call(0, "{")])),
        ("result-not-json", frames(&[done("undefined")])),
        ("two-values", frames(&[done("1 2")])),
        ("after-the-end", frames(&[done("1"), done("2")])),
        ("unmade-call", frames(&[call(0, "{}"), done_without("1", &[1])])),
        ("call-told-twice", frames(&[call(0, "{}"), done_without("1", &[0, 0])])),
        ("long-node", frames(&[FromWorker::Visit { node: &long }])),
        ("long-outcome", frames(&[FromWorker::Decision { node: "n", outcome: &long }])),
        (
            "too-many-events",
            frames(&[
                FromWorker::Visit { node: "a" },
                FromWorker::Visit { node: "b" },
                FromWorker::Visit { node: "c" },
            ]),
        ),
    ];
    for (name, bytes) in cases {
        let outcome = Impostor::new(name, &bytes).await.run().await;
        assert!(matches!(outcome.result, Err(Failure::Protocol { .. })), "{name}: {:?}", outcome.result);
    }
}

#[tokio::test]
async fn limits_hold_even_if_the_worker_ignores_them() {
    let long = format!("\"{}\"", "x".repeat(2000));
    let text = "x".repeat(2000);
    let nothing = || FromWorker::Log { level: LogLevel::Log, text: "" };
    let empty_logs: Vec<_> = (0..2000).map(|_| nothing()).collect();
    let cases = [
        ("output", frames(&[done(&long)]), LimitKind::Output),
        ("logs", frames(&[FromWorker::Log { level: LogLevel::Log, text: &text }]), LimitKind::Logs),
        ("empty-logs", frames(&empty_logs), LimitKind::Logs),
        ("in-flight", frames(&[call(0, "1"), call(1, "1"), call(2, "1")]), LimitKind::CallsInFlight),
        ("silence", Vec::new(), LimitKind::WallTime),
        ("half-a-frame", vec![9, 0, 0, 0, 1], LimitKind::WallTime),
    ];
    for (name, bytes, expected) in cases {
        let outcome = Impostor::new(name, &bytes).await.run().await;
        assert_eq!(support::limit(&outcome), expected, "{name}");
    }
}

#[tokio::test]
async fn a_process_that_dies_between_two_runs_costs_the_second_nothing() {
    // Answers one run, then takes the next and ends without having said that it is ready for it.
    let last = "/usr/bin/head -c 100000 > /dev/null";
    let impostor = Impostor::that_then("dies-between", &frames(&[done("1")]), last).await;
    for _ in 0..3 {
        until("a process", || impostor.pool.idle_pids().len() == 1).await;
        let large = Run::new("test", " ".repeat(200_000));
        let outcome = impostor.pool.run(large, &tools).await;
        assert_eq!(outcome.result.unwrap(), serde_json::json!(1));
    }
    drop(impostor.pool);
    fs::remove_dir_all(&impostor.dir).unwrap();
}
