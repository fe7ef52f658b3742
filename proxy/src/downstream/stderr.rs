//! Logs a server's standard error, truncated and rate-limited, and keeps its last lines for error messages.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    sync::watch,
};

/// Longer lines are truncated.
const LONGEST_LINE: usize = 2_000;
/// How many lines are kept, and how much of each.
const KEPT_LINES: usize = 5;
const KEPT_CHARACTERS: usize = 300;
/// The rate limit of the log: lines at once, and lines a second.
const BURST: f64 = 200.0;
const LINES_A_SECOND: f64 = 20.0;
/// How long to wait for the rest of the output of a process that ended.
const LAST_OUTPUT: Duration = Duration::from_millis(300);

/// Redacts secrets.
#[derive(Clone, Default)]
pub(super) struct Redactor(Arc<[String]>);

impl Redactor {
    /// `secrets` sorted by length, longest first.
    pub(super) fn new(secrets: &[String]) -> Self {
        Self(secrets.into())
    }

    pub(super) fn clean(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
    }
}

/// The last lines that a server wrote.
pub(super) struct LastLines {
    lines: Arc<Mutex<VecDeque<String>>>,
    finished: watch::Receiver<bool>,
}

impl LastLines {
    /// Reads `stderr` to its end, in the background.
    pub(super) fn follow(
        server: String,
        redactor: Redactor,
        stderr: impl AsyncRead + Send + Unpin + 'static,
    ) -> LastLines {
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let (finish, finished) = watch::channel(false);
        let kept = Arc::clone(&lines);
        tokio::spawn(async move {
            read_all(
                stderr,
                |line| {
                    let line = redactor.clean(line);
                    keep(&kept, &line);
                    line
                },
                &server,
            )
            .await;
            finish.send_replace(true);
        });
        LastLines { lines, finished }
    }

    /// The lines of a process that ended, after all of them were read.
    pub(super) async fn of_ended(&self) -> Vec<String> {
        let mut finished = self.finished.clone();
        let _ = tokio::time::timeout(LAST_OUTPUT, finished.wait_for(|finished| *finished)).await;
        self.lines.lock().iter().cloned().collect()
    }
}

fn keep(kept: &Mutex<VecDeque<String>>, line: &str) {
    if line.trim().is_empty() {
        return;
    }
    let mut kept = kept.lock();
    if kept.len() == KEPT_LINES {
        kept.pop_front();
    }
    kept.push_back(line.chars().take(KEPT_CHARACTERS).collect());
}

async fn read_all(stderr: impl AsyncRead + Unpin, mut clean: impl FnMut(&str) -> String, server: &str) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    let mut limit = Limit::new();
    loop {
        let (used, ended) = match reader.fill_buf().await {
            Ok([]) | Err(_) => break,
            Ok(available) => {
                let end = available.iter().position(|byte| *byte == b'\n');
                let part = &available[..end.unwrap_or(available.len())];
                // The rest of a long line is read and dropped, so that the server never blocks.
                line.extend_from_slice(&part[..part.len().min(LONGEST_LINE.saturating_sub(line.len()))]);
                (end.map_or(available.len(), |end| end + 1), end.is_some())
            }
        };
        reader.consume(used);
        if ended {
            limit.log(server, &clean(&readable(&line)));
            line.clear();
        }
    }
    if !line.is_empty() {
        limit.log(server, &clean(&readable(&line)));
    }
    limit.report(server);
}

/// Without control characters, which could colour or forge log lines.
fn readable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' && characters.peek() == Some(&'[') {
            // An escape sequence, up to its final letter.
            characters.next();
            while characters.next_if(|c| !c.is_ascii_alphabetic()).is_some() {}
            characters.next();
        } else if character == '\t' || !character.is_control() {
            clean.push(character);
        }
    }
    clean.trim_end().to_owned()
}

struct Limit {
    allowance: f64,
    last: Instant,
    dropped: u64,
}

impl Limit {
    fn new() -> Self {
        Self { allowance: BURST, last: Instant::now(), dropped: 0 }
    }

    fn allows(&mut self, now: Instant) -> bool {
        let earned = now.duration_since(self.last).as_secs_f64() * LINES_A_SECOND;
        self.allowance = (self.allowance + earned).min(BURST);
        self.last = now;
        if self.allowance < 1.0 {
            self.dropped += 1;
            return false;
        }
        self.allowance -= 1.0;
        true
    }

    fn log(&mut self, server: &str, line: &str) {
        if self.allows(Instant::now()) {
            self.report(server);
            tracing::info!(target: "pml::server::stderr", server, "{line}");
        }
    }

    fn report(&mut self, server: &str) {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            tracing::warn!(target: "pml::server::stderr", server, dropped, "too many lines; some were dropped");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keeps_the_last_lines_without_secrets_colours_and_excess() {
        let redactor = Redactor::new(&["tok-12345".to_owned()]);
        let mut written: Vec<u8> = (0..20).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        written.extend_from_slice(b"\x1b[31mbad\x1b[0m token tok-12345\r\n\n");
        written.extend_from_slice(&[b'x'; 1_000_000]);
        let lines =
            LastLines::follow("s".to_owned(), redactor, std::io::Cursor::new(written)).of_ended().await;
        assert_eq!(lines[..4], ["line 17", "line 18", "line 19", "bad token ***"]);
        assert_eq!(lines[4], "x".repeat(KEPT_CHARACTERS));
    }

    #[test]
    fn limits_the_rate() {
        let mut limit = Limit::new();
        let start = Instant::now();
        let allowed = (0..1000).filter(|_| limit.allows(start)).count();
        assert_eq!((allowed, limit.dropped), (200, 800));
        assert!(
            (0..10).all(|_| limit.allows(start + Duration::from_secs(1))),
            "a second later there is room again"
        );
    }
}
