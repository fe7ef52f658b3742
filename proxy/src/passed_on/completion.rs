//! Completes arguments of prompts and of resource templates.

use rmcp::model::{CompleteRequestParams, CompleteResult, ErrorCode, ErrorData, Reference};

use super::{prompts, resources};
use crate::{
    downstream::{Answer, Input, Request, RequestKind},
    run::{self, CallFailure, Job},
};

pub(crate) async fn complete(
    job: &Job,
    mut params: CompleteRequestParams,
) -> Result<CompleteResult, CallFailure> {
    let server = match &mut params.r#ref {
        Reference::Prompt(prompt) => {
            let (server, name) = prompts::locate(&job.app, &prompt.name).await?;
            prompt.name = name;
            server
        }
        Reference::Resource(resource) => {
            let located = resources::locate(&job.app, &resource.uri).await?;
            resource.uri = located.uri;
            located.server
        }
        _ => {
            return Err(CallFailure::Protocol(ErrorData::invalid_params("Unknown kind of reference.", None)));
        }
    };
    // Clients ask for every argument if any server completes, so one that doesn't isn't a failure.
    if job.app.servers.capabilities_of(&server).is_some_and(|has| has.completions.is_none()) {
        return Ok(CompleteResult::default());
    }
    params.meta = None;
    let request = Request { server, kind: RequestKind::Complete(Box::new(params)) };
    match run::ask_server(job, &request, Input::default()).await {
        Ok(Answer::Completion(result)) => Ok(result),
        Err(CallFailure::Protocol(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            Ok(CompleteResult::default())
        }
        Ok(_) => {
            Err(CallFailure::Protocol(ErrorData::internal_error("The server gave another answer.", None)))
        }
        Err(failure) => Err(failure),
    }
}
