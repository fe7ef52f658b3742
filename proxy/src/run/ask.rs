//! Sends a client's other requests to a downstream server: resources, prompts, completion.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::json;

use super::{Job, begin::CallFailure};
use crate::{
    downstream::{Answer, DownstreamError, Input, Request},
    links,
    request_state::StateOwner,
};

/// Seals the `requestState` of a server's question, and opens it when the client comes back.
pub(crate) async fn ask_server(
    job: &Job,
    request: &Request,
    mut input: Input,
) -> Result<Answer, CallFailure> {
    let Job { app, caller, .. } = job;
    let owner = || StateOwner::of(caller, &request.server, request.kind.method(), request.kind.subject());
    if let Some(sealed) = &mut input.state {
        *sealed = app.request_states.open(&app.database, caller, &owner(), sealed).await?;
    }
    let asking = job.carried(&request.server, input, |context| app.servers.ask(request, context));
    match asking.await {
        Ok(Answer::Question(mut asked)) => {
            if let Some(state) = &mut asked.request_state {
                *state = app.request_states.seal(&app.database, caller, &owner(), state).await?;
            }
            Ok(Answer::Question(asked))
        }
        Ok(answer) => Ok(answer),
        Err(error) => Err(CallFailure::Protocol(error_of(error))),
    }
}

/// A server's own error as it is, except for URIs of its resources; any other failure as an internal error.
pub(crate) fn error_of(error: DownstreamError) -> ErrorData {
    match error {
        DownstreamError::Refused { server, code, message, data, .. } => {
            let data = data.map(|mut data| {
                links::map_error(&server, &mut data);
                *data
            });
            ErrorData::new(ErrorCode(code), message, data)
        }
        error => {
            let message = format!("Can't ask the server: {error}.");
            ErrorData::internal_error(message, Some(json!({"kind": error.kind()})))
        }
    }
}
