//! Point 5: the doors of the confined process, tried from inside it, and what happens on a kernel that lacks a layer.

mod support;

use std::{collections::HashSet, fs, process::Command};

use pml_worker::{Layer, Pool, PoolConfig, Run, StartError};
use serde_json::json;
use support::{config, pool, program, run, tools, until};

/// The lines of `pml-worker doors`: verdict, door, how.
fn doors(options: &[&str]) -> Vec<(String, String)> {
    let output = Command::new(program()).arg("doors").args(options).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().map(|line| line.split_once(char::is_whitespace).unwrap()).collect();
    lines.into_iter().map(|(verdict, door)| (verdict.to_owned(), door.trim().to_owned())).collect()
}

#[test]
fn every_door_is_shut() {
    let doors = doors(&[]);
    for (verdict, door) in &doors {
        // Killed, not merely refused: an error could have another cause than the confinement.
        assert!(verdict == "shut" && door.ends_with(": killed by the filter"), "{verdict} {door}");
    }
    let tried: HashSet<&str> = doors.iter().filter_map(|(_, door)| door.split(':').next()).collect();
    for door in [
        "read a file",
        "write a file",
        "read /proc",
        "TCP",
        "UDP",
        "unix sockets",
        "fork",
        "execute a program",
        "ptrace the parent",
        "read the parent's memory",
        "open the parent's memory",
        "io_uring",
        "executable memory",
    ] {
        assert!(tried.contains(door), "{door} was not tried");
    }
}

#[test]
fn landlock_alone_keeps_files_and_the_parent_away() {
    let doors = doors(&["--pretend-missing", "seccomp", "--allow-missing", "seccomp"]);
    let shut: HashSet<&str> = doors
        .iter()
        .filter(|(verdict, _)| verdict == "shut")
        .filter_map(|(_, door)| door.split(':').next())
        .collect();
    for door in [
        "read a file",
        "write a file",
        "read /proc",
        "TCP",
        "ptrace the parent",
        "read the parent's memory",
        "execute a program",
    ] {
        assert!(shut.contains(door), "{door}");
    }
    // The probes can find an open door: without the filter, this one is.
    assert!(
        doors.iter().any(|(verdict, door)| verdict == "OPEN" && door.starts_with("executable memory")),
        "{doors:?}"
    );
}

#[test]
fn without_the_layers_doors_are_open() {
    // Shows that it is the layers that shut the doors: with both left out, memory may be executable again.
    let both = [
        "--pretend-missing",
        "seccomp",
        "--allow-missing",
        "seccomp",
        "--pretend-missing",
        "landlock",
        "--allow-missing",
        "landlock",
    ];
    let doors = doors(&both);
    let open: Vec<_> =
        doors.iter().filter(|(verdict, _)| verdict == "OPEN").map(|(_, door)| door.as_str()).collect();
    assert!(open.iter().any(|door| door.starts_with("signal the parent")), "{open:?}");
    assert!(open.iter().any(|door| door.starts_with("executable memory")), "{open:?}");
}

#[tokio::test]
async fn the_kernel_says_the_same_of_a_worker_that_serves() {
    let pool = pool().await;
    let pid = pool.idle_pids()[0];
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("Seccomp:"), "2", "a filter");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    assert_eq!(field("Threads:"), "1");
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    for (name, most) in [
        ("Max open files", "1"),
        // The pool's memory ceiling of 256 MiB and what the process itself needs.
        ("Max address space", "402653184"),
        ("Max processes", "0"),
        ("Max core file size", "0"),
        ("Max file size", "0"),
    ] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(line[name.len()..].split_whitespace().next(), Some(most), "{line}");
    }
    // Only root may look at the descriptors and the environment of a process that isn't dumpable.
    if rustix::process::geteuid().is_root() {
        let descriptors: Vec<_> =
            fs::read_dir(format!("/proc/{pid}/fd")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(descriptors, ["0"]);
        assert_eq!(fs::read(format!("/proc/{pid}/environ")).unwrap(), b"");
    }
}

#[tokio::test]
async fn a_descriptor_that_the_parent_forgot_to_mark_is_closed() {
    let file = fs::File::open("/etc/passwd").unwrap();
    // SAFETY: clears the close-on-exec flag of a descriptor that this test owns.
    unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&file), libc::F_SETFD, 0) };
    let pool = pool().await;
    if rustix::process::geteuid().is_root() {
        let pid = pool.idle_pids()[0];
        assert_eq!(fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(), 1);
    }
    assert_eq!(pool.run(Run::new("test", "return 1"), &tools).await.result.unwrap(), json!(1));
}

/// A program that starts the worker as if the kernel lacked a layer.
fn pretending(dir: &std::path::Path, layer: &str) -> std::path::PathBuf {
    let script = dir.join(format!("without-{layer}"));
    let text = format!("#!/bin/sh\nexec '{}' \"$@\" --pretend-missing {layer}\n", program().display());
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    script
}

#[tokio::test]
async fn on_a_kernel_that_lacks_a_layer_the_worker_refuses_unless_told_otherwise() {
    let dir = std::env::temp_dir().join(format!("pml-worker-confinement-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    for (layer, name) in [(Layer::Landlock, "landlock"), (Layer::Seccomp, "seccomp")] {
        let strict = PoolConfig { program: pretending(&dir, name), ..config() };
        match Pool::start(strict.clone()).await.map(|_| ()) {
            Err(StartError::Refused(why)) => {
                assert!(
                    why.starts_with(&format!("this kernel has no {name}")) && why.contains("--allow-missing"),
                    "{why}"
                );
            }
            other => panic!("{other:?}"),
        }
        let lenient = PoolConfig { allow_missing: vec![layer], ..strict };
        let pool = Pool::start(lenient).await.unwrap();
        assert_eq!(pool.missing_layers(), name, "it says what it does without");
        assert_eq!(pool.run(Run::new("test", "return 1"), &tools).await.result.unwrap(), json!(1));
    }
    fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn code_that_could_reach_the_engine_has_nothing_to_reach() {
    let found = run("return Object.getOwnPropertyNames(globalThis).filter((n) => /^(native|std|os|bjson|qjs|scriptArgs|print|load|gc)$/.test(n))").await;
    assert_eq!(found.result.unwrap(), json!([]));
}

#[tokio::test]
async fn the_worker_ends_when_its_socket_closes() {
    let pool = pool().await;
    let pids = pool.idle_pids();
    pool.close().await;
    until("the processes to be gone", || pids.iter().all(|pid| !fs::exists(format!("/proc/{pid}")).unwrap()))
        .await;
}
