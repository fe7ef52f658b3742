//! Tells the client that a call is still under way, if it asked to be told.

use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::Peer,
};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, interval_at, timeout},
};

use crate::downstream;

/// How often something is said about a run that says nothing itself.
const BEAT: Duration = Duration::from_secs(1);
/// A client that doesn't read must not hold up its own call.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What is worth telling.
#[derive(Debug)]
pub enum Step {
    /// Code begins to run; its progress is counted here.
    Code,
    /// The code called something.
    Call(String),
    /// Something that was called is under way.
    Inside(String, downstream::Progress),
    /// The one tool that was called says how far it is; passed on as it is.
    Tool(downstream::Progress),
}

/// Where steps go. Costs nothing if nobody asked.
#[derive(Clone, Debug, Default)]
pub struct Steps(Option<mpsc::UnboundedSender<Step>>);

impl Steps {
    pub fn tell(&self, step: impl FnOnce() -> Step) {
        if let Some(sender) = &self.0 {
            let _ = sender.send(step());
        }
    }

    pub fn wanted(&self) -> bool {
        self.0.is_some()
    }
}

/// Sends progress until it is ended; the answer must come after the last of it.
pub struct Reporter {
    pub steps: Steps,
    sender: Option<JoinHandle<()>>,
}

impl Reporter {
    pub fn start(peer: &Peer<RoleServer>, token: Option<ProgressToken>) -> Reporter {
        let Some(token) = token else { return Reporter { steps: Steps::default(), sender: None } };
        let (steps, heard) = mpsc::unbounded_channel();
        let sender = tokio::spawn(report(peer.clone(), token, heard));
        Reporter { steps: Steps(Some(steps)), sender: Some(sender) }
    }

    /// Sends what is left; nothing is sent afterwards.
    pub async fn end(mut self) {
        self.steps = Steps::default();
        if let Some(mut sender) = self.sender.take()
            && timeout(LAST_WORDS, &mut sender).await.is_err()
        {
            sender.abort();
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if let Some(sender) = &self.sender {
            sender.abort();
        }
    }
}

async fn report(peer: Peer<RoleServer>, token: ProgressToken, mut steps: mpsc::UnboundedReceiver<Step>) {
    let started = Instant::now();
    let mut beat = interval_at(started + BEAT, BEAT);
    let mut measure = Measure::Unknown { beats: 0.0 };
    let mut calls = 0_u32;
    loop {
        let (progress, total, message) = tokio::select! {
            step = steps.recv() => match step {
                None => return,
                Some(Step::Code) => {
                    measure = Measure::Ours(0.0);
                    continue;
                }
                Some(Step::Call(target)) => {
                    calls += 1;
                    (measure.next(), None, Some(format!("Call {calls}: {target}")))
                }
                Some(Step::Inside(target, inner)) => {
                    let far = inner.total.map_or_else(|| inner.progress.to_string(), |total| format!("{} of {total}", inner.progress));
                    let message = inner.message.map_or_else(String::new, |message| format!(": {message}"));
                    (measure.next(), None, Some(format!("{target} is at {far}{message}")))
                }
                Some(Step::Tool(inner)) => {
                    (measure.of_tool(inner.progress), inner.total, inner.message)
                }
            },
            _ = beat.tick(), if !matches!(measure, Measure::Tools(_)) => {
                (measure.next(), None, Some(format!("Running for {} s", started.elapsed().as_secs())))
            }
        };
        let Some(progress) = progress else { continue };
        let mut params = ProgressNotificationParam::new(token.clone(), progress);
        params.total = total;
        params.message = message;
        if peer.notify_progress(params).await.is_err() {
            return;
        }
    }
}

/// In what progress is measured. The protocol wants every number to be above the one before.
#[derive(Clone, Copy, Debug)]
enum Measure {
    /// Nothing ran yet, or a tool that hasn't said anything. It may begin at 0, so the numbers approach that from below.
    Unknown { beats: f64 },
    /// What we said of running code, counted.
    Ours(f64),
    /// A tool's own, and what it said last. It may mean anything, so we add nothing to it.
    Tools(f64),
}

impl Measure {
    /// The number for something that we say ourselves.
    fn next(&mut self) -> Option<f64> {
        match self {
            Measure::Unknown { beats } => {
                *beats += 1.0;
                Some(-1.0 / *beats)
            }
            Measure::Ours(count) => {
                *count += 1.0;
                Some(*count)
            }
            Measure::Tools(_) => None,
        }
    }

    /// The tool's number, if it may be passed on.
    fn of_tool(&mut self, progress: f64) -> Option<f64> {
        let last = match *self {
            Measure::Unknown { beats: 0.0 } => f64::NEG_INFINITY,
            Measure::Unknown { beats } => -1.0 / beats,
            Measure::Ours(last) | Measure::Tools(last) => last,
        };
        *self = Measure::Tools(last.max(progress));
        (progress > last).then_some(progress)
    }
}

#[cfg(test)]
mod tests {
    use super::Measure;

    #[test]
    fn a_tools_numbers_stay_what_they_are_after_ours() {
        let mut measure = Measure::Unknown { beats: 0.0 };
        assert_eq!([measure.next(), measure.next()], [Some(-1.0), Some(-0.5)]);
        assert_eq!([measure.of_tool(0.0), measure.of_tool(0.5)], [Some(0.0), Some(0.5)]);
        assert_eq!([measure.of_tool(0.5), measure.of_tool(0.6)], [None, Some(0.6)]);
        assert_eq!(measure.next(), None);
    }

    #[test]
    fn a_tool_that_speaks_first_may_begin_anywhere() {
        let mut measure = Measure::Unknown { beats: 0.0 };
        assert_eq!([measure.of_tool(-7.0), measure.of_tool(-6.0)], [Some(-7.0), Some(-6.0)]);
    }
}
