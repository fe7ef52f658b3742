//! Raw HTTP, for what no client library would send.

use std::{
    io::{Read, Write},
    net::{IpAddr, Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use super::{Proxy, runtime};

/// How long a test waits for bytes; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Wire(TcpStream);

impl Wire {
    pub fn to(proxy: &Proxy) -> Wire {
        Wire::of(TcpStream::connect(proxy.address()).expect("a connection"))
    }

    /// From another address of this machine, such as 127.0.0.2.
    pub fn from_address(address: &str, proxy: &Proxy) -> Wire {
        let own = SocketAddr::new(address.parse::<IpAddr>().expect("an address"), 0);
        let to = proxy.address().parse().expect("an address");
        let stream = runtime().block_on(async {
            let socket = tokio::net::TcpSocket::new_v4()?;
            socket.bind(own)?;
            socket.connect(to).await?.into_std()
        });
        let stream = stream.expect("a connection");
        stream.set_nonblocking(false).expect("a socket");
        Wire::of(stream)
    }

    fn of(stream: TcpStream) -> Wire {
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Wire(stream)
    }

    pub fn into_stream(self) -> TcpStream {
        self.0
    }

    /// Whether it could be sent; the proxy may have closed the connection.
    pub fn send(&mut self, text: &str) -> bool {
        self.0.write_all(text.as_bytes()).is_ok()
    }

    /// Closes the sending side.
    pub fn end(&mut self) {
        let _ = self.0.shutdown(Shutdown::Write);
    }

    /// The response to one request, by its `Content-Length`; the connection stays open.
    pub fn answer(&mut self) -> String {
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let text = String::from_utf8_lossy(&answer);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let lengths = head.lines().filter_map(|line| line.split_once(':'));
                let mut lengths = lengths.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
                let length = lengths.next().map_or(0, |(_, length)| length.trim().parse().expect("a length"));
                if body.len() >= length {
                    return text.into_owned();
                }
            }
            match self.0.read(&mut buffer).expect("an answer") {
                0 => return text.into_owned(),
                count => answer.extend_from_slice(&buffer[..count]),
            }
        }
    }

    /// Sends a request; returns the status and the whole response.
    pub fn ask(&mut self, request: &str) -> (u16, String) {
        assert!(self.send(request), "the connection is closed");
        let answer = self.answer();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("no answer: {answer}")), answer)
    }

    /// Waits until the proxy closes the connection without an answer.
    pub fn is_closed(&mut self) {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest)),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
        }
    }
}
