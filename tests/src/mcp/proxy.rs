//! The proxy as a separate process, on a free port.

use std::{
    env,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::Value;

use super::{eventually, runtime};
use crate::Database;

/// The `pml` program that was built with the tests.
pub fn pml() -> Command {
    Command::new(built("pml"))
}

/// The same without a developer's own settings, which must not reach the tests.
pub fn pml_by_itself() -> Command {
    let mut command = pml();
    for (name, _) in env::vars().filter(|(name, _)| name.starts_with("PML_")) {
        command.env_remove(name);
    }
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

fn built(name: &str) -> PathBuf {
    let tests = env::current_exe().expect("the path of the tests");
    let folder = tests.parent().and_then(|deps| deps.parent()).expect("a folder of built programs");
    let program = folder.join(name);
    assert!(program.exists(), "build it first: cargo build -p pml_proxy -p pml_worker");
    program
}

/// Creates a token; returns its id and the token.
pub fn new_token(database: &Database, org: &str, actor: &str) -> (String, String) {
    let output = pml()
        .args(["token", "create", "--json", "--org", org, "--actor", actor, "--label", "test"])
        .env("PML_DATABASE_URL", database.admin_url())
        .output()
        .expect("pml starts");
    let made: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let field = |name: &str| made[name].as_str().expect("a string").to_owned();
    (field("id"), field("token"))
}

/// The command line of a proxy.
pub struct ProxySetup {
    command: Command,
}

impl ProxySetup {
    pub fn new(database: &Database) -> ProxySetup {
        let mut command = pml_by_itself();
        command.args(["serve", "--bind", "127.0.0.1:0", "--log-format", "json", "--actor", "alice"]);
        command.env("PML_DATABASE_URL", database.url_of("proxy"));
        // To run the whole suite without the fast path.
        if let Some(passthrough) = env::var_os("PML_TEST_PASSTHROUGH") {
            command.env("PML_PASSTHROUGH", passthrough);
        }
        ProxySetup { command }
    }

    #[must_use]
    pub fn args(mut self, args: &[&str]) -> ProxySetup {
        self.command.args(args);
        self
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> ProxySetup {
        self.command.env(name, value);
        self
    }

    pub fn start(mut self) -> Proxy {
        let mut process =
            self.command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().expect("pml starts");
        let stderr = process.stderr.take().expect("a pipe");
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = log.clone();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                kept.lock().expect("no panic while locked").push(line);
            }
        });
        let mut proxy = Proxy { process, log, url: String::new() };
        proxy.url = eventually("the proxy serves", || {
            if let Some(status) = proxy.process.try_wait().expect("a process") {
                panic!("pml ended with {status}: {:#?}", proxy.log());
            }
            proxy.log().iter().find_map(|line| {
                let (_, rest) = line.split_once("\"url\":\"")?;
                Some(rest.split('"').next()?.to_owned())
            })
        });
        proxy
    }
}

/// A proxy that serves; killed when dropped.
pub struct Proxy {
    process: Child,
    log: Arc<Mutex<Vec<String>>>,
    /// Its MCP endpoint.
    pub url: String,
}

impl Proxy {
    /// As the role of a proxy, with the defaults.
    pub fn start(database: &Database) -> Proxy {
        database.create_role("proxy", &["pml_proxy"]);
        ProxySetup::new(database).start()
    }

    /// The URL of another path.
    pub fn page(&self, path: &str) -> String {
        self.url.replace("/mcp", path)
    }

    /// Where it listens, such as `127.0.0.1:7410`.
    pub fn address(&self) -> &str {
        let (_, rest) = self.url.split_once("://").expect("a URL");
        rest.trim_end_matches("/mcp")
    }

    /// The value of a metric, by its name and labels; 0 if it is missing.
    pub fn metric(&self, name: &str) -> u64 {
        let ask = async { reqwest::get(self.page("/metrics")).await?.text().await };
        let metrics = runtime().block_on(ask).expect("metrics");
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0, |value| value.parse().expect("a number"))
    }

    /// Waits until code runs in its sandbox.
    pub fn runs_code(&self) {
        eventually("a run", || (self.metric("pml_worker_slots_used") > 0).then_some(()));
    }

    /// Waits until it receives notifications; before that, clients may be notified once more than needed.
    pub fn is_ready(&self) {
        eventually("readiness", || {
            (self.readiness().is_some_and(|readiness| readiness["listening"] == true)).then_some(())
        });
    }

    /// What `/readyz` answers if it is ready.
    pub fn readiness(&self) -> Option<Value> {
        let ask = async {
            let answer = reqwest::get(self.page("/readyz")).await?.error_for_status()?;
            answer.json().await
        };
        runtime().block_on(ask).ok()
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn log(&self) -> Vec<String> {
        self.log.lock().expect("no panic while locked").clone()
    }

    /// The sandbox processes under it.
    pub fn workers(&self) -> Vec<u32> {
        let children = format!("/proc/{0}/task", self.pid());
        let tasks = std::fs::read_dir(children).into_iter().flatten().flatten();
        let pids = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        let pids: Vec<u32> = pids
            .flat_map(|pids| pids.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
            .collect();
        let is_worker = |pid: &u32| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|comm| comm.starts_with("pml-worker"))
        };
        pids.into_iter().filter(is_worker).collect()
    }

    /// Kills its sandbox processes; some may just be ending by themselves.
    pub fn kill_workers(&self) {
        for pid in self.workers() {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).stderr(Stdio::null()).status();
        }
    }

    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    pub fn kill(mut self) {
        self.process.kill().expect("a process");
        self.process.wait().expect("an end");
    }

    /// Its exit status; something else must end it.
    pub fn wait(&mut self) -> ExitStatus {
        eventually("the proxy ends", || self.process.try_wait().expect("a process"))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("the proxy's log:\n{}", self.log().join("\n"));
        }
    }
}

/// Sends a signal to a process.
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
    assert!(sent.expect("kill").success(), "no process {pid}");
}
