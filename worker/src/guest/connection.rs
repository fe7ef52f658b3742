//! The only descriptor of the process: a socket to its parent, with frames in both directions.

use std::{
    ops::Range,
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use pml_worker::protocol::HEADER;
use rustix::{
    buffer::spare_capacity,
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

/// Room for reading, at least.
const AT_ONCE: usize = 16 * 1024;

/// The parent has closed the socket.
#[derive(Debug)]
pub(crate) struct ParentGone;

/// Reads and writes frames on standard input, which is the socket.
pub(crate) struct Connection {
    received: Vec<u8>,
    consumed: usize,
}

/// A frame with the buffer that it came in.
pub(crate) struct Frame {
    buffer: Vec<u8>,
    place: Range<usize>,
}

impl Frame {
    pub(crate) fn get(&self) -> &[u8] {
        &self.buffer[self.place.clone()]
    }
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
        Ok(self.place_of_next(deadline)?.map(|place| &self.received[place]))
    }

    /// The next frame, in the buffer that it came in. The frames behind it move to another.
    pub(crate) fn receive_owned(&mut self) -> Result<Frame, ParentGone> {
        let place = self.place_of_next(None)?.ok_or(ParentGone)?;
        let rest = self.received.split_off(place.end);
        self.consumed = 0;
        Ok(Frame { buffer: std::mem::replace(&mut self.received, rest), place })
    }

    fn place_of_next(&mut self, deadline: Option<Instant>) -> Result<Option<Range<usize>>, ParentGone> {
        loop {
            if let Some(end) = self.frame_end() {
                let start = self.consumed + HEADER;
                self.consumed = end;
                return Ok(Some(start..end));
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

    /// Waits for something to receive; false if nothing comes by then.
    pub(crate) fn is_readable_before(&self, deadline: Instant) -> Result<bool, ParentGone> {
        Ok(self.frame_end().is_some() || readable_before(deadline)?)
    }

    fn frame_end(&self) -> Option<usize> {
        let end = self.consumed + HEADER + self.frame_length()?;
        (self.received.len() >= end).then_some(end)
    }

    fn frame_length(&self) -> Option<usize> {
        let header = self.received[self.consumed..].get(..HEADER)?.try_into().ok()?;
        Some(u32::from_le_bytes(header) as usize)
    }

    fn fill(&mut self) -> Result<(), ParentGone> {
        let missing = self.frame_length().map_or(0, |length| HEADER + length - self.received.len());
        self.received.reserve(missing.max(AT_ONCE));
        loop {
            match rustix::io::read(socket(), spare_capacity(&mut self.received)) {
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => return Err(ParentGone),
                Ok(_) => return Ok(()),
            }
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
