//! Every program in `hostile/` ends as its first line says, and none of them disturbs another tenant's runs.

mod support;

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use pml_worker::{Failure, Limits, Outcome, Pool, PoolConfig, Run};
use serde_json::{Value, json};
use support::{config, tools};

struct Program {
    name: String,
    expected: String,
    limits: Limits,
    code: String,
}

/// Small, so that the whole corpus runs in seconds. The wall time isn't: a loop runs at low priority, and on a busy
/// machine its CPU time limit can be minutes away.
fn base_limits() -> Limits {
    Limits {
        wall_time: Duration::from_secs(600),
        cpu_time: Duration::from_millis(150),
        memory: 16 << 20,
        output: 1 << 20,
        logs: 16 << 10,
        ..Limits::default()
    }
}

fn parse(name: &str, text: &str) -> Program {
    let header = |key: &str| text.lines().find_map(|line| line.strip_prefix(&format!("// {key}: ")));
    let mut limits = base_limits();
    for setting in header("limits").unwrap_or_default().split_whitespace() {
        let (key, value) = setting.split_once('=').unwrap();
        let digits = value.trim_end_matches(char::is_alphabetic);
        let number: u64 = digits.parse().unwrap();
        let time = || {
            if value.ends_with("ms") { Duration::from_millis(number) } else { Duration::from_secs(number) }
        };
        match key {
            "wall_time" => limits.wall_time = time(),
            "cpu_time" => limits.cpu_time = time(),
            "memory" => limits.memory = number << 20,
            other => panic!("{name}: no limit {other}"),
        }
    }
    let expected = header("expect").unwrap_or_else(|| panic!("{name} doesn't say what to expect")).to_owned();
    Program { name: name.into(), expected, limits, code: text.into() }
}

fn corpus() -> Vec<Program> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
        .iter()
        .map(|file| parse(&file.file_stem().unwrap().to_string_lossy(), &fs::read_to_string(file).unwrap()))
        .collect()
}

/// The outcome in the words of the `expect` line.
fn told(outcome: &Outcome) -> (String, String) {
    match &outcome.result {
        Ok(value) => ("value".into(), value.get().into()),
        Err(Failure::Limit { limit, .. }) => ("limit".into(), limit.to_string()),
        Err(Failure::Thrown(thrown)) => ("thrown".into(), thrown.name.clone()),
        Err(other) => ("failure".into(), other.to_string()),
    }
}

/// `expect` is a list of alternatives; a kind holds for those that follow it, and `thrown` alone allows any error.
fn fits(expected: &str, outcome: &Outcome) -> bool {
    let (kind, what) = told(outcome);
    let mut expected_kind = "";
    expected.split('|').any(|alternative| {
        let (first, rest) = alternative.split_once(' ').unwrap_or((alternative, ""));
        let expected_what = if ["value", "limit", "thrown"].contains(&first) {
            expected_kind = first;
            rest
        } else {
            alternative
        };
        let same = match expected_kind {
            "value" => {
                serde_json::from_str::<Value>(expected_what).unwrap()
                    == serde_json::from_str::<Value>(&what).unwrap_or_default()
            }
            "thrown" => expected_what.is_empty() || expected_what == what,
            _ => expected_what == what,
        };
        expected_kind == kind && same
    })
}

#[tokio::test]
async fn hostile_programs_end_as_expected_and_hurt_nobody() {
    let programs = corpus();
    assert!(programs.len() >= 60, "{} programs", programs.len());
    let pool = Pool::start(PoolConfig { slots: 4, ..config() }).await.unwrap();
    let over = AtomicBool::new(false);
    let served = AtomicUsize::new(0);

    // Another tenant, whose every run must succeed meanwhile.
    let bystander = async {
        let mut n = 0;
        while !over.load(Ordering::Relaxed) {
            n += 1;
            let run = Run::new("bystander", "return await mcp.test.echo(args)").with_args(json!(n));
            assert_eq!(pool.run(run, &tools).await.result.unwrap(), json!(n));
            served.fetch_add(1, Ordering::Relaxed);
        }
    };
    let attack = async {
        let wrong: Vec<String> = stream::iter(&programs)
            .map(|program| async {
                let run = Run::new("hostile", &program.code).with_limits(program.limits.clone());
                let outcome = pool.run(run, &tools).await;
                (!fits(&program.expected, &outcome)).then(|| {
                    format!("{}: expected {}, got {:?}", program.name, program.expected, outcome.result)
                })
            })
            .buffer_unordered(3)
            .filter_map(std::future::ready)
            .collect()
            .await;
        over.store(true, Ordering::Relaxed);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    };
    tokio::join!(bystander, attack);
    assert!(served.into_inner() > programs.len(), "the bystander was served all along");
}

#[test]
fn an_expectation_can_fail() {
    let outcome = |result: Result<Value, Failure>| -> bool {
        fits("limit cpu_time|memory|thrown RangeError|value 1", &outcome_of(result))
    };
    assert!(outcome(Ok(json!(1))));
    assert!(!outcome(Ok(json!(2))));
    assert!(!outcome(Err(Failure::Crashed { how: "x".into() })));
}

fn outcome_of(result: Result<Value, Failure>) -> Outcome {
    // An outcome can only come from a pool; a closed one makes the cheapest.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut outcome = runtime.block_on(async {
        let pool = support::pool().await;
        pool.close().await;
        pool.run(Run::new("test", ""), &tools).await
    });
    outcome.result = result.map(Into::into);
    outcome
}
