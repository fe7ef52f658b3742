//! Lowers the priority of a process whose run computes for long, so that everything that answers somebody goes first.

use std::{fs::File, io, mem::MaybeUninit, os::fd::OwnedFd, os::unix::net::UnixStream};

use rustix::{
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

/// Of a process inside its session.
const LOWEST: i32 = 19;

/// Of a session among others: a tenth of a processor while everybody else wants all of them, so that no run starves.
/// Latency of others was the same with 19.
const LOW_SESSION: i32 = 10;

/// A process is preempted at once by those with a shorter time slice, and the default is at most 2.8 ms.
const SLICE_NANOSECONDS: u64 = 3_000_000;

/// How a process competes for the processors.
pub(super) struct Priority {
    /// The process's `/proc/self/autogroup`; `None` where the kernel has none.
    session: Option<File>,
    lowered: bool,
}

impl Priority {
    /// Takes the descriptor that a worker sends before it is confined.
    pub(super) fn receive(socket: &UnixStream) -> io::Result<Priority> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(socket, &mut [io::IoSliceMut::new(&mut byte)], &mut control, flags)?;
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut descriptors = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let session: Option<OwnedFd> = descriptors.next().and_then(|mut descriptors| descriptors.next());
        Ok(Priority { session: session.map(File::from), lowered: false })
    }

    /// Whether [`Priority::lower`] has done what it can.
    pub(super) fn is_lowered(&self) -> bool {
        self.lowered
    }

    /// Lowers it for good. May have to be called again: users other than root may change ten sessions a second in all.
    pub(super) fn lower(&mut self, pid: Pid) {
        let has_session = match self.session.as_ref().map(lower_session) {
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => return,
            Some(result) => result.is_ok(),
            None => false,
        };
        // Inside a session that it shares, an idle process gives way at once and one that is only nice doesn't; but an
        // idle one can't have a slice of its own.
        let policy = if has_session { libc::SCHED_BATCH } else { libc::SCHED_IDLE };
        set_scheduler(pid, policy);
        leave_first_processor(pid);
        self.lowered = true;
    }
}

fn lower_session(autogroup: &File) -> io::Result<()> {
    rustix::io::write(autogroup, LOW_SESSION.to_string().as_bytes())?;
    Ok(())
}

/// Keeps one processor free of such runs: preempting them takes up to a tick of the kernel (4 ms) at each hop of a call.
fn leave_first_processor(pid: Pid) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut processors = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor));
    if let (Some(first), Some(_)) = (processors.next(), processors.next()) {
        let mut others = allowed;
        others.unset(first);
        // Fails if the process has just ended.
        let _ = sched_setaffinity(Some(pid), &others);
    }
}

fn set_scheduler(pid: Pid, policy: libc::c_int) {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: policy as u32,
        sched_flags: 0,
        sched_nice: LOWEST,
        sched_priority: 0,
        // Kernels before 6.12 ignore it.
        sched_runtime: SLICE_NANOSECONDS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: it reads one structure of the size that it says. If the process has just ended there is none with that id: ids
    // aren't used again before all others were.
    unsafe { libc::syscall(libc::SYS_sched_setattr, pid.as_raw_nonzero().get(), &raw const attributes, 0) };
}
