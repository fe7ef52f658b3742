//! `make up` when something is in its way: it says so, leaves nothing that `make down` doesn't find, and works afterwards.

use std::{net::TcpListener, path::Path, process::Command};

use pml_tests::mcp::{Agent, Era, eventually};

use crate::checkout::{Checkout, succeeded};

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

fn has_file(folder: &Path, prefix: &str) -> bool {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with(prefix))
}
