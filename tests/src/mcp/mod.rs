//! A running proxy, and MCP clients for it.

mod agent;
mod offers;
mod person;
mod proxy;
mod wire;
mod workbench;

pub use agent::{Agent, Era, text};
pub use person::Person;
pub use proxy::{Proxy, ProxySetup, new_token, pml, pml_by_itself, signal};
pub use wire::Wire;
pub use workbench::Workbench;

use std::{
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

/// The runtime of the async clients; the tests themselves are synchronous.
pub fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Runtime::new().expect("a runtime"))
}

/// Waits until `condition` returns something; only a failing test waits for the timeout.
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < deadline, "timeout: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
