//! A server's standard input, shared by rmcp and raw calls: always whole lines.

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

/// The buffer for a server that doesn't read.
const LARGEST_BUFFER: usize = 1024 * 1024;

/// Where lines are written. Clones share it.
#[derive(Clone)]
pub(in crate::downstream) struct Output(Arc<Mutex<Pipe>>);

/// rmcp's writer, which closes the pipe when it is dropped.
pub(in crate::downstream) struct Writer(Output);

struct Pipe {
    /// `None` if it is closed.
    io: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    waiting: BytesMut,
    /// Whether a task is writing the buffer.
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

    /// Waits until the buffer has room.
    pub(super) async fn has_room(&self) {
        std::future::poll_fn(|context| self.lock().poll_shorter_than(LARGEST_BUFFER, context)).await;
    }

    /// Writes whole lines: at once if the pipe has room, otherwise in the background.
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
                // Pending calls fail when the server's output ends.
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
            if self.waiting.len() < LARGEST_BUFFER {
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

/// rmcp writes whole messages, each a line.
impl AsyncWrite for Writer {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, lines: &[u8]) -> Poll<io::Result<usize>> {
        std::task::ready!(self.0.lock().poll_shorter_than(LARGEST_BUFFER, context));
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
