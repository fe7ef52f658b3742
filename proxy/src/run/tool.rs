//! Calls a downstream server's tool for a client, with arguments and result unchanged.

use std::time::Instant;

use rmcp::model::{CallToolResponse, CallToolResult, ErrorCode, ErrorData};
use tokio::sync::mpsc;
use tracing::Instrument;

use super::{Job, Step, begin::CallFailure, outcome::millis};
use crate::{
    downstream::{Call, CallContext, DownstreamError, Input, Progress, ToolAnswer},
    links,
    request_state::StateOwner,
    tools::answer,
    usage::ToolUse,
};

/// Seals the `requestState` of a server's question, and opens it when the client comes back.
pub(crate) async fn call_tool(job: &Job, call: &Call, mut input: Input) -> Result<ToolAnswer, CallFailure> {
    let Job { app, caller, .. } = job;
    let owner = || StateOwner::of(caller, &call.server, "tools/call", &call.tool);
    let answers = input.responses.is_some();
    if let Some(sealed) = &mut input.state {
        *sealed = app.request_states.open(&app.database, caller, &owner(), sealed).await?;
    }
    Ok(match job.call_tool(call, input).await {
        Ok(ToolAnswer::Parsed(CallToolResponse::InputRequired(mut asked))) => {
            if let Some(state) = &mut asked.request_state {
                *state = app.request_states.seal(&app.database, caller, &owner(), state).await?;
            }
            ToolAnswer::Parsed(asked.into())
        }
        Ok(answer) => with_links(&call.server, answer),
        Err(error) => ToolAnswer::Parsed(failed(error, answers).map_err(CallFailure::Protocol)?.into()),
    })
}

/// Maps the resources that the answer links to, so that the client can read them.
fn with_links(server: &str, answer: ToolAnswer) -> ToolAnswer {
    match answer {
        ToolAnswer::Parsed(CallToolResponse::Complete(mut result)) => {
            result.content.iter_mut().for_each(|block| links::map_block(server, block));
            ToolAnswer::Parsed(result.into())
        }
        ToolAnswer::Raw(mut answer) => {
            answer.result = links::map_raw(server, answer.result);
            ToolAnswer::Raw(answer)
        }
        other => other,
    }
}

/// A failed call as a result for the agent; or a protocol error, if the client's capabilities or its `answers` are wrong.
fn failed(error: DownstreamError, answers: bool) -> Result<CallToolResult, ErrorData> {
    match error {
        // The protocol wants the client to see these.
        DownstreamError::Refused { code, message, data, .. }
            if code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0
                || (answers && code == ErrorCode::INVALID_PARAMS.0) =>
        {
            Err(ErrorData::new(ErrorCode(code), message, data.map(|data| *data)))
        }
        error => Ok(answer::failure(error.to_string())),
    }
}

impl Job {
    /// The answer may be a question, for a client of the newer era.
    async fn call_tool(&self, call: &Call, input: Input) -> Result<ToolAnswer, DownstreamError> {
        let started = Instant::now();
        let answered =
            self.carried(&call.server, input, |context| self.app.servers.call(call, context)).await;
        // A call that was answered with a question isn't over yet.
        if !matches!(answered, Ok(ToolAnswer::Parsed(CallToolResponse::InputRequired(_)))) {
            self.count(call, started, &answered);
        }
        answered
    }

    /// Sends something to a server: reports its progress, and gives up when the proxy ends.
    pub(super) async fn carried<T, F>(
        &self,
        server: &str,
        input: Input,
        send: impl FnOnce(CallContext) -> F,
    ) -> Result<T, DownstreamError>
    where
        F: Future<Output = Result<T, DownstreamError>>,
    {
        let (sender, mut receiver) = self.steps.wanted().then(mpsc::unbounded_channel).unzip();
        let context = CallContext {
            cancel: self.cancel.clone(),
            progress: sender,
            client: self.client.clone(),
            may_ask_back: true,
            input,
            request_id: self.caller.request_id.clone(),
            ..CallContext::default()
        };
        let mut sending = std::pin::pin!(send(context));
        loop {
            tokio::select! {
                biased;
                Some(progress) = next(receiver.as_mut()) => self.steps.report(|| Step::Tool(progress)),
                answered = &mut sending => return answered,
                () = self.app.lifecycle.end_calls.cancelled() => {
                    return Err(DownstreamError::Closed { server: server.to_owned() });
                }
            }
        }
    }

    /// Records a call that has ended, without delaying its answer.
    fn count(&self, call: &Call, started: Instant, answered: &Result<ToolAnswer, DownstreamError>) {
        let error = match answered {
            Ok(answer) if answer.is_error() => Some("the tool answered with an error".to_owned()),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        let used = ToolUse {
            caller: self.caller.clone(),
            server: call.server.clone(),
            tool: call.tool.clone(),
            duration: started.elapsed(),
            error,
            ended: Instant::now(),
        };
        let app = self.app.clone();
        let counting = async move {
            let ToolUse { server, tool, duration, error, .. } = &used;
            tracing::info!(server, tool, success = error.is_none(), ms = millis(*duration), "tool");
            app.usage.add(used);
        };
        self.app.lifecycle.calls.spawn(counting.in_current_span());
    }
}

/// The next progress, if it is wanted.
async fn next(progress: Option<&mut mpsc::UnboundedReceiver<Progress>>) -> Option<Progress> {
    progress?.recv().await
}
