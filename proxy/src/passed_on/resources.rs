//! Lists and reads resources, and finds the server of a URI.

use std::{collections::BTreeSet, sync::Arc};

use rmcp::model::{
    ErrorData, MetaObject, ReadResourceResponse, Resource, ResourceContents, ResourceTemplate,
};
use serde_json::json;

use crate::{
    app::App,
    downstream::{Answer, Input, Request, RequestKind, ResourceLists},
    links,
    run::{self, CallFailure, Job},
    tools::answer::tool_meta,
};

/// The resources of all servers on one page, because most clients read no second one.
pub(crate) async fn list(app: &App) -> Vec<Resource> {
    let mut all = Vec::new();
    for (server, lists) in app.servers.resources().await {
        all.extend(lists.resources.iter().cloned().map(|mut resource| {
            add_origin(&mut resource.meta, server, &resource.uri);
            resource.uri = links::of_server(server, &resource.uri);
            resource
        }));
    }
    all
}

/// The templates of all servers, likewise.
pub(crate) async fn templates(app: &App) -> Vec<ResourceTemplate> {
    let mut all = Vec::new();
    for (server, lists) in app.servers.resources().await {
        all.extend(lists.templates.iter().cloned().map(|mut template| {
            add_origin(&mut template.meta, server, &template.uri_template);
            template.uri_template = links::of_server(server, &template.uri_template);
            template
        }));
    }
    all
}

fn add_origin(meta: &mut Option<MetaObject>, server: &str, uri: &str) {
    let ours = tool_meta(vec![("server", json!(server)), ("uri", json!(uri))]);
    meta.get_or_insert_default().0.extend(ours.0);
}

pub(crate) async fn read(job: &Job, uri: &str, input: Input) -> Result<ReadResourceResponse, CallFailure> {
    let Located { server, uri } = locate(&job.app, uri).await?;
    let request = Request { server, kind: RequestKind::ReadResource(uri) };
    match run::ask_server(job, &request, input).await? {
        Answer::Question(asked) => Ok(asked.into()),
        Answer::Resource(mut result) => {
            result.contents.iter_mut().for_each(|contents| links::map_contents(&request.server, contents));
            Ok(result.into())
        }
        _ => Err(CallFailure::Protocol(ErrorData::internal_error("The server gave another answer.", None))),
    }
}

/// The approximate bytes of an answer.
pub(crate) fn size(answer: &ReadResourceResponse) -> usize {
    let ReadResourceResponse::Complete(result) = answer else { return 0 };
    result.contents.iter().map(size_of).sum()
}

pub(super) fn size_of(contents: &ResourceContents) -> usize {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => text.len(),
        ResourceContents::BlobResourceContents { blob, .. } => blob.len(),
        _ => 0,
    }
}

/// A resource's server, and its URI there.
pub(super) struct Located {
    pub(super) server: String,
    pub(super) uri: String,
}

/// Finds a resource by its listed URI, or by the server's own if that can only be one server's.
pub(super) async fn locate(app: &App, uri: &str) -> Result<Located, CallFailure> {
    if let Some(located) = listed(app, uri) {
        return Ok(located);
    }
    let lists = app.servers.resources().await;
    let server = owner(&lists, uri).map_err(|unknown| CallFailure::Protocol(unknown.into_error(uri)))?;
    Ok(Located { server: server.to_owned(), uri: uri.to_owned() })
}

/// A resource by its listed URI.
fn listed(app: &App, uri: &str) -> Option<Located> {
    let (server, uri) = links::parse(uri)?;
    app.servers.has(&server).then(|| Located { server, uri: uri.to_owned() })
}

/// Whether updates of it may be promised: its server is known, and isn't known to announce none.
pub(super) fn may_subscribe(app: &App, uri: &str) -> bool {
    let server = listed(app, uri)
        .map(|located| located.server)
        .or_else(|| owner(&app.servers.known_resources(), uri).ok().map(str::to_owned));
    server.is_some_and(|server| {
        app.servers
            .capabilities_of(&server)
            .is_none_or(|has| has.resources.is_some_and(|resources| resources.subscribe == Some(true)))
    })
}

/// Why a server's own URI isn't enough.
#[derive(Debug, PartialEq, Eq)]
enum Unknown<'a> {
    /// It may be a resource of each of these.
    Ambiguous(Vec<&'a str>),
    /// It is in no list of these.
    Nowhere(Vec<&'a str>),
}

/// The only server that lists the URI, or has a template for it, or has resources at all.
fn owner<'a>(lists: &[(&'a str, Arc<ResourceLists>)], uri: &str) -> Result<&'a str, Unknown<'a>> {
    let having = |has: &dyn Fn(&ResourceLists) -> bool| -> BTreeSet<&'a str> {
        lists.iter().filter(|(_, lists)| has(lists)).map(|(server, _)| *server).collect()
    };
    let all: Vec<&str> = lists.iter().map(|(server, _)| *server).collect();
    for found in [
        having(&|lists| lists.resources.iter().any(|resource| resource.uri == uri)),
        having(&|lists| lists.templates.iter().any(|template| template.uri_template == uri)),
        having(&|lists| lists.templates.iter().any(|template| links::matches(&template.uri_template, uri))),
    ] {
        match found.first() {
            Some(server) if found.len() == 1 => return Ok(server),
            Some(_) => return Err(Unknown::Ambiguous(found.into_iter().collect())),
            None => {}
        }
    }
    match all[..] {
        [server] => Ok(server),
        _ => Err(Unknown::Nowhere(all)),
    }
}

impl Unknown<'_> {
    fn into_error(self, uri: &str) -> ErrorData {
        let data = Some(json!({"uri": uri}));
        // Cut, because a client may send any text as a URI.
        let uri: String = uri.chars().take(512).collect();
        let uris = |servers: &[&str]| {
            servers.iter().map(|server| links::of_server(server, &uri)).collect::<Vec<_>>().join(", ")
        };
        match self {
            Unknown::Ambiguous(servers) => {
                let message =
                    format!("Several servers have the resource {uri}. Use one of: {}.", uris(&servers));
                ErrorData::invalid_params(message, data)
            }
            Unknown::Nowhere(servers) if servers.is_empty() => ErrorData::resource_not_found(
                format!("Resource not found: {uri}. No server has resources."),
                data,
            ),
            Unknown::Nowhere(servers) => {
                let message = format!(
                    "Resource not found: {uri}. No server lists it; if one has it nevertheless, use one of: {}.",
                    uris(&servers)
                );
                ErrorData::resource_not_found(message, data)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rmcp::model::{Resource, ResourceTemplate};

    use super::{ResourceLists, Unknown, owner};

    fn lists(resources: &[&str], templates: &[&str]) -> Arc<ResourceLists> {
        Arc::new(ResourceLists {
            resources: resources.iter().map(|uri| Resource::new(*uri, "r")).collect(),
            templates: templates.iter().map(|uri| ResourceTemplate::new(*uri, "t")).collect(),
        })
    }

    #[test]
    fn a_servers_own_uri_has_one_owner_or_none() {
        let all = [
            ("a", lists(&["x://1", "x://both"], &["t://{id}"])),
            ("b", lists(&["x://both", "t://listed"], &["u://{id}/b"])),
        ];
        for (uri, expected) in [
            ("x://1", Ok("a")),
            ("t://listed", Ok("b")),
            ("t://{id}", Ok("a")),
            ("t://7", Ok("a")),
            ("u://7/b", Ok("b")),
            ("x://both", Err(Unknown::Ambiguous(vec!["a", "b"]))),
            ("x://none", Err(Unknown::Nowhere(vec!["a", "b"]))),
        ] {
            assert_eq!(owner(&all, uri), expected, "{uri}");
        }
        assert_eq!(owner(&all[..1], "x://none"), Ok("a"), "the server itself says what it doesn't have");
        let error = owner(&all, "x://both").unwrap_err().into_error("x://both");
        assert!(error.message.contains("pml://a/x://both, pml://b/x://both"), "{error:?}");
    }
}
