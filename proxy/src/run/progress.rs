//! Progress notifications for clients that asked for them.

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

/// How often a silent run is reported.
const INTERVAL: Duration = Duration::from_secs(1);
/// A client that doesn't read notifications must not delay its own answer.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// A step of a call.
#[derive(Debug)]
pub enum Step {
    /// Code starts; its progress is counted here.
    Code,
    /// The code called something.
    Call(String),
    /// Progress of a tool that the code called.
    Inside(String, downstream::Progress),
    /// Progress of a tool that the client called, passed on unchanged.
    Tool(downstream::Progress),
}

/// Where steps are reported. Free if no progress is wanted.
#[derive(Clone, Debug, Default)]
pub struct Steps(Option<mpsc::UnboundedSender<Step>>);

impl Steps {
    pub fn report(&self, step: impl FnOnce() -> Step) {
        if let Some(sender) = &self.0 {
            let _ = sender.send(step());
        }
    }

    pub fn wanted(&self) -> bool {
        self.0.is_some()
    }
}

/// Sends progress until [`Reporter::end`]; the answer must come after it.
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

    /// Sends the rest.
    pub async fn end(mut self) {
        self.steps = Steps::default();
        if let Some(mut sender) = self.sender.take()
            && timeout(FLUSH_TIMEOUT, &mut sender).await.is_err()
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
    let mut interval = interval_at(started + INTERVAL, INTERVAL);
    let mut measure = Measure::Unknown { count: 0.0 };
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
            _ = interval.tick(), if !matches!(measure, Measure::Tools(_)) => {
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

/// The scale of the numbers, which must grow with each notification.
#[derive(Clone, Copy, Debug)]
enum Measure {
    /// Nothing has run, or a tool without progress of its own yet. That may start at 0, so these numbers approach 0 from below.
    Unknown { count: f64 },
    /// Counted by the proxy, for running code.
    Ours(f64),
    /// The tool's own numbers, and the last of them. The proxy adds none.
    Tools(f64),
}

impl Measure {
    /// The number of a notification of the proxy's own.
    fn next(&mut self) -> Option<f64> {
        match self {
            Measure::Unknown { count } => {
                *count += 1.0;
                Some(-1.0 / *count)
            }
            Measure::Ours(count) => {
                *count += 1.0;
                Some(*count)
            }
            Measure::Tools(_) => None,
        }
    }

    /// The tool's number, if it is larger than the last.
    fn of_tool(&mut self, progress: f64) -> Option<f64> {
        let last = match *self {
            Measure::Unknown { count: 0.0 } => f64::NEG_INFINITY,
            Measure::Unknown { count } => -1.0 / count,
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
    fn a_tools_numbers_are_kept_after_ours() {
        let mut measure = Measure::Unknown { count: 0.0 };
        assert_eq!([measure.next(), measure.next()], [Some(-1.0), Some(-0.5)]);
        assert_eq!([measure.of_tool(0.0), measure.of_tool(0.5)], [Some(0.0), Some(0.5)]);
        assert_eq!([measure.of_tool(0.5), measure.of_tool(0.6)], [None, Some(0.6)]);
        assert_eq!(measure.next(), None);
    }

    #[test]
    fn a_tools_first_number_may_be_any() {
        let mut measure = Measure::Unknown { count: 0.0 };
        assert_eq!([measure.of_tool(-7.0), measure.of_tool(-6.0)], [Some(-7.0), Some(-6.0)]);
    }
}
