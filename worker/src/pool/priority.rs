//! Lowers the priority of a process whose run computes for long, so that everything that answers somebody goes first.

use std::{fs::File, io, mem::MaybeUninit, os::fd::OwnedFd, os::unix::net::UnixStream};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// The lowest, of a process and of a session.
const LOWEST: i32 = 19;

/// A process is preempted at once by those with a shorter time slice, and the default is at most 3 ms. With 100 ms, runs in
/// the background held up others for 68 ms when they did get their turn.
const SLICE_NANOSECONDS: u64 = 6_000_000;

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
    pub(super) fn lower(&mut self, pid: libc::pid_t) {
        let has_session = match self.session.as_ref().map(lower_session) {
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => return,
            Some(result) => result.is_ok(),
            None => false,
        };
        // Inside a session that it shares, an idle process gives way at once and one that is only nice doesn't; but an
        // idle one can't have a slice of its own.
        let policy = if has_session { libc::SCHED_BATCH } else { libc::SCHED_IDLE };
        set_scheduler(pid, policy);
        self.lowered = true;
    }
}

fn lower_session(autogroup: &File) -> io::Result<()> {
    rustix::io::write(autogroup, LOWEST.to_string().as_bytes())?;
    Ok(())
}

fn set_scheduler(pid: libc::pid_t, policy: libc::c_int) {
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
    unsafe { libc::syscall(libc::SYS_sched_setattr, pid, &raw const attributes, 0) };
}
