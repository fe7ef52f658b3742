//! A server's process with all its children, in its own process group, so that none is ever orphaned.
//!
//! A thread lives as long as the process. It starts it, because the kernel sends PR_SET_PDEATHSIG when the *thread* that
//! started the process ends, and it waits for it, so that the group is killed before its id can be reused.
//!
//! Between the proxy and the server is a shell that only waits. If the proxy is killed with SIGKILL, the kernel signals the
//! shell, which kills all its descendants: the server, and whatever that started (`npx` starts `sh`, which starts `node`),
//! even if it left the process group. As a subreaper (PR_SET_CHILD_SUBREAPER) the shell becomes the parent of all orphans
//! below it, so it finds them all.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout},
    sync::{oneshot, watch},
};

/// The variables that a server inherits. The rest of the environment may hold secrets.
const PASSED_VARIABLES: [&str; 22] = [
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
];

const SHELL: &str = "/bin/sh";

/// The kernel sends USR1 when the proxy is gone. TERM is for the server; the shell survives it to report the exit status.
/// Descriptor 3 carries the input, because a shell gives its background jobs an empty one. The shell's own messages about
/// how the server ended are discarded.
///
/// `below` signals the shell's living children and returns whether there were any. The children of a killed process become
/// the shell's, so repeating it reaches all. The count bounds the loop if `/proc` can't be parsed.
const GUARD: &str = r#"
below() {
  found=1
  read -r children < /proc/$$/task/$$/children
  for child in $children; do
    read -r stat < /proc/$child/stat || continue
    case ${stat##*) } in [ZX]*) continue ;; esac
    kill -$1 $child
    found=0
  done
  return $found
}
end() {
  trap '' USR1
  round=0
  while below KILL && [ $round -lt 1000 ]; do round=$((round + 1)); done
}
trap 'end; exit 137' USR1
trap : TERM INT HUP
exec 3<&0
"$@" <&3 3<&- &
server=$!
exec 3<&- </dev/null >/dev/null 2>&1
while :; do
  wait $server
  status=$?
  kill -0 $server || break
done
if below TERM; then
  for tenth in 1 2 3 4 5; do
    sleep 0.1
    below 0 || break
  done
  end
fi
exit $status
"#;

/// How long a server may take to exit after its input is closed, and again after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a server's children may take to exit after it.
const GRACE: Duration = Duration::from_millis(500);

/// What to start.
pub(super) struct Program<'a> {
    pub(super) command: &'a str,
    pub(super) args: &'a [String],
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) cwd: Option<&'a Path>,
}

/// The process and its group. Dropping it kills them.
pub(super) struct Process {
    group: Arc<Group>,
    exit: watch::Receiver<Option<ExitStatus>>,
    all_gone: watch::Receiver<bool>,
}

/// The ends of its standard streams.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

struct Group {
    leader: Pid,
    /// Whether the leader is the shell.
    guarded: bool,
    /// Until it is reaped, its process id can't be reused.
    reaped: Mutex<bool>,
}

impl Group {
    fn signal(&self, signal: Signal) {
        let reaped = self.reaped.lock();
        if !*reaped {
            // It may have just ended.
            let _ = kill_process_group(self.leader, signal);
        }
    }

    /// Kills all its processes.
    fn end(&self) {
        let reaped = self.reaped.lock();
        if !*reaped {
            let _ = if self.guarded {
                kill_process(self.leader, Signal::USR1)
            } else {
                kill_process_group(self.leader, Signal::KILL)
            };
        }
    }
}

impl Process {
    /// Starts it.
    pub(super) async fn start(program: Program<'_>) -> Result<(Process, Pipes), String> {
        let (mut command, guarded) = command(&program)?;
        let (started, result) = oneshot::channel();
        let (exited, exit) = watch::channel(None);
        let (gone, all_gone) = watch::channel(false);
        std::thread::Builder::new()
            .name("pml-server".to_owned())
            .spawn(move || {
                let (child, group) = match spawn(&mut command, guarded) {
                    Ok(parts) => parts,
                    Err(error) => return drop(started.send(Err(error))),
                };
                // It holds the child's ends of the pipes, which would keep them open.
                drop(command);
                keep(child, group, started, &exited, &gone);
            })
            .map_err(|error| format!("can't start a thread for it: {error}"))?;
        let (group, mut child_streams) = result
            .await
            .map_err(|_| "the thread that starts it panicked".to_owned())?
            .map_err(|error| format!("can't start {:?}: {error}", program.command))?;
        let process = Process { group, exit, all_gone };
        let pipes = child_streams.pipes().map_err(|error| format!("can't use its pipes: {error}"))?;
        Ok((process, pipes))
    }

    /// The id of the group and of its leader.
    pub(super) fn id(&self) -> u32 {
        self.group.leader.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until it ends.
    pub(super) async fn exited(&self) -> Option<ExitStatus> {
        let mut exit = self.exit.clone();
        exit.wait_for(Option::is_some).await.ok().and_then(|status| *status)
    }

    /// Stops it and its children, gracefully first. Its standard input should be closed already.
    pub(super) async fn stop(&self) {
        let steps: [fn(&Group); 3] =
            [|group| group.signal(Signal::TERM), Group::end, |group| group.signal(Signal::KILL)];
        for step in steps {
            if tokio::time::timeout(PATIENCE, self.gone()).await.is_ok() {
                return;
            }
            step(&self.group);
        }
        self.gone().await;
    }

    async fn gone(&self) {
        let mut gone = self.all_gone.clone();
        let _ = gone.wait_for(|gone| *gone).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.end();
    }
}

/// How a process ended.
pub(super) fn describe(status: ExitStatus) -> String {
    // The shell reports a signal as 128 plus its number.
    let signal = status
        .signal()
        .or_else(|| status.code().filter(|code| (129..=192).contains(code)).map(|code| code - 128));
    match (signal, status.code()) {
        (Some(9), _) => "it was killed (SIGKILL)".to_owned(),
        (Some(11), _) => "it crashed (SIGSEGV)".to_owned(),
        (Some(6), _) => "it aborted (SIGABRT)".to_owned(),
        (Some(15), _) => "it was terminated (SIGTERM)".to_owned(),
        (Some(signal), _) => format!("it was terminated by signal {signal}"),
        (None, Some(code)) => format!("it exited with status {code}"),
        (None, None) => "it ended".to_owned(),
    }
}

fn command(program: &Program<'_>) -> Result<(Command, bool), String> {
    let env: BTreeMap<OsString, OsString> = PASSED_VARIABLES
        .iter()
        .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
        .chain(program.env.iter().map(|(name, value)| (name.into(), value.into())))
        .collect();
    let cwd = match program.cwd {
        Some(cwd) if !cwd.is_dir() => return Err(format!("cwd {} isn't a directory", cwd.display())),
        Some(cwd) => cwd.to_owned(),
        None => std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
    };
    let path = which::which_in(program.command, env.get(&OsString::from("PATH")), &cwd).map_err(|_| {
        let advice = if program.command.contains(char::is_whitespace) {
            "give its arguments in \"args\""
        } else {
            "install it, or use its full path"
        };
        format!("command {:?} not found or not executable: {advice}", program.command)
    })?;
    let guarded = Path::new(SHELL).exists();
    let mut command = Command::new(if guarded { Path::new(SHELL) } else { &path });
    if guarded {
        command.arg("-c").arg(GUARD).arg("pml-guard").arg(&path);
    }
    command
        .args(program.args)
        .env_clear()
        .envs(env)
        .current_dir(cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    end_with_us(&mut command, if guarded { Signal::USR1 } else { Signal::KILL });
    Ok((command, guarded))
}

#[cfg(target_os = "linux")]
fn end_with_us(command: &mut Command, signal: Signal) {
    let proxy = rustix::process::getpid();
    // SAFETY: between fork and exec only system calls are made: no allocation, no lock.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(signal))?;
            // Any value but `None` enables it.
            rustix::process::set_child_subreaper(Some(Pid::INIT))?;
            // The proxy may have died before the signal was set.
            if rustix::process::getppid() == Some(proxy) {
                Ok(())
            } else {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn end_with_us(_: &mut Command, _: Signal) {
    // No such signal; the server only sees the end of its input.
}

struct Streams(Child);

impl Streams {
    fn pipes(&mut self) -> io::Result<Pipes> {
        let missing = || io::Error::other("not there");
        Ok(Pipes {
            stdin: ChildStdin::from_std(self.0.stdin.take().ok_or_else(missing)?)?,
            stdout: ChildStdout::from_std(self.0.stdout.take().ok_or_else(missing)?)?,
            stderr: ChildStderr::from_std(self.0.stderr.take().ok_or_else(missing)?)?,
        })
    }
}

fn spawn(command: &mut Command, guarded: bool) -> io::Result<(Child, Arc<Group>)> {
    let child = command.spawn()?;
    let leader = Pid::from_child(&child);
    Ok((child, Arc::new(Group { leader, guarded, reaped: Mutex::new(false) })))
}

type Started = oneshot::Sender<io::Result<(Arc<Group>, Streams)>>;

fn keep(
    child: Child,
    group: Arc<Group>,
    started: Started,
    exited: &watch::Sender<Option<ExitStatus>>,
    gone: &watch::Sender<bool>,
) {
    let leader = group.leader;
    // Dropping a `Child` neither waits nor kills, so it can be moved to where its pipes are used.
    if started.send(Ok((Arc::clone(&group), Streams(child)))).is_err() {
        group.end();
    }
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = loop {
        match waitid(WaitId::Pid(leader), ended) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other.ok().flatten(),
        }
    };
    let raw =
        status.and_then(|status| status.exit_status().map(|code| code << 8).or(status.terminating_signal()));
    exited.send_replace(Some(ExitStatus::from_raw(raw.unwrap_or_default())));
    // Not reaped yet, so the group's id is still valid: its children are stopped too, gracefully first.
    if others_live(leader) {
        group.signal(Signal::TERM);
        let until = Instant::now() + GRACE;
        while others_live(leader) && Instant::now() < until {
            #[expect(clippy::disallowed_methods, reason = "a dedicated thread")]
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    group.signal(Signal::KILL);
    let mut reaped = group.reaped.lock();
    let _ = rustix::process::waitpid(Some(leader), rustix::process::WaitOptions::empty());
    *reaped = true;
    drop(reaped);
    gone.send_replace(true);
}

/// Whether anything but the leader, which has ended, still runs in the group.
fn others_live(leader: Pid) -> bool {
    let leader = leader.as_raw_nonzero().to_string();
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    processes.flatten().any(|process| {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // After the name in parentheses: state, parent, group.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.next().is_some_and(|state| state != "Z") && fields.nth(1) == Some(&leader)
    })
}
