//! Tries every way out of the confined process, so that an operator or a test can see each of them shut.
//!
//! Each attempt is a process of its own, because most of them get it killed.

use std::{
    ffi::CStr,
    io,
    os::unix::process::ExitStatusExt,
    process::{Command, ExitCode, Stdio},
    ptr::null_mut,
};

use libc::{c_int, c_long, c_void};

use super::{Plan, confine};

/// Makes the system call: 0 or more if it succeeds, else -1 and errno.
type Attempt = fn(parent: c_int) -> c_long;

/// Exit codes of an attempt.
const OPEN: u8 = 10;
const SHUT: u8 = 11;
const NOT_CONFINED: u8 = 12;

macro_rules! call {
    ($number:ident $(, $argument:expr)*) => {
        // SAFETY: the arguments are plain numbers, null, or pointers to memory that outlives the call.
        unsafe { libc::syscall(libc::$number $(, $argument)*) }
    };
}

fn open(path: &CStr, flags: c_int) -> c_long {
    call!(SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o600)
}

fn socket(family: c_int, kind: c_int) -> c_long {
    call!(SYS_socket, family, kind, 0)
}

fn bind_tcp() -> c_long {
    let descriptor = socket(libc::AF_INET, libc::SOCK_STREAM);
    if descriptor < 0 {
        return descriptor;
    }
    // SAFETY: all zeroes is a valid address of no family.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    call!(SYS_bind, descriptor, &raw const address, size_of_val(&address))
}

fn read_parent_memory(parent: c_int) -> c_long {
    let mut byte = 0_u8;
    let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: read_parent_memory as *mut c_void, iov_len: 1 };
    call!(SYS_process_vm_readv, parent, &raw const local, 1, &raw const remote, 1, 0)
}

fn open_parent_memory(parent: c_int) -> c_long {
    let path = format!("/proc/{parent}/mem\0");
    CStr::from_bytes_with_nul(path.as_bytes()).map_or(-1, |path| open(path, libc::O_RDONLY))
}

fn map_executable() -> c_long {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    call!(SYS_mmap, null_mut::<c_void>(), 4096, libc::PROT_READ | libc::PROT_EXEC, flags, -1, 0)
}

fn execute() -> c_long {
    let program = c"/bin/true".as_ptr();
    let arguments = [program, std::ptr::null()];
    call!(SYS_execve, program, arguments.as_ptr(), null_mut::<c_void>())
}

/// Every door by name. The second field says whether Landlock alone, without seccomp, keeps it shut.
pub(crate) const DOORS: &[(&str, bool, Attempt)] = &[
    ("read a file", true, |_| open(c"/etc/passwd", libc::O_RDONLY)),
    ("write a file", true, |_| open(c"/tmp/pml-worker-door", libc::O_CREAT | libc::O_WRONLY)),
    ("list a directory", true, |_| open(c"/", libc::O_RDONLY | libc::O_DIRECTORY)),
    ("read /proc", true, |_| open(c"/proc/self/maps", libc::O_RDONLY)),
    ("open the parent's memory", true, open_parent_memory),
    ("read the parent's memory", true, read_parent_memory),
    ("ptrace the parent", true, |parent| call!(SYS_ptrace, libc::PTRACE_SEIZE, parent, 0, 0)),
    ("signal the parent", true, |parent| call!(SYS_kill, parent, 0)),
    ("TCP", true, |_| bind_tcp()),
    ("UDP", false, |_| socket(libc::AF_INET, libc::SOCK_DGRAM)),
    ("UDP over IPv6", false, |_| socket(libc::AF_INET6, libc::SOCK_DGRAM)),
    ("raw packets", false, |_| socket(libc::AF_PACKET, libc::SOCK_RAW)),
    ("unix sockets", false, |_| socket(libc::AF_UNIX, libc::SOCK_STREAM)),
    ("netlink", false, |_| socket(libc::AF_NETLINK, libc::SOCK_RAW)),
    ("pass descriptors on the socket", false, |_| call!(SYS_sendmsg, 0, null_mut::<c_void>(), 0)),
    ("io_uring", false, |_| {
        let mut parameters = [0_u64; 16];
        call!(SYS_io_uring_setup, 1, parameters.as_mut_ptr())
    }),
    ("fork", false, |_| call!(SYS_clone, libc::SIGCHLD, 0, 0, 0, 0)),
    ("clone3", false, |_| call!(SYS_clone3, null_mut::<c_void>(), 0)),
    ("execute a program", true, |_| execute()),
    ("executable memory", false, |_| map_executable()),
    ("memory as a file", false, |_| call!(SYS_memfd_create, c"door".as_ptr(), 0)),
    ("pidfd of the parent", false, |parent| call!(SYS_pidfd_open, parent, 0)),
    ("bpf", false, |_| call!(SYS_bpf, 0, null_mut::<c_void>(), 0)),
    ("perf events", false, |_| call!(SYS_perf_event_open, null_mut::<c_void>(), 0, -1, -1, 0)),
    ("userfaultfd", false, |_| call!(SYS_userfaultfd, 0)),
    ("keyrings", false, |_| call!(SYS_keyctl, 0, -3, 0)),
    ("new namespaces", false, |_| call!(SYS_unshare, libc::CLONE_NEWUSER)),
    ("mount", true, |_| call!(SYS_mount, c"none".as_ptr(), c"/tmp".as_ptr(), c"tmpfs".as_ptr(), 0, 0)),
    ("chroot", false, |_| call!(SYS_chroot, c"/".as_ptr())),
    ("shared memory", false, |_| call!(SYS_shmget, 0x706d_6c00, 4096, libc::IPC_CREAT | 0o600)),
    ("terminal control", false, |_| call!(SYS_ioctl, 0, libc::TIOCSTI, c"x".as_ptr())),
    ("raise a limit", false, |_| {
        let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        call!(SYS_prlimit64, 0, libc::RLIMIT_AS, &raw const limit, null_mut::<c_void>())
    }),
];

/// The result of an attempt.
pub(crate) enum Found {
    Shut(String),
    Open,
    Unknown(String),
}

/// Confines this process and makes one attempt.
pub(crate) fn attempt(name: &str, plan: &Plan) -> ExitCode {
    let Some((_, _, attempt)) = DOORS.iter().find(|(known, _, _)| *known == name) else {
        eprintln!("pml-worker: no door is called \"{name}\"");
        return ExitCode::from(NOT_CONFINED);
    };
    // SAFETY: getppid can't fail.
    let parent = unsafe { libc::getppid() };
    if confine(plan).is_err() {
        return ExitCode::from(NOT_CONFINED);
    }
    ExitCode::from(if attempt(parent) < 0 { SHUT } else { OPEN })
}

/// Makes one attempt in a process of its own.
pub(crate) fn try_door(name: &str, options: &[String]) -> io::Result<Found> {
    let status = Command::new(std::env::current_exe()?)
        .arg("door")
        .arg(name)
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    Ok(match (status.code(), status.signal()) {
        (_, Some(libc::SIGSYS)) => Found::Shut("killed by the filter".into()),
        (Some(code), _) if code == i32::from(SHUT) => Found::Shut("refused by the kernel".into()),
        (Some(code), _) if code == i32::from(OPEN) => Found::Open,
        // A successful `execute a program` exits as that program.
        (Some(0), _) => Found::Open,
        _ => Found::Unknown(status.to_string()),
    })
}
