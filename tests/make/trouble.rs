//! `make up` when something is in its way: it says so, leaves nothing that `make down` doesn't find, and works afterwards.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, path::Path, process::Command};

use pml_tests::mcp::{Agent, Era, eventually};

use crate::checkout::{Checkout, run, succeeded};

fn serves(checkout: &Checkout) {
    let agent = Agent::connect(&format!("http://127.0.0.1:{}/mcp", checkout.port), Era::Stateless);
    agent.has_tool("pml_execute");
    agent.close();
}

fn stops(checkout: &Checkout) {
    succeeded(&checkout.make("down").output().unwrap());
    // A backend or a child of the proxy may need a moment to end.
    eventually("nothing runs any more", || checkout.processes().is_empty().then_some(()));
}

#[test]
fn twice_at_once_and_with_the_port_taken() {
    let mut checkout = Checkout::new();
    let both = std::thread::scope(|scope| {
        [scope.spawn(|| checkout.up()), scope.spawn(|| checkout.up())].map(|up| up.join().expect("no panic"))
    });
    both.iter().for_each(|output| drop(succeeded(output)));
    serves(&checkout);
    let served = |line: &&String| line.contains("/pml serve");
    assert_eq!(checkout.processes().iter().filter(served).count(), 1, "{:?}", checkout.processes());
    stops(&checkout);

    let taken = TcpListener::bind(("127.0.0.1", checkout.port)).unwrap();
    let refused = checkout.up();
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success());
    assert!(message.contains("is taken by another program"), "{message}");
    assert!(message.contains(&format!("make up PML_PORT={}", checkout.port + 1)), "{message}");
    stops(&checkout);

    // As it is told to.
    checkout.port += 1;
    succeeded(&checkout.up());
    serves(&checkout);
    drop(taken);
    stops(&checkout);
}

#[test]
fn killed_in_the_middle() {
    let checkout = Checkout::new();
    let home = checkout.home_of_scripts();
    // While it copies the server, makes the cluster, and starts the proxy: when the file appears.
    for name in ["tree-", "data", "proxy.pid"] {
        let mut child = checkout.start_up();
        eventually(name, || has_file(&home, name).then_some(()));
        // It may have ended by now, on a busy machine.
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
        child.wait().unwrap();
    }
    stops(&checkout);
    succeeded(&checkout.up());
    serves(&checkout);
    stops(&checkout);
}

/// `started` says of which process it was asked.
#[test]
fn the_proxy_is_remembered_by_its_own_number() {
    let checkout = Checkout::new();
    let script =
        ". scripts/env && make_home && started() { echo \"$1\"; } && remember_proxy && cat \"$PROXY_PID\"";
    let printed = run(&mut checkout.command(&["bash", "-c", script]));
    let (number, started) = printed.trim().split_once(' ').expect("two numbers");
    assert_eq!(number, started);
}

/// In a container whose first process waits for nobody.
#[test]
fn a_proxy_that_ended_as_a_zombie_does_not_run() {
    let checkout = Checkout::new();
    let mut zombie = Command::new("true").spawn().unwrap();
    let stat = format!("/proc/{}/stat", zombie.id());
    let fields = eventually("it has ended", || {
        let stat = fs::read_to_string(&stat).unwrap();
        let (_, fields) = stat.rsplit_once(") ").expect("a name");
        fields.starts_with('Z').then(|| fields.to_owned())
    });
    let started = fields.split(' ').nth(19).expect("when it started");
    let script = format!(
        ". scripts/env && make_home && echo '{} {started}' > \"$PROXY_PID\" && ! proxy_runs",
        zombie.id()
    );
    run(&mut checkout.command(&["bash", "-c", &script]));
    zombie.wait().unwrap();
}

/// Whoever connects meanwhile loads it; with a part of it, Postgres crashes.
#[test]
fn the_library_is_replaced_as_a_whole() {
    let checkout = Checkout::new();
    succeeded(&checkout.up());
    let script = ". scripts/env && \"$TREE_BIN/pg_config\" --pkglibdir";
    let library = Path::new(run(&mut checkout.command(&["bash", "-c", script])).trim()).join("pml.so");
    let state = || {
        let library = fs::metadata(&library).expect("it is there");
        (library.len(), library.permissions().mode())
    };
    let before = state();
    let mut child = checkout.start_up();
    while child.try_wait().unwrap().is_none() {
        assert_eq!(state(), before);
    }
    assert!(child.wait().unwrap().success());
    stops(&checkout);
}

/// As rustup's programs do for a part that isn't installed.
#[test]
fn a_missing_rustfmt_is_said_before_the_build() {
    let checkout = Checkout::new();
    let programs = checkout.root.join("programs");
    fs::create_dir(&programs).unwrap();
    for (name, script) in [("cargo", "#!/bin/sh\necho cargo 99.0.0\n"), ("rustfmt", "#!/bin/sh\nexit 1\n")] {
        fs::write(programs.join(name), script).unwrap();
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let refused = checkout.command(&["scripts/setup"]).env("PATH", path).output().unwrap();
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && message.contains("rustup component add rustfmt"), "{message}");
}

fn has_file(folder: &Path, prefix: &str) -> bool {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with(prefix))
}
