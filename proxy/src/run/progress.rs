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
    // Below every number, because a tool's own may well begin at 0.
    let mut progress = f64::NEG_INFINITY;
    let mut calls = 0_u32;
    // A tool that tells its own progress tells it in its own measure; ours would go backwards.
    let mut passes_on = false;
    loop {
        let said = tokio::select! {
            step = steps.recv() => match step {
                None => return,
                Some(Step::Call(target)) => {
                    calls += 1;
                    Some((None, Some(format!("Call {calls}: {target}"))))
                }
                Some(Step::Inside(target, inner)) => {
                    let far = inner.total.map_or_else(|| inner.progress.to_string(), |total| format!("{} of {total}", inner.progress));
                    let message = inner.message.map_or_else(String::new, |message| format!(": {message}"));
                    Some((None, Some(format!("{target} is at {far}{message}"))))
                }
                Some(Step::Tool(inner)) => {
                    passes_on = true;
                    if inner.progress <= progress { continue; }
                    progress = inner.progress;
                    Some((inner.total, inner.message))
                }
            },
            _ = beat.tick(), if !passes_on => {
                Some((None, Some(format!("Running for {} s", started.elapsed().as_secs()))))
            }
        };
        let Some((total, message)) = said else { continue };
        if !passes_on {
            progress = progress.max(0.0) + 1.0;
        }
        let mut params = ProgressNotificationParam::new(token.clone(), progress);
        params.total = total;
        params.message = message;
        if peer.notify_progress(params).await.is_err() {
            return;
        }
    }
}
