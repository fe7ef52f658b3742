//! Gives the process a session of its own, and its parent the means to lower that session's priority.
//!
//! The kernel shares the processors between sessions first (autogroups) and only then inside one, so a low priority
//! counts for nothing against Postgres, which is another session, unless the worker's whole session has it.

use std::{
    fs::{File, OpenOptions},
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd},
};

use rustix::{
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    process::setsid,
};

/// Sends the parent this process's `/proc/self/autogroup`, which only root could open once the process is confined.
pub(crate) fn begin() -> io::Result<()> {
    // Fails in a process group leader, such as a job of an interactive shell.
    let own_session = setsid().is_ok();
    let autogroup = if own_session { open() } else { None };
    let descriptors: Vec<BorrowedFd<'_>> = autogroup.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    // A descriptor travels with at least one byte.
    sendmsg(rustix::stdio::stdin(), &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// `None` where the kernel has no autogroups.
fn open() -> Option<File> {
    OpenOptions::new().write(true).open("/proc/self/autogroup").ok()
}
