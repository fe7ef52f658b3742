//! One worker process from the parent's side: started, killed and reaped by a thread of its own.
//!
//! The thread lives as long as the process, because the kernel ends the process when the thread that started it ends
//! (PR_SET_PDEATHSIG), and because a blocking wait leaves no zombie.

use std::{
    io::{self, Read},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use tokio::sync::watch;

use super::{PoolConfig, priority::Priority};
use crate::protocol::{FRAME_SLACK, FromWorker, HEADER, parse_frame};

/// Time limit for a process to confine itself and report ready.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a process couldn't be started.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The program isn't there or can't be executed.
    #[error(
        "{program} can't be started: {error}. Build it with `cargo build -p pml_worker`, or say where it is (pml: --worker, PML_WORKER)"
    )]
    Program {
        /// Its path.
        program: String,
        /// What the system said.
        error: String,
    },
    /// It can't confine itself on this kernel.
    #[error("the worker refuses to serve: {0}")]
    Refused(String),
    /// It exited or violated the protocol before it was ready.
    #[error("the worker did not get ready: {0}")]
    NotReady(String),
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// The pool was closed in the meantime.
    #[error("the pool is closed")]
    Closed,
}

/// A process that is ready for a run. Dropping it kills it.
pub(super) struct Process {
    pub(super) socket: UnixStream,
    pub(super) exit: watch::Receiver<Option<ExitStatus>>,
    pub(super) runs: u32,
    /// Whether it has reported ready for the next run; if not, that is its next message.
    pub(super) ready: bool,
    pub(super) pid: u32,
    /// Whether it runs at low priority from now on, which can't be undone.
    pub(super) in_background: bool,
    priority: Priority,
    /// Its CPU time when the current run began.
    began: Duration,
    /// The confinement layers that the kernel lacks, as reported by the process.
    pub(super) missing: String,
    pidfd: OwnedFd,
}

/// The thread's handle on the process.
pub(super) struct Keeper {
    child: Child,
    exit: watch::Sender<Option<ExitStatus>>,
}

impl Process {
    /// Starts a process and waits until it is confined. Blocking: call it on a thread of its own.
    pub(super) fn start(config: &PoolConfig) -> Result<(Process, Keeper), StartError> {
        let program_error = |error: io::Error| StartError::Program {
            program: config.program.display().to_string(),
            error: error.to_string(),
        };
        let (ours, theirs) = UnixStream::pair().map_err(program_error)?;
        // The child starts in another directory, where a relative path would mean another file.
        let program = std::path::absolute(&config.program).map_err(program_error)?;
        let mut command = Command::new(program);
        command.arg("serve").arg("--memory-ceiling").arg(config.memory_ceiling.to_string());
        for layer in &config.allow_missing {
            command.arg("--allow-missing").arg(layer.name());
        }
        let mut child = command
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(program_error)?;
        // The command holds the child's end of the socket, which would hide the child's death.
        drop(command);
        match greet(&ours, &child) {
            Ok(Greeting { pidfd, priority, missing }) => {
                let (sender, receiver) = watch::channel(None);
                let process = Process {
                    socket: ours,
                    exit: receiver,
                    runs: 0,
                    ready: true,
                    pid: child.id(),
                    in_background: false,
                    priority,
                    began: Duration::ZERO,
                    missing,
                    pidfd,
                };
                Ok((process, Keeper { child, exit: sender }))
            }
            Err(error) => {
                let _ = child.kill();
                let status = child.wait();
                Err(match error {
                    StartError::NotReady(why) => match status {
                        Ok(status) => StartError::NotReady(format!("{why} ({status})")),
                        Err(_) => StartError::NotReady(why),
                    },
                    other => other,
                })
            }
        }
    }

    /// Whether the process is known to have exited.
    pub(super) fn ended(&self) -> bool {
        self.exit.borrow().is_some()
    }

    /// Whether a run could begin at once, because the previous engine is torn down.
    pub(super) fn is_clear(&self) -> bool {
        let mut socket = [PollFd::new(&self.socket, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.ready || poll(&mut socket, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    /// Starts counting CPU time for a run.
    pub(super) fn run_begins(&mut self) {
        self.began = self.cpu_time().unwrap_or(self.began);
    }

    /// CPU time since the run began, as counted by the kernel; `None` if the process is gone.
    pub(super) fn cpu_time_of_run(&self) -> Option<Duration> {
        Some(self.cpu_time()?.saturating_sub(self.began))
    }

    /// Lowers the priority. Call it again until [`Process::is_settled`].
    pub(super) fn move_to_background(&mut self) {
        self.in_background = true;
        if let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw)
            && !self.ended()
        {
            self.priority.lower(pid);
        }
    }

    /// Whether no priority change is pending.
    pub(super) fn is_settled(&self) -> bool {
        self.priority.is_lowered() == self.in_background
    }

    fn cpu_time(&self) -> Option<Duration> {
        let pid = libc::pid_t::try_from(self.pid).ok()?;
        let mut clock = 0;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: both write to the variables that they are given, and fail if there is no such process.
        let known = unsafe {
            libc::clock_getcpuclockid(pid, &raw mut clock) == 0
                && libc::clock_gettime(clock, &raw mut time) == 0
        };
        let parts = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
        known.then(|| Duration::new(parts.0, parts.1))
    }

    pub(super) fn kill(&self) {
        // An error means that it has already exited.
        let _ = pidfd_send_signal(self.pidfd.as_fd(), Signal::KILL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.ended() {
            self.kill();
        }
    }
}

impl Keeper {
    /// Waits for the process to end, and reaps it.
    pub(super) fn wait(mut self) {
        if let Ok(status) = self.child.wait() {
            self.exit.send_replace(Some(status));
        }
    }
}

/// What a worker reports when it is ready.
struct Greeting {
    pidfd: OwnedFd,
    priority: Priority,
    missing: String,
}

fn greet(socket: &UnixStream, child: &Child) -> Result<Greeting, StartError> {
    let not_ready = |error: io::Error| StartError::NotReady(error.to_string());
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| StartError::NotReady("it has no process id".into()))?;
    // Opened before the process can be reaped, so the id can't have been reused.
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| not_ready(error.into()))?;

    socket.set_read_timeout(Some(GREETING_TIMEOUT)).map_err(not_ready)?;
    let priority = Priority::receive(socket).map_err(not_ready)?;
    let mut header = [0; HEADER];
    let mut reader = socket;
    reader.read_exact(&mut header).map_err(not_ready)?;
    let length = u32::from_le_bytes(header) as usize;
    if length > FRAME_SLACK {
        return Err(StartError::NotReady(format!("its first message has {length} bytes")));
    }
    let mut frame = vec![0; length];
    reader.read_exact(&mut frame).map_err(not_ready)?;
    let missing = match parse_frame(&frame) {
        Ok(FromWorker::Ready { missing }) => missing.to_owned(),
        Ok(FromWorker::Refused { why }) => return Err(StartError::Refused(why.to_owned())),
        Ok(_) => {
            return Err(StartError::NotReady("its first message is none that a worker begins with".into()));
        }
        Err(error) => return Err(StartError::NotReady(error.to_string())),
    };
    socket.set_nonblocking(true).map_err(not_ready)?;
    Ok(Greeting { pidfd, priority, missing })
}
