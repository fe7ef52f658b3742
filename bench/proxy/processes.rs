//! The programs that are measured, each in a process group of its own that ends with this one.

use std::{
    env,
    fs::{self, File},
    net::TcpListener,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::client::{Address, Client, Result};

pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// What it prints goes to a file in `folder`.
    pub(crate) fn start(folder: &Path, name: &str, command: &mut Command) -> Result<Process> {
        let log = folder.join(format!("{name}.log"));
        let file = File::create(&log).and_then(|out| Ok((out.try_clone()?, out)));
        let (out, err) = file.map_err(|error| format!("{}: {error}", log.display()))?;
        let started = command.process_group(0).stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let child = started.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        Ok(Process { child, log })
    }

    /// Waits until a client gets through; the first one is given back.
    pub(crate) async fn serves(&mut self, http: &reqwest::Client, address: &Address) -> Result<Client> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let error = match Client::connect(http, address).await {
                Ok(client) => return Ok(client),
                Err(error) => error,
            };
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(5).collect();
                return Err(format!("it doesn't serve ({error}): {}", tail.join(" | ")));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(group) = Pid::from_raw(self.child.id().cast_signed()) else { return };
        let _ = kill_process_group(group, Signal::TERM);
        let deadline = Instant::now() + Duration::from_secs(5);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// A program that was built with this one.
pub(crate) fn built(name: &str) -> PathBuf {
    env::current_exe().expect("the path of this program").with_file_name(name)
}

/// `pml serve` on a free port, with the defaults but for what `args` says; its log is as it is in use.
pub(crate) fn pml(folder: &Path, name: &str, args: &[&str]) -> Result<(Process, Address)> {
    let bind = format!("127.0.0.1:{}", free_port());
    let mut command = Command::new(built("pml"));
    for (name, _) in env::vars().filter(|(name, _)| name.starts_with("PML_")) {
        command.env_remove(name);
    }
    let database =
        env::var("PML_BENCH_DATABASE").map_err(|_| "PML_BENCH_DATABASE is set by bench/proxy/run")?;
    command.env("XDG_CONFIG_HOME", folder).env("PML_DATABASE_URL", database);
    command.args(["serve", "--actor", "bench", "--bind", &bind]).args(args);
    let process = Process::start(folder, name, &mut command)?;
    Ok((process, Address::Http(format!("http://{bind}/mcp"))))
}

/// A field of /proc, in megabytes.
fn megabytes(pid: u32, file: &str, field: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kilobytes| kilobytes / 1024.0)
}

/// Resident, and of its own.
pub(crate) fn memory(pid: u32) -> (f64, f64) {
    let read = |field| megabytes(pid, "status", field).unwrap_or(f64::NAN);
    (read("VmRSS:"), read("RssAnon:"))
}

/// The CPU time that a process has used; none if it is gone.
pub(crate) fn cpu(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The fields behind the name, which may hold anything.
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
    let ticks: u64 = fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second())
}

/// The processes under this one whose name begins so.
pub(crate) fn children(pid: u32, name: &str) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let pids: Vec<u32> = lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    let named =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.starts_with(name));
    pids.into_iter().filter(named).collect()
}
