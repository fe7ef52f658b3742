//! The connection that listens for notifications: direct to Postgres, not through a pooler.

use std::{future::poll_fn, sync::Arc, time::Duration};

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::{interval, sleep, timeout};
use tokio_postgres::{AsyncMessage, Config};
use tokio_util::sync::CancellationToken;

use super::{
    DatabaseError,
    connect::{Connector, log_notice},
    connect_error,
};
use crate::backoff::pauses;

/// Back-off between connection attempts.
const RECONNECTING: ExponentialBuilder = pauses(Duration::from_millis(50), Duration::from_secs(5));
/// How often the connection is checked.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Handles notifications. Payloads may be any text, because any database user can send them. Handlers must not block:
/// Postgres queues what isn't read.
pub trait NotificationHandler: Send + Sync + 'static {
    /// The tools of this `org.project` may have changed.
    fn tools_changed(&self, payload: &str);
    /// The token with this id may have been revoked or changed.
    fn tokens_changed(&self, payload: &str);
    /// Connected or reconnected: notifications may have been missed.
    fn connected(&self);
    /// The connection is lost: no notifications arrive until it is back.
    fn lost(&self);
}

/// Listens until `stop`, and reconnects with back-off when the connection is lost.
pub async fn listen(config: Config, handler: Arc<impl NotificationHandler>, stop: CancellationToken) {
    let connector = Connector::new();
    let mut pauses = RECONNECTING.build();
    loop {
        let lasted = tokio::select! {
            () = stop.cancelled() => return,
            lasted = attend(&connector, &config, &handler) => lasted,
        };
        if lasted.is_ok() {
            // It worked for a while, so the back-off starts over.
            pauses = RECONNECTING.build();
        }
        let pause = pauses.next().unwrap_or_default();
        match lasted {
            Ok(error) => {
                handler.lost();
                tracing::warn!(%error, "lost the connection for notifications");
            }
            Err(error) => tracing::warn!(%error, "can't listen for notifications; retrying in {pause:?}"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(pause) => {}
        }
    }
}

/// `Err` if it can't connect, `Ok` with the reason if a connection was lost.
async fn attend(
    connector: &Connector,
    config: &Config,
    handler: &Arc<impl NotificationHandler>,
) -> Result<DatabaseError, DatabaseError> {
    let (client, mut connection) = connector.open(config).await.map_err(|error| connect_error(&error))?;
    let notified = handler.clone();
    // Each message is handled as it is read, so that a flood fills no queue.
    let driver = tokio::spawn(async move {
        loop {
            match poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notification(note))) => match note.channel() {
                    "pml_tools_changed" => notified.tools_changed(note.payload()),
                    "pml_tokens_changed" => notified.tokens_changed(note.payload()),
                    _ => {}
                },
                Some(Ok(AsyncMessage::Notice(notice))) => log_notice(&notice),
                Some(Ok(_)) => {}
                Some(Err(error)) => return connect_error(&error),
                None => return DatabaseError::Unreachable("Postgres closed the connection".into()),
            }
        }
    });
    // Closes the connection however this function returns.
    let mut driver = AbortOnDrop(driver);
    client
        .batch_execute("LISTEN pml_tools_changed; LISTEN pml_tokens_changed")
        .await
        .map_err(|error| connect_error(&error))?;
    handler.connected();
    let mut pulse = interval(KEEPALIVE);
    loop {
        tokio::select! {
            ended = &mut driver.0 => {
                return Ok(ended.unwrap_or_else(|error| DatabaseError::Unreachable(error.to_string())));
            }
            _ = pulse.tick() => {
                let alive = timeout(KEEPALIVE, client.simple_query("")).await;
                if !matches!(alive, Ok(Ok(_))) {
                    return Ok(DatabaseError::Unreachable("no answer on the connection".into()));
                }
            }
        }
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<DatabaseError>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
