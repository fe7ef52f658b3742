//! Point 6: slots, queue, fairness, cancellation, restarts, recycling, and nothing left behind.

mod support;

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, future::join_all, stream::FuturesUnordered};
use parking_lot::Mutex;
use pml_worker::{Call, CallError, Failure, Json, Limits, Pool, PoolConfig, Run, StartError};
use serde_json::json;
use support::{config, pool, program, tools, until};
use tokio::sync::Semaphore;

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn state_of(pid: &str) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// The children of this process that have ended and were not reaped.
fn zombies() -> usize {
    let me = std::process::id().to_string();
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            let mut fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
            fields.next() == Some("Z") && fields.next() == Some(me.as_str())
        })
        .count()
}

#[tokio::test]
async fn processes_are_there_before_the_first_run() {
    let pool = Pool::start(PoolConfig { slots: 3, ..config() }).await.unwrap();
    until("three idle processes", || pool.idle_pids().len() == 3).await;
    let before = pool.idle_pids();
    pool.run(Run::new("test", "return 1"), &tools).await.result.unwrap();
    let mut after = pool.idle_pids();
    after.sort_unstable();
    let mut before = before;
    before.sort_unstable();
    assert_eq!(before, after, "the run used one of them and gave it back");
}

#[tokio::test]
async fn the_process_that_ran_last_runs_next() {
    let pool = Pool::start(PoolConfig { slots: 3, ..config() }).await.unwrap();
    until("three idle processes", || pool.idle_pids().len() == 3).await;
    let all = pool.idle_pids();
    let used = Mutex::new(Vec::new());
    let note = async |call: Call| -> Result<Json, CallError> {
        let idle = pool.idle_pids();
        used.lock().extend(all.iter().copied().filter(|pid| !idle.contains(pid)));
        Ok(call.args)
    };
    // Not at once, while the process still replaces its engine.
    let had_the_same = || used.lock().windows(2).any(|pids| pids[0] == pids[1]);
    for _ in 0..10_000 {
        pool.run(Run::new("test", "await mcp.a.b()"), &note).await.result.unwrap();
        if had_the_same() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the processes took turns");
}

#[tokio::test]
async fn a_process_at_rest_returns_the_memory_of_a_large_run() {
    let pool = Pool::start(PoolConfig { slots: 1, ..config() }).await.unwrap();
    let pid = pool.idle_pids()[0];
    let code = "const a = Array.from({ length: 3e5 }, (_, i) => ({ i })); return a.length";
    let limits = Limits { cpu_time: Duration::from_secs(60), ..Limits::default() };
    let outcome = pool.run(Run::new("test", code).with_limits(limits), &tools).await;
    assert_eq!(outcome.result.unwrap(), json!(300_000));
    assert!(outcome.usage.memory_peak > 16 << 20);
    let resident = || -> u64 {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    until("the memory to be returned", || resident() < 8 * 1024).await;
}

#[tokio::test]
async fn a_full_queue_refuses_with_a_clear_error() {
    let pool = Pool::start(PoolConfig { slots: 1, queue: 2, queue_per_tenant: 2, ..config() }).await.unwrap();
    let gate = Semaphore::new(0);
    let handler = async |call: Call| -> Result<Json, CallError> {
        gate.acquire().await.unwrap().forget();
        Ok(call.args)
    };
    let handler = |call: Call| handler(call);
    let mut runs: FuturesUnordered<_> = (0..4)
        .map(|n| pool.run(Run::new("test", "return await mcp.a.b(args)").with_args(json!(n)), &handler))
        .collect();
    let refused = runs.next().await.unwrap().result.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the queue is full: 2 runs wait for this tenant, which is the most allowed; try again later or raise queue_per_tenant (pml: worker_queue_per_tenant)"
    );
    gate.add_permits(3);
    let served = runs.filter(|outcome| std::future::ready(outcome.result.is_ok())).count().await;
    assert_eq!(served, 3);
}

#[tokio::test]
async fn a_tenant_with_many_runs_does_not_starve_another() {
    let pool = Pool::start(PoolConfig { slots: 1, ..config() }).await.unwrap();
    let order = Mutex::new(Vec::new());
    let handler = |call: Call| {
        order.lock().push(call.tenant.name().clone());
        async { Ok(Json::null()) }
    };
    let code = "return await mcp.a.b()";
    let busy = join_all((0..20).map(|_| pool.run(Run::new("busy", code), &handler)));
    let quiet = join_all((0..3).map(|_| pool.run(Run::new("quiet", code), &handler)));
    tokio::join!(busy, quiet);
    let order = order.into_inner();
    let last_quiet = order.iter().rposition(|tenant| &**tenant == "quiet").unwrap();
    // Shares are of computing time, so that the order differs from run to run; in the order of arrival it would be 22.
    assert!(last_quiet <= 11, "{order:?}");
}

#[tokio::test]
async fn dropping_the_future_kills_the_run_and_frees_the_slot() {
    let pool = Pool::start(PoolConfig { slots: 1, ..config() }).await.unwrap();
    for code in [
        "for (;;);",
        "await mcp.test.never()",
        "return Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)",
    ] {
        until("an idle process", || pool.idle_pids().len() == 1).await;
        let pid = pool.idle_pids()[0];
        {
            let run = pool.run(Run::new("test", code), &tools);
            tokio::pin!(run);
            until("the run to have begun", || {
                assert!((&mut run).now_or_never().is_none());
                pool.idle_pids().is_empty()
                    && state_of(&pid.to_string()).is_some_and(|state| "RS".contains(state))
            })
            .await;
        }
        until("the process to be gone", || !exists(pid)).await;
        let outcome = pool.run(Run::new("test", "return 1"), &tools).await;
        assert_eq!(outcome.result.unwrap(), json!(1));
    }
}

#[tokio::test]
async fn a_run_cancelled_in_the_queue_leaves_it() {
    let pool = Pool::start(PoolConfig { slots: 1, queue: 1, ..config() }).await.unwrap();
    let hold = pool.run(Run::new("test", "await mcp.test.never()"), &tools);
    tokio::pin!(hold);
    assert!((&mut hold).now_or_never().is_none());
    for _ in 0..5 {
        let waiting = pool.run(Run::new("test", "return 1"), &tools);
        tokio::pin!(waiting);
        assert!(
            (&mut waiting).now_or_never().is_none(),
            "it waits, and the place of the one before is free again"
        );
    }
}

#[tokio::test]
async fn a_worker_is_replaced_after_its_runs() {
    let pool = Pool::start(PoolConfig { slots: 1, runs_per_process: 3, ..config() }).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..6 {
        until("an idle process", || pool.idle_pids().len() == 1).await;
        seen.push(pool.idle_pids()[0]);
        pool.run(Run::new("test", "return 1"), &tools).await.result.unwrap();
    }
    assert!(seen[0] == seen[1] && seen[1] == seen[2], "{seen:?}");
    assert!(seen[3] != seen[2] && seen[3] == seen[5], "{seen:?}");
    until("the old one to be reaped", || !exists(seen[0])).await;
}

#[tokio::test]
async fn an_idle_worker_that_dies_is_replaced_and_reaped() {
    let pool = Pool::start(config()).await.unwrap();
    until("both processes", || pool.idle_pids().len() == 2).await;
    let dead = pool.idle_pids();
    for pid in &dead {
        // SAFETY: they are idle workers of this pool.
        unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
    }
    until("both to be reaped", || dead.iter().all(|pid| !exists(*pid))).await;
    assert_eq!(pool.run(Run::new("test", "return 1"), &tools).await.result.unwrap(), json!(1));
    until("two processes again", || pool.processes() == 2).await;
    until("no zombie to be left", || zombies() == 0).await;
}

#[tokio::test]
async fn a_program_that_cannot_start_is_told_at_once() {
    let missing = PoolConfig { program: "/nonexistent/pml-worker".into(), ..config() };
    let error = Pool::start(missing).await.map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("/nonexistent/pml-worker can't be started: No such file"), "{error}");
    let other = PoolConfig { program: "/bin/true".into(), ..config() };
    assert!(matches!(Pool::start(other).await.map(|_| ()), Err(StartError::NotReady(_))));
    assert!(matches!(
        Pool::start(PoolConfig { slots: 0, ..config() }).await.map(|_| ()),
        Err(StartError::Config(_))
    ));
}

#[tokio::test]
async fn a_worker_that_keeps_failing_is_restarted_until_it_works() {
    let dir = std::env::temp_dir().join(format!("pml-worker-pool-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let (script, broken, starts) = (dir.join("worker"), dir.join("broken"), dir.join("starts"));
    // Works while there is no file `broken`, and counts how often it is started while there is.
    let text = format!(
        "#!/bin/sh\nif [ -e '{}' ]; then echo >> '{}'; exit 1; fi\nexec '{}' \"$@\"\n",
        broken.display(),
        starts.display(),
        program().display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let pool =
        Pool::start(PoolConfig { program: script, slots: 1, runs_per_process: 1, ..config() }).await.unwrap();
    until("an idle process", || pool.idle_pids().len() == 1).await;
    fs::write(&broken, "").unwrap();
    pool.run(Run::new("test", "return 1"), &tools).await.result.unwrap();
    let failure = pool.run(Run::new("test", "return 1"), &tools).await.result.unwrap_err();
    assert!(
        matches!(&failure, Failure::Unavailable { why } if why.contains("did not get ready")),
        "{failure}"
    );
    let count = || fs::read_to_string(&starts).map_or(0, |text| text.lines().count());
    until("it to be started some more", || count() >= 6).await;
    fs::remove_file(&broken).unwrap();
    until("a process that works", || pool.idle_pids().len() == 1).await;
    assert_eq!(pool.run(Run::new("test", "return 1"), &tools).await.result.unwrap(), json!(1));
    drop(pool);
    fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn closing_lets_runs_finish_and_reaps_everything() {
    let pool = Pool::start(config()).await.unwrap();
    let finished = AtomicUsize::new(0);
    let gate = Semaphore::new(0);
    let handler = async |call: Call| -> Result<Json, CallError> {
        gate.acquire().await.unwrap().forget();
        finished.fetch_add(1, Ordering::Relaxed);
        Ok(call.args)
    };
    let handler = |call: Call| handler(call);
    let running = pool.run(Run::new("test", "return await mcp.a.b(1)"), &handler);
    tokio::pin!(running);
    assert!((&mut running).now_or_never().is_none());
    let close = async {
        let closing = pool.close();
        tokio::pin!(closing);
        assert!((&mut closing).now_or_never().is_none());
        let refused = pool.run(Run::new("test", "return 1"), &tools).await;
        assert!(matches!(refused.result, Err(Failure::Closed)), "{:?}", refused.result);
        gate.add_permits(1);
        closing.await;
    };
    let (outcome, ()) = tokio::join!(&mut running, close);
    assert_eq!(outcome.result.unwrap(), json!(1));
    assert_eq!((finished.load(Ordering::Relaxed), pool.processes()), (1, 0));
    until("no zombie to be left", || zombies() == 0).await;
}

#[tokio::test]
async fn dropping_the_pool_leaves_no_process() {
    let pool = Pool::start(config()).await.unwrap();
    until("both processes", || pool.idle_pids().len() == 2).await;
    let pids = pool.idle_pids();
    drop(pool);
    until("the processes to be gone", || pids.iter().all(|pid| !exists(*pid))).await;
}

#[tokio::test]
async fn runs_nested_too_deep_are_refused() {
    let pool = Pool::start(PoolConfig { deepest: 1, ..config() }).await.unwrap();
    let mut run = Run::new("test", "return 1");
    run.depth = 2;
    let failure = pool.run(run, &tools).await.result.unwrap_err().to_string();
    assert_eq!(
        failure,
        "the run was not started: capabilities call each other 2 deep, and at most 1 is allowed (pml: run_depth)"
    );
}

/// Run by the next test in a process of its own, which is then killed.
#[tokio::test]
async fn helper_that_runs_forever() {
    if std::env::var_os("PML_WORKER_TEST_HELPER").is_none() {
        return;
    }
    let pool = Pool::start(config()).await.unwrap();
    until("both processes", || pool.idle_pids().len() == 2).await;
    println!("pids {:?}", pool.idle_pids());
    // One that the engine would notice, and one that it wouldn't; neither meets a limit.
    let hour = Duration::from_secs(3600);
    let run = |code: &str| {
        let limits = Limits { cpu_time: hour, wall_time: hour, ..Limits::default() };
        pool.run(Run::new("test", code).with_limits(limits), &tools)
    };
    tokio::join!(run("for (;;);"), run("return Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)"));
}

#[tokio::test]
async fn no_worker_outlives_a_parent_that_is_killed() {
    use std::io::{BufRead, BufReader};
    let mut parent = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "helper_that_runs_forever", "--nocapture"])
        .env("PML_WORKER_TEST_HELPER", "1")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("pids [")).unwrap();
    let list = line.split_once('[').unwrap().1.split_once(']').unwrap().0;
    let pids: Vec<u32> = list.split(", ").map(|pid| pid.parse().unwrap()).collect();
    until("both workers to compute", || pids.iter().all(|pid| state_of(&pid.to_string()) == Some('R'))).await;
    parent.kill().unwrap();
    parent.wait().unwrap();
    // Gone, or dead and left to the system's first process to reap.
    until("no worker to be alive", || {
        pids.iter().all(|pid| state_of(&pid.to_string()).is_none_or(|state| state == 'Z'))
    })
    .await;
}

#[tokio::test]
async fn a_tenant_that_holds_all_slots_does_not_hold_up_another() {
    let pool = Pool::start(PoolConfig { slots: 2, reserve: 2, ..config() }).await.unwrap();
    let sleepers = join_all((0..8).map(|_| pool.run(Run::new("busy", "await mcp.test.never()"), &tools)));
    tokio::pin!(sleepers);
    assert!((&mut sleepers).now_or_never().is_none());
    assert_eq!((pool.counts().held, pool.counts().waiting), (2, 6));
    for _ in 0..3 {
        let outcome = pool.run(Run::new("quiet", "return 1"), &tools);
        tokio::select! {
            _ = &mut sleepers => panic!("they never end"),
            outcome = outcome => assert_eq!(outcome.result.unwrap(), json!(1)),
        }
    }
    assert_eq!(pool.counts().held, 2);
}

#[tokio::test]
async fn waiting_runs_hold_no_more_bytes_than_allowed() {
    let pool = Pool::start(PoolConfig { slots: 1, queue_bytes_per_tenant: 100, ..config() }).await.unwrap();
    let hold = pool.run(Run::new("test", "await mcp.test.never()"), &tools);
    tokio::pin!(hold);
    assert!((&mut hold).now_or_never().is_none());
    let large = Run::new("test", "return 1").with_args(json!("x".repeat(100)));
    assert_eq!(
        pool.run(large, &tools).await.result.unwrap_err().to_string(),
        "the queue is full: waiting runs of this tenant hold 100 bytes of code and arguments, which is the most allowed; \
         try again later or raise queue_bytes_per_tenant (pml: worker_queue_bytes_per_tenant)"
    );
}

#[tokio::test]
async fn a_run_that_waits_for_a_person_gives_its_slot_back_and_takes_one_again() {
    let pool = Pool::start(PoolConfig { slots: 1, reserve: 0, ..config() }).await.unwrap();
    let (asked, answered) = (Semaphore::new(0), Semaphore::new(0));
    let person = async |call: Call| -> Result<Json, CallError> {
        let pause = call.clock.pause();
        asked.add_permits(1);
        answered.acquire().await.unwrap().forget();
        drop(pause);
        Ok(call.args)
    };
    let person = |call: Call| person(call);
    let asks = pool.run(Run::new("test", "return await mcp.a.person(7)"), &person);
    let meanwhile = async {
        asked.acquire().await.unwrap().forget();
        until("the slot is given back", || pool.counts().held == 0).await;
        assert_eq!(pool.stepped_aside(), 1);
        let outcome = pool.run(Run::new("test", "return 1"), &tools).await;
        assert_eq!(outcome.result.unwrap(), json!(1));
        // It goes on only with a slot.
        let gate = Semaphore::new(0);
        let holding = async |_: Call| -> Result<Json, CallError> {
            gate.acquire().await.unwrap().forget();
            Ok(Json::null())
        };
        let holding = |call: Call| holding(call);
        let holds = pool.run(Run::new("other", "return await mcp.a.b()"), &holding);
        let checks = async {
            until("the slot is taken", || pool.counts().held == 1).await;
            answered.add_permits(1);
            until("it wants a slot again", || pool.counts().waiting == 1).await;
            assert_eq!(pool.stepped_aside(), 1);
            gate.add_permits(1);
        };
        tokio::join!(holds, checks);
    };
    let (outcome, ()) = tokio::join!(asks, meanwhile);
    assert_eq!(outcome.result.unwrap(), json!(7));
    assert_eq!((pool.counts().held, pool.stepped_aside()), (0, 0));
}

#[tokio::test]
async fn computing_time_is_counted_also_of_a_run_that_is_cancelled() {
    let pool = pool().await;
    let run = Run::new("test", "for (;;);")
        .with_limits(Limits { cpu_time: Duration::from_millis(200), ..Limits::default() });
    let meter = run.cpu.clone();
    pool.run(run, &tools).await.result.unwrap_err();
    assert!(meter.total() >= Duration::from_millis(190), "{meter:?}");

    let run = Run::new("test", "for (;;);");
    let meter = run.cpu.clone();
    let _ = tokio::time::timeout(Duration::from_millis(300), pool.run(run, &tools)).await;
    assert!(!meter.total().is_zero());
}

#[tokio::test]
async fn a_run_that_computes_for_long_goes_behind_the_others() {
    let pool = Pool::start(PoolConfig { slots: 1, ..config() }).await.unwrap();
    until("an idle process", || pool.idle_pids().len() == 1).await;
    let pid = pool.idle_pids()[0].to_string();
    let stat = |process: &str, field: usize| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
        fields.map(str::parse::<i64>).nth(field).and_then(Result::ok)
    };
    let nice = || stat(&pid, 16);
    let session = |process: &str| stat(process, 3);
    // There is no such file on a kernel without autogroups.
    let has_low_session = || {
        let autogroup = fs::read_to_string(format!("/proc/{pid}/autogroup"));
        autogroup.map_or(true, |group| group.trim_end().ends_with("nice 10"))
    };
    assert_ne!(session(&pid), session("self"), "its session can have a priority of its own");
    assert_ne!(nice(), Some(19));
    let run = pool.run(Run::new("test", "for (;;);"), &tools);
    tokio::select! {
        _ = run => panic!("it never ends"),
        () = until("low priority", || nice() == Some(19) && has_low_session()) => {}
    }
    let outcome = pool.run(Run::new("test", "return 1"), &tools).await;
    assert_eq!(outcome.result.unwrap(), json!(1), "in another process");
}
