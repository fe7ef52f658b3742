//! Lists prompts and gets them.

use pml_core::prompt_name::{parse_prompt_name, prompt_name};
use rmcp::model::{ContentBlock, ErrorData, GetPromptResponse, JsonObject, Prompt};
use serde_json::json;

use super::resources::size_of;
use crate::{
    app::App,
    downstream::{Answer, Input, Request, RequestKind},
    links,
    run::{self, CallFailure, Job},
    tools::answer::tool_meta,
};

/// The prompts of all servers on one page.
pub(crate) async fn list(app: &App) -> Vec<Prompt> {
    let mut all = Vec::new();
    for (server, prompts) in app.servers.prompts().await {
        all.extend(prompts.iter().cloned().map(|mut prompt| {
            let ours = tool_meta(vec![("server", json!(server)), ("name", json!(prompt.name))]);
            prompt.meta.get_or_insert_default().0.extend(ours.0);
            prompt.name = prompt_name(server, &prompt.name);
            prompt
        }));
    }
    all
}

pub(crate) async fn get(
    job: &Job,
    name: &str,
    arguments: Option<JsonObject>,
    input: Input,
) -> Result<GetPromptResponse, CallFailure> {
    let (server, name) = locate(&job.app, name).await?;
    let request = Request { server, kind: RequestKind::GetPrompt(name, arguments) };
    match run::ask_server(job, &request, input).await? {
        Answer::Question(asked) => Ok(asked.into()),
        Answer::Prompt(mut result) => {
            for message in &mut result.messages {
                links::map_block(&request.server, &mut message.content);
            }
            Ok(result.into())
        }
        _ => Err(CallFailure::Protocol(ErrorData::internal_error("The server gave another answer.", None))),
    }
}

/// The approximate bytes of an answer.
pub(crate) fn size(answer: &GetPromptResponse) -> usize {
    let GetPromptResponse::Complete(result) = answer else { return 0 };
    let sizes = result.messages.iter().map(|message| match &message.content {
        ContentBlock::Text(text) => text.text.len(),
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Audio(audio) => audio.data.len(),
        ContentBlock::Resource(embedded) => size_of(&embedded.resource),
        _ => 0,
    });
    sizes.sum()
}

/// The server of a prompt, and its name there.
pub(super) async fn locate(app: &App, name: &str) -> Result<(String, String), CallFailure> {
    if let Some((server, prompt)) = parse_prompt_name(name)
        && app.servers.has(server)
    {
        return Ok((server.to_owned(), prompt.to_owned()));
    }
    let mut own = None;
    for (server, prompts) in app.servers.prompts().await {
        for prompt in prompts.iter() {
            let ours = prompt_name(server, &prompt.name);
            if ours == name {
                return Ok((server.to_owned(), prompt.name.clone()));
            }
            if prompt.name == name {
                own = Some(ours);
            }
        }
    }
    // Cut, because a client may send any text as a name.
    let name: String = name.chars().take(128).collect();
    let hint = own.map_or_else(String::new, |own| format!(" (did you mean {own}?)"));
    Err(CallFailure::Protocol(ErrorData::invalid_params(format!("Unknown prompt: {name}{hint}"), None)))
}
