//! A server's standard input, written to by rmcp and past it: always whole lines.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::{Buf as _, BytesMut};
use parking_lot::{Mutex, MutexGuard};
use rmcp::{ServiceError, transport::DynamicTransportError};
use tokio::io::AsyncWrite;

/// What may wait for a server that doesn't read.
const MOST_WAITING: usize = 1024 * 1024;

/// Where lines are put. Clones are the same.
#[derive(Clone)]
pub(in crate::downstream) struct Output(Arc<Mutex<Pipe>>);

/// rmcp's way to write, which closes the pipe when it is dropped.
pub(in crate::downstream) struct Writer(Output);

struct Pipe {
    /// `None` when it is closed.
    io: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    waiting: BytesMut,
    /// A task writes as the server reads; nobody else may then.
    is_written: bool,
    for_room: Vec<Waker>,
}

impl Output {
    pub(in crate::downstream) fn new(io: impl AsyncWrite + Send + Unpin + 'static) -> (Output, Writer) {
        let pipe = Pipe {
            io: Some(Box::new(io)),
            waiting: BytesMut::new(),
            is_written: false,
            for_room: Vec::new(),
        };
        let output = Output(Arc::new(Mutex::new(pipe)));
        (output.clone(), Writer(output))
    }

    /// Waits until the server has read most of what it was sent.
    pub(super) async fn has_room(&self) {
        std::future::poll_fn(|context| self.lock().poll_shorter_than(MOST_WAITING, context)).await;
    }

    /// Writes whole lines: at once if the server reads, else as it does.
    pub(super) fn send(&self, lines: &[u8]) -> Result<(), ServiceError> {
        self.put(lines).map_err(|error| {
            ServiceError::TransportSend(DynamicTransportError::from_parts(
                "standard input",
                std::any::TypeId::of::<Output>(),
                Box::new(error),
            ))
        })
    }

    fn put(&self, lines: &[u8]) -> io::Result<()> {
        let mut pipe = self.lock();
        if pipe.io.is_none() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        pipe.waiting.extend_from_slice(lines);
        if pipe.is_written {
            return Ok(());
        }
        match pipe.poll_write_out(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(written) => written,
            Poll::Pending => {
                pipe.is_written = true;
                tokio::spawn(self.clone().write_out());
                Ok(())
            }
        }
    }

    async fn write_out(self) {
        std::future::poll_fn(|context| {
            let mut pipe = self.lock();
            let written = std::task::ready!(pipe.poll_write_out(context));
            pipe.is_written = false;
            if written.is_err() {
                // Whoever waits for answers is told by the end of the server's output.
                pipe.close();
            }
            Poll::Ready(())
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, Pipe> {
        self.0.lock()
    }
}

impl Pipe {
    fn poll_write_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.waiting.is_empty() {
            let Some(io) = &mut self.io else { break };
            match std::task::ready!(Pin::new(io).poll_write(context, &self.waiting))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.waiting.advance(written),
            }
            if self.waiting.len() < MOST_WAITING {
                self.for_room.drain(..).for_each(Waker::wake);
            }
        }
        self.for_room.drain(..).for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }

    fn poll_shorter_than(&mut self, length: usize, context: &Context<'_>) -> Poll<()> {
        if self.waiting.len() < length || self.io.is_none() {
            return Poll::Ready(());
        }
        self.for_room.push(context.waker().clone());
        Poll::Pending
    }

    fn close(&mut self) {
        self.io = None;
        self.waiting.clear();
        self.for_room.drain(..).for_each(Waker::wake);
    }
}

/// rmcp hands over whole messages, each a line.
impl AsyncWrite for Writer {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, lines: &[u8]) -> Poll<io::Result<usize>> {
        std::task::ready!(self.0.lock().poll_shorter_than(MOST_WAITING, context));
        Poll::Ready(self.0.put(lines).map(|()| lines.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().poll_shorter_than(1, context).map(Ok)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.as_ref().0.lock().poll_shorter_than(1, context));
        self.0.lock().close();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.lock().close();
    }
}
