//! What a server announces: changed lists, and updates of resources.

use std::sync::Arc;

use rmcp::model::{ServerJsonRpcMessage, ServerNotification};
use tokio::sync::Notify;

use super::subscriptions::Subscriptions;

/// The announcements of one connection.
pub(super) struct Announcements {
    pub(super) tools: Notify,
    pub(super) resources: Notify,
    pub(super) prompts: Notify,
    subscriptions: Arc<Subscriptions>,
}

impl Announcements {
    pub(super) fn new(subscriptions: Arc<Subscriptions>) -> Arc<Announcements> {
        Arc::new(Announcements {
            tools: Notify::new(),
            resources: Notify::new(),
            prompts: Notify::new(),
            subscriptions,
        })
    }

    /// All lists may have changed.
    pub(super) fn all(&self) {
        [&self.tools, &self.resources, &self.prompts].into_iter().for_each(Notify::notify_one);
    }

    pub(super) fn heard(&self, notification: &ServerNotification) {
        match notification {
            ServerNotification::ToolListChangedNotification(_) => self.tools.notify_one(),
            ServerNotification::ResourceListChangedNotification(_) => self.resources.notify_one(),
            ServerNotification::PromptListChangedNotification(_) => self.prompts.notify_one(),
            ServerNotification::ResourceUpdatedNotification(update) => {
                self.subscriptions.updated(&update.params.uri);
            }
            _ => {}
        }
    }

    /// A notification that rmcp doesn't see.
    pub(super) fn heard_raw(&self, message: &[u8]) {
        if let Ok(ServerJsonRpcMessage::Notification(message)) = serde_json::from_slice(message) {
            self.heard(&message.notification);
        }
    }
}
