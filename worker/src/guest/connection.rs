//! The only descriptor of the process: a socket to its parent, with frames in both directions.

use std::{
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use pml_worker::protocol::HEADER;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

/// The parent has closed the socket.
#[derive(Debug)]
pub(crate) struct ParentGone;

/// Reads and writes frames on standard input, which is the socket.
pub(crate) struct Connection {
    received: Vec<u8>,
    consumed: usize,
}

fn socket() -> BorrowedFd<'static> {
    rustix::stdio::stdin()
}

/// Writes all of `bytes`, waiting for the parent to read if it must.
pub(crate) fn send(mut bytes: &[u8]) -> Result<(), ParentGone> {
    while !bytes.is_empty() {
        match rustix::io::write(socket(), bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(_) => return Err(ParentGone),
        }
    }
    Ok(())
}

impl Connection {
    pub(crate) fn new() -> Connection {
        Connection { received: Vec::new(), consumed: 0 }
    }

    /// The next frame, waiting for it until `deadline`; `None` if it doesn't come by then.
    pub(crate) fn receive(&mut self, deadline: Option<Instant>) -> Result<Option<&[u8]>, ParentGone> {
        loop {
            if let Some(end) = self.frame_end() {
                let start = self.consumed + HEADER;
                self.consumed = end;
                return Ok(Some(&self.received[start..end]));
            }
            if self.consumed > 0 {
                self.received.drain(..self.consumed);
                self.consumed = 0;
            }
            if let Some(deadline) = deadline
                && !readable_before(deadline)?
            {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    fn frame_end(&self) -> Option<usize> {
        let rest = &self.received[self.consumed..];
        let length = u32::from_le_bytes(rest.get(..HEADER)?.try_into().ok()?) as usize;
        (rest.len() - HEADER >= length).then_some(self.consumed + HEADER + length)
    }

    fn fill(&mut self) -> Result<(), ParentGone> {
        let length = self.received.len();
        // Doubles, so that a megabyte takes a few reads and a small answer one.
        let room = length.clamp(16 * 1024, 1024 * 1024);
        self.received.resize(length + room, 0);
        let read = loop {
            match rustix::io::read(socket(), &mut self.received[length..]) {
                Err(Errno::INTR) => {}
                read => break read,
            }
        };
        self.received.truncate(length + read.unwrap_or(0));
        match read {
            Ok(0) | Err(_) => Err(ParentGone),
            Ok(_) => Ok(()),
        }
    }

    /// Releases the memory of a large frame.
    pub(crate) fn shrink(&mut self) {
        self.received.drain(..self.consumed);
        self.consumed = 0;
        self.received.shrink_to(64 * 1024);
    }
}

fn readable_before(deadline: Instant) -> Result<bool, ParentGone> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = timespec(left);
        match poll(&mut [PollFd::from_borrowed_fd(socket(), PollFlags::IN)], Some(&timeout)) {
            Ok(0) if left.is_zero() => return Ok(false),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(_) => return Err(ParentGone),
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs().cast_signed(), tv_nsec: duration.subsec_nanos().into() }
}
