//! A reader between a pipe and rmcp, whose filter may take out lines.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;

/// Sees each line before rmcp does.
pub(crate) trait LineFilter {
    /// Whether the line is taken out, so that rmcp never sees it.
    fn takes(&self, line: &Bytes) -> bool;

    /// The input has ended.
    fn ended(&self) {}
}

/// Longer lines aren't filtered: rmcp drops them.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

pub(crate) struct FilteredLines<R, T: LineFilter> {
    io: R,
    taker: T,
    /// Read, but not filtered yet.
    held: BytesMut,
    /// How many bytes of it are known to hold no end of line.
    searched: usize,
    /// Filtered, for rmcp to read.
    passing: Bytes,
    /// The rest of a line that is too long passes like its beginning.
    is_inside_line: bool,
}

impl<R, T: LineFilter> FilteredLines<R, T> {
    pub(crate) fn new(io: R, taker: T) -> FilteredLines<R, T> {
        let (held, passing) = (BytesMut::new(), Bytes::new());
        FilteredLines { io, taker, held, searched: 0, passing, is_inside_line: false }
    }

    /// Filters the next line; false if there is none.
    fn sift(&mut self) -> bool {
        if let Some(end) = memchr::memchr(b'\n', &self.held[self.searched..]) {
            let line = self.take(self.searched + end + 1);
            let is_rest = std::mem::replace(&mut self.is_inside_line, false);
            if is_rest || !self.taker.takes(&line) {
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

impl<R: AsyncRead + Unpin, T: LineFilter + Unpin> AsyncRead for FilteredLines<R, T> {
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
                this.taker.ended();
                this.passing = this.take(this.held.len());
                if this.passing.is_empty() {
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl<R, T: LineFilter> Drop for FilteredLines<R, T> {
    fn drop(&mut self) {
        self.taker.ended();
    }
}
