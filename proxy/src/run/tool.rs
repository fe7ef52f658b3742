//! Calls the tools of downstream servers on behalf of a client, unchanged in both directions.

use std::time::{Duration, Instant};

use rmcp::model::{CallToolResponse, CallToolResult, ErrorCode, ErrorData};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tracing::Instrument;

use super::{Job, Step, ToolPlan, begin::NoAnswer, outcome::millis};
use crate::{
    downstream::{CallContext, DownstreamError, Input, PlainAnswer},
    request_state::Holder,
    tools::{answer, known::ServerTool},
    usage::Used,
};

/// A server's tool, called for a client that can't be asked anything.
pub(crate) async fn pass_on(
    job: Job,
    tool: ServerTool,
    arguments: Option<Box<RawValue>>,
) -> Result<PlainAnswer, ErrorData> {
    match job.pass_on(tool, arguments).await {
        Ok(answer) => Ok(answer),
        Err(error) => failed(error, false).map(PlainAnswer::of),
    }
}

/// The state of a call that isn't over goes out sealed and comes back so.
pub(super) async fn call_tool(
    job: Job,
    plan: ToolPlan,
    mut input: Input,
) -> Result<CallToolResponse, NoAnswer> {
    let (app, caller) = (job.app.clone(), job.caller.clone());
    let holder = Holder::of(&caller, &plan.server, &plan.tool);
    let answers = input.responses.is_some();
    if let Some(sealed) = &mut input.state {
        *sealed = app.request_states.open(&app.database, &caller, &holder, sealed).await?;
    }
    Ok(match job.call_tool(plan, input).await {
        Ok(CallToolResponse::InputRequired(mut asked)) => {
            if let Some(state) = &mut asked.request_state {
                *state = app.request_states.seal(&app.database, &caller, &holder, state).await?;
            }
            asked.into()
        }
        Ok(answer) => answer,
        Err(error) => failed(error, answers).map_err(NoAnswer::Client)?.into(),
    })
}

/// A failed call as a result for the agent; or an error, if it `answers` a question or lacks what the client should have.
fn failed(error: DownstreamError, answers: bool) -> Result<CallToolResult, ErrorData> {
    match error {
        // That is for the client to know, as the protocol has it.
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
    /// A question of the server is the answer for a client that can only be asked so.
    async fn call_tool(self, plan: ToolPlan, input: Input) -> Result<CallToolResponse, DownstreamError> {
        let started = Instant::now();
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let context = CallContext {
            cancel: self.cancel.clone(),
            progress: self.steps.wanted().then_some(sender),
            client: self.client.clone(),
            may_ask_back: true,
            input,
            request_id: self.caller.request_id.clone(),
            ..CallContext::default()
        };
        let ToolPlan { server, tool, args } = plan;
        let answered = {
            let calling = self.app.servers.call(&server, &tool, args, context);
            tokio::pin!(calling);
            loop {
                tokio::select! {
                    biased;
                    Some(progress) = receiver.recv() => self.steps.tell(|| Step::Tool(progress)),
                    answered = &mut calling => break answered,
                    () = self.app.lifecycle.end_calls.cancelled() => {
                        break Err(DownstreamError::Closed { server: server.clone() });
                    }
                }
            }
        };
        let is_error = match &answered {
            // Not over yet: it is counted when it is.
            Ok(CallToolResponse::InputRequired(_)) => return answered,
            Ok(CallToolResponse::Complete(result)) => Ok(result.is_error == Some(true)),
            Ok(_) => Ok(false),
            Err(error) => Err(error),
        };
        self.count(Count::of(ServerTool { server, tool }, started, is_error));
        answered
    }

    /// Calls a downstream server's tool for a client that is told and asked nothing meanwhile.
    async fn pass_on(
        self,
        tool: ServerTool,
        arguments: Option<Box<RawValue>>,
    ) -> Result<PlainAnswer, DownstreamError> {
        let started = Instant::now();
        let context = CallContext {
            cancel: self.cancel.clone(),
            request_id: self.caller.request_id.clone(),
            ..CallContext::default()
        };
        let answered = tokio::select! {
            biased;
            answered = self.app.servers.pass_on(&tool.server, &tool.tool, arguments.as_deref(), context) => answered,
            () = self.app.lifecycle.end_calls.cancelled() => Err(DownstreamError::Closed { server: tool.server.clone() }),
        };
        let counted = Count::of(tool, started, answered.as_ref().map(|answer| answer.is_error));
        // The answer is on its way when this is done.
        let (calls, job) = (self.app.lifecycle.calls.clone(), self);
        calls.spawn(async move { job.count(counted) }.in_current_span());
        answered
    }

    fn count(&self, Count { tool: ServerTool { server, tool }, duration, ended, error }: Count) {
        tracing::info!(server, tool, success = error.is_none(), ms = millis(duration), "tool");
        // The client needn't wait for the statistics.
        self.app.usage.add(Used { caller: self.caller.clone(), server, tool, duration, error, ended });
    }
}

/// A call of a server's tool that has ended.
struct Count {
    tool: ServerTool,
    duration: Duration,
    ended: Instant,
    error: Option<String>,
}

impl Count {
    /// `is_error` says whether the answer is one, or why there is none.
    fn of(tool: ServerTool, started: Instant, is_error: Result<bool, &DownstreamError>) -> Count {
        let error = match is_error {
            Ok(false) => None,
            Ok(true) => Some("the tool answered with an error".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        Count { tool, duration: started.elapsed(), ended: Instant::now(), error }
    }
}
