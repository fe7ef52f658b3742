//! Reads a server's lists of resources and prompts, all pages of them.

use std::time::Duration;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams, Prompt, Resource, ResourceTemplate, ServerResult,
};
use rmcp::service::PeerRequestOptions;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::connection::{Connection, service_reason};

/// A list with more pages never ends.
const MOST_PAGES: usize = 1_000;
/// Of one server; further ones can still be read.
const MOST_LISTED: usize = 10_000;

/// The resources of a server, and the templates of the URIs of more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceLists {
    pub resources: Vec<Resource>,
    pub templates: Vec<ResourceTemplate>,
}

/// What can be listed.
trait Listed: DeserializeOwned {
    const METHOD: &str;
    /// Where the items are in the result.
    const KEY: &str;

    fn request(params: PaginatedRequestParams) -> ClientRequest;

    /// The items of a page and the cursor of the next; another result is returned.
    fn page(result: ServerResult) -> Result<(Vec<Self>, Option<String>), Box<ServerResult>>;
}

macro_rules! listed {
    ($item:ty, $method:literal, $key:literal, $request:ident, $result:ident, $field:ident) => {
        impl Listed for $item {
            const METHOD: &str = $method;
            const KEY: &str = $key;

            fn request(params: PaginatedRequestParams) -> ClientRequest {
                ClientRequest::$request($request::with_param(params))
            }

            fn page(result: ServerResult) -> Result<(Vec<Self>, Option<String>), Box<ServerResult>> {
                match result {
                    ServerResult::$result(page) => Ok((page.$field, page.next_cursor)),
                    other => Err(Box::new(other)),
                }
            }
        }
    };
}

listed!(Resource, "resources/list", "resources", ListResourcesRequest, ListResourcesResult, resources);
listed!(
    ResourceTemplate,
    "resources/templates/list",
    "resourceTemplates",
    ListResourceTemplatesRequest,
    ListResourceTemplatesResult,
    resource_templates
);
listed!(Prompt, "prompts/list", "prompts", ListPromptsRequest, ListPromptsResult, prompts);

impl Connection {
    pub(super) async fn fetch_resources(&self, limit: Duration) -> Result<ResourceLists, String> {
        if self.info.capabilities.resources.is_none() {
            return Ok(ResourceLists::default());
        }
        let end = Instant::now() + limit;
        let resources = self.fetch(end).await?;
        // Many servers without templates don't know the method.
        let templates = self.fetch(end).await.unwrap_or_else(|reason| {
            tracing::debug!(server = self.name, %reason, "no list of resource templates");
            Vec::new()
        });
        Ok(ResourceLists { resources, templates })
    }

    pub(super) async fn fetch_prompts(&self, limit: Duration) -> Result<Vec<Prompt>, String> {
        if self.info.capabilities.prompts.is_none() {
            return Ok(Vec::new());
        }
        self.fetch(Instant::now() + limit).await
    }

    async fn fetch<T: Listed>(&self, end: Instant) -> Result<Vec<T>, String> {
        let (mut items, mut cursor) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let request = T::request(PaginatedRequestParams::default().with_cursor(cursor.take()));
            let (page, next) = timeout_at(end, self.page::<T>(request))
                .await
                .unwrap_or_else(|_| Err(format!("{} takes too long", T::METHOD)))?;
            items.extend(page);
            if items.len() > MOST_LISTED {
                items.truncate(MOST_LISTED);
                tracing::warn!(
                    server = self.name,
                    "{} has more than {MOST_LISTED} items; the others aren't listed",
                    T::METHOD
                );
                return Ok(items);
            }
            match next {
                Some(next) if !next.is_empty() => cursor = Some(next),
                _ => return Ok(items),
            }
        }
        Err(format!("{} has more than {MOST_PAGES} pages", T::METHOD))
    }

    async fn page<T: Listed>(&self, request: ClientRequest) -> Result<(Vec<T>, Option<String>), String> {
        let failed = |error| format!("{} failed: {}", T::METHOD, service_reason(&error));
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut pending = super::pending_request::PendingRequest::new(sent.map_err(failed)?);
        let result = pending.answer().await.map_err(failed)?;
        T::page(result).or_else(|other| match *other {
            ServerResult::CustomResult(custom) => self.valid_items(custom.0),
            _ => Err(format!("its answer to {} is invalid", T::METHOD)),
        })
    }

    /// One invalid item doesn't make the others invalid.
    fn valid_items<T: Listed>(&self, mut page: Value) -> Result<(Vec<T>, Option<String>), String> {
        let Value::Array(listed) = page[T::KEY].take() else {
            return Err(format!("its answer to {} is invalid", T::METHOD));
        };
        let count = listed.len();
        let items: Vec<T> = listed.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect();
        let invalid = count - items.len();
        tracing::warn!(server = self.name, invalid, "{} has items that aren't valid", T::METHOD);
        Ok((items, page["nextCursor"].as_str().map(str::to_owned)))
    }
}
