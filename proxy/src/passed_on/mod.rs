//! Resources and prompts of the downstream servers, passed on to clients under names that can't clash.

mod completion;
mod prompts;
mod resources;
mod subscriptions;

use rmcp::model::{ServerCapabilities, SubscriptionFilter};

use crate::{app::App, downstream::Downstreams};

pub(crate) use self::{
    completion::complete,
    prompts::{get as get_prompt, list as list_prompts, size as prompt_size},
    resources::{
        list as list_resources, read as read_resource, size as resource_size, templates as list_templates,
    },
    subscriptions::{SessionSubscriptions, StreamSubscriptions},
};

/// What clients are told that there is.
pub(crate) struct Offered {
    pub resources: bool,
    pub subscribe: bool,
    pub prompts: bool,
    pub completions: bool,
}

impl Offered {
    /// What some server has, or may have, because it wasn't started yet: clients are notified of what it lists then.
    pub(crate) fn by(servers: &Downstreams) -> Offered {
        let all = servers.capabilities();
        let some = |has: fn(&ServerCapabilities) -> bool| all.iter().any(|it| it.as_ref().is_none_or(has));
        Offered {
            resources: some(|it| it.resources.is_some()),
            subscribe: some(|it| it.resources.as_ref().is_some_and(|it| it.subscribe == Some(true))),
            prompts: some(|it| it.prompts.is_some()),
            completions: some(|it| it.completions.is_some()),
        }
    }
}

/// What a stream may be promised of what its client wants: updates only of resources whose server is known not to lack them.
pub(crate) fn accepted(app: &App, mut requested: SubscriptionFilter) -> SubscriptionFilter {
    if let Some(uris) = &mut requested.resource_subscriptions {
        uris.retain(|uri| resources::may_subscribe(app, uri));
    }
    requested
}
