//! A client that does as little as a client can: raw JSON-RPC over each transport, one call at a time.

use std::{
    process::Stdio,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use reqwest::{
    Response,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

pub(crate) type Result<T> = std::result::Result<T, String>;

const VERSION: &str = "2025-11-25";

/// Where a server is, and how it is spoken to.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// Streamable HTTP.
    Http(String),
    /// The same, but requests don't say which version of the protocol they are, as it was before 2025-06-18.
    UnversionedHttp(String),
    /// The HTTP transport before it: a stream for the answers, another address for the questions.
    EventStream(String),
    Stdio(Vec<String>),
}

enum Wire {
    Http { url: String, session: Option<String>, version: Option<String>, says_version: bool },
    EventStream { post_to: String, stream: Response, unread: Vec<u8> },
    Stdio { to: ChildStdin, from: Lines<BufReader<ChildStdout>>, _process: Child },
}

pub(crate) struct Client {
    http: reqwest::Client,
    wire: Wire,
    last_id: u64,
}

/// An answer, the moment at which it was there, and its size.
pub(crate) struct Answer {
    pub(crate) result: Value,
    pub(crate) at: Instant,
    pub(crate) bytes: usize,
}

#[derive(Deserialize)]
struct Reply<'r> {
    id: Option<Value>,
    #[serde(borrow)]
    result: Option<&'r RawValue>,
    #[serde(borrow)]
    error: Option<&'r RawValue>,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The answer to the request with this id, if the message is that.
fn answer_in(message: &[u8], id: u64) -> Result<Option<Answer>> {
    let reply: Reply<'_> =
        serde_json::from_slice(message).map_err(|e| format!("{e}: {}", String::from_utf8_lossy(message)))?;
    if reply.id != Some(json!(id)) {
        return Ok(None);
    }
    let at = Instant::now();
    match (reply.result, reply.error) {
        (Some(result), _) => {
            let bytes = message.len();
            Ok(Some(Answer { result: serde_json::from_str(result.get()).map_err(text)?, at, bytes }))
        }
        (None, error) => Err(error.map_or("neither result nor error".into(), |error| error.get().to_owned())),
    }
}

/// Takes the data of the first whole event off the front.
fn next_event(unread: &mut Vec<u8>) -> Option<String> {
    let (end, gap) = match (find(unread, b"\n\n"), find(unread, b"\r\n\r\n")) {
        (Some(lf), Some(crlf)) if crlf < lf => (crlf, 4),
        (Some(lf), _) => (lf, 2),
        (None, Some(crlf)) => (crlf, 4),
        (None, None) => return None,
    };
    let event = String::from_utf8_lossy(&unread[..end]).into_owned();
    unread.drain(..end + gap);
    let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
    Some(data.map(str::trim_start).collect::<Vec<_>>().join("\n"))
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// Reads events until the answer is among them.
async fn answer_from(stream: &mut Response, unread: &mut Vec<u8>, id: u64) -> Result<Answer> {
    loop {
        while let Some(data) = next_event(unread) {
            if let Some(answer) = if data.is_empty() { None } else { answer_in(data.as_bytes(), id)? } {
                return Ok(answer);
            }
        }
        let chunk = stream.chunk().await.map_err(text)?.ok_or("the stream ended without the answer")?;
        unread.extend_from_slice(&chunk);
    }
}

impl Client {
    pub(crate) async fn connect(http: &reqwest::Client, address: &Address) -> Result<Client> {
        Client::connect_with(http, address, &json!({})).await
    }

    /// One that says that it can be asked, and never answers.
    pub(crate) async fn connect_to_be_asked(http: &reqwest::Client, address: &Address) -> Result<Client> {
        Client::connect_with(http, address, &json!({"elicitation": {}})).await
    }

    /// Another sender of the same HTTP session.
    pub(crate) fn same_session(&self) -> Client {
        let Wire::Http { url, session, version, says_version } = &self.wire else {
            unreachable!("only HTTP has sessions that several may use")
        };
        let wire = Wire::Http {
            url: url.clone(),
            session: session.clone(),
            version: version.clone(),
            says_version: *says_version,
        };
        static SENDERS: AtomicU64 = AtomicU64::new(1);
        // Ids are the session's, so each sender has a range of its own.
        let last_id = SENDERS.fetch_add(1, Ordering::Relaxed) << 32;
        Client { http: self.http.clone(), wire, last_id }
    }

    async fn connect_with(http: &reqwest::Client, address: &Address, capabilities: &Value) -> Result<Client> {
        let wire = match address {
            Address::Http(url) => {
                Wire::Http { url: url.clone(), session: None, version: None, says_version: true }
            }
            Address::UnversionedHttp(url) => {
                Wire::Http { url: url.clone(), session: None, version: None, says_version: false }
            }
            Address::EventStream(url) => event_stream(http, url).await?,
            Address::Stdio(command) => stdio(command)?,
        };
        let mut client = Client { http: http.clone(), wire, last_id: 0 };
        let hello = json!({"protocolVersion": VERSION, "capabilities": capabilities, "clientInfo": {"name": "bench", "version": "1"}});
        let welcome = client.request("initialize", &hello).await?;
        if let Wire::Http { version, says_version: true, .. } = &mut client.wire {
            *version = welcome.result["protocolVersion"].as_str().map(str::to_owned);
        }
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await?;
        Ok(client)
    }

    pub(crate) async fn request(&mut self, method: &str, params: &Value) -> Result<Answer> {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let response = self.send(message).await?;
        match &mut self.wire {
            Wire::Http { session, .. } => {
                let mut response = response.ok_or("no response")?;
                if let Some(given) = response.headers().get("mcp-session-id") {
                    *session = given.to_str().ok().map(str::to_owned);
                }
                let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
                if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
                    let body = response.bytes().await.map_err(text)?;
                    return answer_in(&body, id)?.ok_or_else(|| "another's answer".into());
                }
                let answer = answer_from(&mut response, &mut Vec::new(), id).await?;
                // The connection can be used again only when the stream has ended.
                while response.chunk().await.map_err(text)?.is_some() {}
                Ok(answer)
            }
            Wire::EventStream { stream, unread, .. } => answer_from(stream, unread, id).await,
            Wire::Stdio { from, .. } => loop {
                let line = from.next_line().await.map_err(text)?.ok_or("the server ended")?;
                if let Some(answer) = answer_in(line.as_bytes(), id)? {
                    return Ok(answer);
                }
            },
        }
    }

    /// Calls a tool; an answer that is an error is one here too.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer> {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments})).await?;
        if answer.result["isError"] == true {
            return Err(format!("{tool}: {}", answer.result));
        }
        Ok(answer)
    }

    async fn send(&mut self, message: String) -> Result<Option<Response>> {
        match &mut self.wire {
            Wire::Http { url, session, version, .. } => {
                let mut request = post(&self.http, url, message);
                if let Some(session) = session {
                    request = request.header("mcp-session-id", session.as_str());
                }
                if let Some(version) = version {
                    request = request.header("mcp-protocol-version", version.as_str());
                }
                accepted(request).await.map(Some)
            }
            Wire::EventStream { post_to, .. } => {
                let response = accepted(post(&self.http, post_to, message)).await?;
                response.bytes().await.map_err(text)?;
                Ok(None)
            }
            Wire::Stdio { to, .. } => {
                to.write_all(format!("{message}\n").as_bytes()).await.map_err(text)?;
                Ok(None)
            }
        }
    }
}

fn post(http: &reqwest::Client, url: &str, message: String) -> reqwest::RequestBuilder {
    http.post(url)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .body(message)
}

async fn accepted(request: reqwest::RequestBuilder) -> Result<Response> {
    let response = request.send().await.map_err(text)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    Err(format!("{status}: {}", response.text().await.unwrap_or_default()))
}

async fn event_stream(http: &reqwest::Client, url: &str) -> Result<Wire> {
    let mut stream = accepted(http.get(url).header(ACCEPT, "text/event-stream")).await?;
    let mut unread = Vec::new();
    let path = loop {
        if let Some(data) = next_event(&mut unread) {
            break data;
        }
        let chunk = stream.chunk().await.map_err(text)?.ok_or("the stream ended at once")?;
        unread.extend_from_slice(&chunk);
    };
    let base = url::Url::parse(url).map_err(text)?;
    Ok(Wire::EventStream { post_to: base.join(&path).map_err(text)?.into(), stream, unread })
}

fn stdio(command: &[String]) -> Result<Wire> {
    let (program, args) = command.split_first().ok_or("no command")?;
    let mut process = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(text)?;
    let (to, from) = (process.stdin.take().ok_or("no pipe")?, process.stdout.take().ok_or("no pipe")?);
    Ok(Wire::Stdio { to, from: BufReader::new(from).lines(), _process: process })
}
