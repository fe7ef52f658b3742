//! MCP on standard input and output. Lines that aren't JSON, which rmcp ignores, are answered with a parse error.

use std::io;

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use rmcp::{
    RoleServer,
    model::ErrorData,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncRead, AsyncWrite, Stdin, Stdout},
    sync::mpsc,
};

use crate::lines::{FilteredLines, LineFilter};

pub(crate) struct StdioTransport<R: AsyncRead + Unpin, W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, FilteredLines<R, OnlyJson>, W>,
    unreadable: mpsc::UnboundedReceiver<serde_json::Error>,
    /// An error that is being sent.
    sending_error: Option<BoxFuture<'static, io::Result<()>>>,
}

/// This process' own input and output.
pub(crate) fn transport() -> StdioTransport<Stdin, Stdout> {
    StdioTransport::new(tokio::io::stdin(), tokio::io::stdout())
}

/// Takes out lines that aren't JSON, and reports what is wrong with them.
struct OnlyJson(mpsc::UnboundedSender<serde_json::Error>);

impl LineFilter for OnlyJson {
    fn takes(&self, line: &Bytes) -> bool {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return false;
        }
        let error = serde_json::from_slice::<&RawValue>(line).err();
        error.is_some_and(|error| self.0.send(error).is_ok())
    }
}

impl<R, W> StdioTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn new(input: R, output: W) -> StdioTransport<R, W> {
        let (sender, unreadable) = mpsc::unbounded_channel();
        StdioTransport {
            inner: AsyncRwTransport::new(FilteredLines::new(input, OnlyJson(sender)), output),
            unreadable,
            sending_error: None,
        }
    }
}

fn parse_error(error: &serde_json::Error) -> TxJsonRpcMessage<RoleServer> {
    let message = format!("Parse error: the line isn't JSON ({error}).");
    TxJsonRpcMessage::<RoleServer>::error(ErrorData::parse_error(message, None), None)
}

impl<R, W> Transport<RoleServer> for StdioTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // A field, because this future may be dropped at any time.
            if let Some(sending) = &mut self.sending_error {
                let _ = sending.await;
                self.sending_error = None;
            }
            let error = tokio::select! {
                biased;
                Some(error) = self.unreadable.recv() => error,
                message = self.inner.receive() => {
                    if message.is_some() {
                        return message;
                    }
                    // Every bad line is answered before the end.
                    self.unreadable.try_recv().ok()?
                }
            };
            self.sending_error = Some(self.inner.send(parse_error(&error)).boxed());
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use rmcp::transport::Transport as _;
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::StdioTransport;

    #[tokio::test]
    async fn a_line_that_is_not_json_gets_an_error_and_the_rest_passes() {
        let (ours, mut client) = tokio::io::duplex(4096);
        let (input, output) = tokio::io::split(ours);
        let mut transport = StdioTransport::new(input, output);
        let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
        client.write_all(format!("nonsense\n\n\u{feff}{ping}\n\"\\ud800").as_bytes()).await.unwrap();
        client.write_all(b"\xff\n{\"a\":\n").await.unwrap();
        client.shutdown().await.unwrap();
        let message = transport.receive().await.map(|message| serde_json::to_value(message).unwrap());
        assert_eq!(message, Some(ping));
        assert!(transport.receive().await.is_none());
        transport.close().await.unwrap();
        drop(transport);
        let mut answers = String::new();
        client.read_to_string(&mut answers).await.unwrap();
        let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(answers.len(), 3, "{answers:?}");
        for answer in answers {
            assert_eq!((&answer["error"]["code"], answer.get("id")), (&json!(-32700), None));
        }
    }
}
