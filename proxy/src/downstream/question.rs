//! The questions of servers: elicitation, sampling and roots, and the answers when nobody can be asked.

#![expect(deprecated, reason = "sampling and roots are, but servers use them")]

use rmcp::model::{
    ClientCapabilities, ClientResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode,
    ErrorData, InputRequest, ListRootsResult, MetaObject, ServerRequest,
};
use serde_json::json;

const ELICITATION: &str = "elicitation/create";

/// A question, and its kind, which the client must support.
pub(super) struct Question {
    pub(super) request: ServerRequest,
    kind: QuestionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuestionKind {
    /// A person fills in a form.
    Form,
    /// A person opens a page.
    Url,
    /// A language model continues a conversation.
    Sampling,
    /// The same with tools.
    SamplingWithTools,
    /// The client's folders.
    Roots,
}

impl QuestionKind {
    fn shown(self) -> &'static str {
        match self {
            QuestionKind::Form => "elicitation",
            QuestionKind::Url => "elicitation by URL",
            QuestionKind::Sampling => "sampling",
            QuestionKind::SamplingWithTools => "sampling with tools",
            QuestionKind::Roots => "roots",
        }
    }
}

impl Question {
    /// The question that a request is; any other request is returned.
    pub(super) fn of(request: ServerRequest) -> Result<Question, Box<ServerRequest>> {
        let kind = match &request {
            ServerRequest::ElicitRequest(asked) => match asked.params {
                ElicitRequestParams::UrlElicitationParams { .. } => QuestionKind::Url,
                _ => QuestionKind::Form,
            },
            // A form that rmcp can't parse, but the client may.
            ServerRequest::CustomRequest(custom) if custom.method == ELICITATION => QuestionKind::Form,
            ServerRequest::CreateMessageRequest(asked) => {
                if asked.params.tools.is_some() || asked.params.tool_choice.is_some() {
                    QuestionKind::SamplingWithTools
                } else {
                    QuestionKind::Sampling
                }
            }
            ServerRequest::ListRootsRequest(_) => QuestionKind::Roots,
            _ => return Err(Box::new(request)),
        };
        Ok(Question { request, kind })
    }

    /// A question of an `InputRequiredResult`.
    pub(super) fn of_input(input: InputRequest) -> Option<Question> {
        let request = match input {
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => return None,
        };
        Question::of(request).ok()
    }

    pub(super) fn shown(&self) -> &'static str {
        self.kind.shown()
    }

    /// Whether a client with these capabilities may be asked it.
    pub(super) fn fits(&self, capabilities: &ClientCapabilities) -> bool {
        let elicitation = capabilities.elicitation.as_ref();
        let sampling = capabilities.sampling.as_ref();
        match self.kind {
            // Without details it means forms, the only kind at first.
            QuestionKind::Form => elicitation.is_some_and(|has| has.form.is_some() || has.url.is_none()),
            QuestionKind::Url => elicitation.is_some_and(|has| has.url.is_some()),
            QuestionKind::Sampling => sampling.is_some(),
            QuestionKind::SamplingWithTools => sampling.is_some_and(|has| has.tools.is_some()),
            QuestionKind::Roots => capabilities.roots.is_some(),
        }
    }

    /// The answer when nobody can be asked: declined, no folders, or an error.
    pub(super) fn refused(&self, why: &str) -> Result<ClientResult, ErrorData> {
        match self.kind {
            QuestionKind::Form | QuestionKind::Url => {
                let mut declined = ElicitResult::new(ElicitationAction::Decline);
                let reason = json!({"declinedBecause": why});
                declined.meta = Some(MetaObject(serde_json::Map::from_iter([("pml".to_owned(), reason)])));
                Ok(ClientResult::ElicitResult(declined))
            }
            QuestionKind::Roots => Ok(ClientResult::ListRootsResult(ListRootsResult::default())),
            QuestionKind::Sampling | QuestionKind::SamplingWithTools => {
                let message = format!("No {} available: {why}.", self.shown());
                Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
            }
        }
    }
}
