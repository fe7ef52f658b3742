//! Answers servers' questions for a client: a person, a language model and roots in one.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use rmcp::{
    ErrorData,
    model::{ElicitRequestParams, ElicitResult, ElicitationAction},
};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::eventually;

/// Answers with a name, at once or when told to. Clones are the same person.
#[derive(Clone)]
pub struct Person(Arc<Inner>);

struct Inner {
    name: String,
    thinks: bool,
    may_answer: Notify,
    asked: Mutex<Vec<String>>,
    left_alone: AtomicBool,
}

impl Person {
    pub fn new(name: &str) -> Person {
        Person::made(name, false)
    }

    /// One who answers when [`Person::answer`] is called.
    pub fn thoughtful(name: &str) -> Person {
        Person::made(name, true)
    }

    fn made(name: &str, thinks: bool) -> Person {
        Person(Arc::new(Inner {
            name: name.to_owned(),
            thinks,
            may_answer: Notify::new(),
            asked: Mutex::default(),
            left_alone: AtomicBool::new(false),
        }))
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub fn asked(&self) -> Vec<String> {
        self.0.asked.lock().expect("no panic while locked").clone()
    }

    /// Waits until there is a question.
    pub fn is_asked(&self) {
        eventually("a question", || (!self.asked().is_empty()).then_some(()));
    }

    pub fn answer(&self) {
        self.0.may_answer.notify_one();
    }

    /// Waits until the question is withdrawn.
    pub fn is_left_alone(&self) {
        eventually("the question is withdrawn", || self.0.left_alone.load(Ordering::SeqCst).then_some(()));
    }

    pub(super) async fn hears(&self, question: &str, cancel: &CancellationToken) {
        self.0.asked.lock().expect("no panic while locked").push(question.to_owned());
        if self.0.thinks {
            tokio::select! {
                () = self.0.may_answer.notified() => {}
                () = cancel.cancelled() => self.0.left_alone.store(true, Ordering::SeqCst),
            }
        }
    }

    pub(super) async fn elicited(
        &self,
        params: &ElicitRequestParams,
        cancel: &CancellationToken,
    ) -> Result<ElicitResult, ErrorData> {
        let question = match params {
            ElicitRequestParams::FormElicitationParams { message, .. }
            | ElicitRequestParams::UrlElicitationParams { message, .. } => message,
            other => panic!("{other:?}"),
        };
        self.hears(question, cancel).await;
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": self.name()})))
    }
}
