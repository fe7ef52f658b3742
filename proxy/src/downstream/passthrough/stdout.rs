//! A server's standard output without the answers to calls that passed rmcp by: those go straight to whoever waits for them.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;

use super::stdio::Answers;

/// Longer lines are none of ours: rmcp drops them too.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

pub(in crate::downstream) struct Sifted<R> {
    io: R,
    answers: Arc<Answers>,
    /// What was read and isn't a whole line yet, for all that is known.
    held: BytesMut,
    /// So much of it is known to hold no end of line.
    searched: usize,
    /// What is rmcp's to read.
    passing: Bytes,
    /// The rest of a line whose beginning was passed on is too.
    is_inside_line: bool,
}

impl<R> Sifted<R> {
    pub(in crate::downstream) fn new(io: R, answers: Arc<Answers>) -> Sifted<R> {
        let (held, passing) = (BytesMut::new(), Bytes::new());
        Sifted { io, answers, held, searched: 0, passing, is_inside_line: false }
    }

    /// Takes the next line out if it is one of ours, or lets it pass; false if there is none.
    fn sift(&mut self) -> bool {
        if let Some(end) = memchr::memchr(b'\n', &self.held[self.searched..]) {
            let line = self.take(self.searched + end + 1);
            let is_rest = std::mem::replace(&mut self.is_inside_line, false);
            if is_rest || self.answers.count() == 0 || !self.answers.take(&line) {
                self.passing = line;
            }
            return true;
        }
        self.searched = self.held.len();
        let is_too_long = self.searched > LONGEST_LINE;
        if is_too_long {
            self.is_inside_line = true;
            self.passing = self.take(self.searched);
        }
        is_too_long
    }

    fn take(&mut self, length: usize) -> Bytes {
        self.searched = 0;
        self.held.split_to(length).freeze()
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Sifted<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if !this.passing.is_empty() {
                let length = this.passing.len().min(into.remaining());
                into.put_slice(&this.passing.split_to(length));
                return Poll::Ready(Ok(()));
            }
            if this.sift() {
                continue;
            }
            if ready!(poll_read_buf(Pin::new(&mut this.io), context, &mut this.held))? == 0 {
                this.answers.end();
                this.passing = this.take(this.held.len());
                if this.passing.is_empty() {
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl<R> Drop for Sifted<R> {
    fn drop(&mut self) {
        self.answers.end();
    }
}
