//! Requests to a server other than calls of its tools, and their answers.

#![expect(deprecated, reason = "subscriptions by request are, but older servers know no other")]

use rmcp::model::{
    ClientRequest, CompleteRequest, CompleteRequestParams, CompleteResult, GetPromptRequest,
    GetPromptRequestParams, GetPromptResult, InputRequiredResult, JsonObject, ReadResourceRequest,
    ReadResourceRequestParams, ReadResourceResult, ResultType, ServerResult, SubscribeRequest,
    SubscribeRequestParams, UnsubscribeRequest, UnsubscribeRequestParams,
};
use serde::de::DeserializeOwned;

use super::call::Input;

/// A request, with the server's own names.
#[derive(Clone, Debug)]
pub struct Request {
    pub server: String,
    pub kind: RequestKind,
}

#[derive(Clone, Debug)]
pub enum RequestKind {
    /// By its URI.
    ReadResource(String),
    GetPrompt(String, Option<JsonObject>),
    Complete(Box<CompleteRequestParams>),
    /// To updates of the resource with this URI.
    Subscribe(String),
    Unsubscribe(String),
}

/// A server's answer.
#[derive(Debug)]
pub enum Answer {
    Resource(ReadResourceResult),
    Prompt(GetPromptResult),
    Completion(CompleteResult),
    /// For a client that repeats the request with its response.
    Question(InputRequiredResult),
    Done,
}

impl RequestKind {
    pub fn method(&self) -> &'static str {
        match self {
            RequestKind::ReadResource(_) => "resources/read",
            RequestKind::GetPrompt(..) => "prompts/get",
            RequestKind::Complete(_) => "completion/complete",
            RequestKind::Subscribe(_) => "resources/subscribe",
            RequestKind::Unsubscribe(_) => "resources/unsubscribe",
        }
    }

    /// The URI or name that it is about.
    pub fn subject(&self) -> &str {
        match self {
            RequestKind::ReadResource(uri) | RequestKind::Subscribe(uri) | RequestKind::Unsubscribe(uri) => {
                uri
            }
            RequestKind::GetPrompt(name, _) => name,
            RequestKind::Complete(_) => "",
        }
    }

    pub(super) fn request(&self, input: &Input) -> ClientRequest {
        match self {
            RequestKind::ReadResource(uri) => {
                let mut params = ReadResourceRequestParams::new(uri);
                params.input_responses.clone_from(&input.responses);
                params.request_state.clone_from(&input.state);
                ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
            }
            RequestKind::GetPrompt(name, arguments) => {
                let mut params = GetPromptRequestParams::new(name);
                params.arguments.clone_from(arguments);
                params.input_responses.clone_from(&input.responses);
                params.request_state.clone_from(&input.state);
                ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
            }
            RequestKind::Complete(params) => {
                ClientRequest::CompleteRequest(CompleteRequest::new((**params).clone()))
            }
            RequestKind::Subscribe(uri) => {
                ClientRequest::SubscribeRequest(SubscribeRequest::new(SubscribeRequestParams::new(uri)))
            }
            RequestKind::Unsubscribe(uri) => {
                ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(UnsubscribeRequestParams::new(uri)))
            }
        }
    }

    /// The answer in a result of the server, or what is wrong with it.
    pub(super) fn answer(&self, result: ServerResult) -> Result<Answer, String> {
        // Older servers omit the type, newer clients require it, and rmcp removes it for older clients.
        let complete = Some(ResultType::COMPLETE);
        Ok(match (self, result) {
            (_, ServerResult::InputRequiredResult(asked)) => Answer::Question(asked),
            (RequestKind::Subscribe(_) | RequestKind::Unsubscribe(_), _) => Answer::Done,
            (RequestKind::ReadResource(_), result) => {
                let mut contents = match result {
                    ServerResult::ReadResourceResult(contents) => contents,
                    other => parsed(other)?,
                };
                contents.result_type = complete;
                Answer::Resource(contents)
            }
            (RequestKind::GetPrompt(..), result) => {
                let mut prompt = match result {
                    ServerResult::GetPromptResult(prompt) => prompt,
                    other => parsed(other)?,
                };
                prompt.result_type = complete;
                Answer::Prompt(prompt)
            }
            (RequestKind::Complete(_), result) => {
                let mut completion = match result {
                    ServerResult::CompleteResult(completion) => completion,
                    other => parsed(other)?,
                };
                completion.result_type = complete;
                Answer::Completion(completion)
            }
        })
    }
}

/// A result that rmcp didn't recognise.
fn parsed<T: DeserializeOwned>(result: ServerResult) -> Result<T, String> {
    match result {
        ServerResult::CustomResult(custom) => {
            serde_json::from_value(custom.0).map_err(|error| error.to_string())
        }
        _ => Err("it is another kind of result".to_owned()),
    }
}
