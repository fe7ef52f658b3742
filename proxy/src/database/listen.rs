//! The one connection that listens for changes, straight to Postgres and never through a pooler.

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

/// How long to wait for another connection.
const RECONNECTING: ExponentialBuilder = pauses(Duration::from_millis(50), Duration::from_secs(5));
/// How often a silent connection is asked whether it still lives.
const PULSE: Duration = Duration::from_secs(10);

/// Who is told what happened in the database. Payloads are anybody's text. Nothing here may take long: what isn't taken
/// yet waits in Postgres.
pub trait NotificationHandler: Send + Sync + 'static {
    /// The tools of this `org.project` are others now, somebody says.
    fn tools_changed(&self, payload: &str);
    /// The token with this id was revoked or changed, somebody says.
    fn tokens_changed(&self, payload: &str);
    /// The connection is there (again); anything may have changed meanwhile.
    fn connected(&self);
    /// The connection is gone; nothing is heard until it is back.
    fn lost(&self);
}

/// Tells what happens until `stop`; connects again, with growing pauses, whenever the connection is lost.
pub async fn listen(config: Config, ears: Arc<impl NotificationHandler>, stop: CancellationToken) {
    let connector = Connector::new();
    let mut pauses = RECONNECTING.build();
    loop {
        let lasted = tokio::select! {
            () = stop.cancelled() => return,
            lasted = attend(&connector, &config, &ears) => lasted,
        };
        if lasted.is_ok() {
            // It worked for a while, so the next try comes at once.
            pauses = RECONNECTING.build();
        }
        let pause = pauses.next().unwrap_or_default();
        match lasted {
            Ok(error) => {
                ears.lost();
                tracing::warn!(%error, "the connection that listens for changes is lost");
            }
            Err(error) => tracing::warn!(%error, "can't listen for changes; trying again in {pause:?}"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(pause) => {}
        }
    }
}

/// `Err` if there was no connection, `Ok` with the reason if there was one and it ended.
async fn attend(
    connector: &Connector,
    config: &Config,
    ears: &Arc<impl NotificationHandler>,
) -> Result<DatabaseError, DatabaseError> {
    let (client, mut connection) = connector.open(config).await.map_err(|error| connect_error(&error))?;
    let heard = ears.clone();
    // Each message is dealt with as it is read, so that a flood fills no queue.
    let driver = tokio::spawn(async move {
        loop {
            match poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notification(note))) => match note.channel() {
                    "pml_tools_changed" => heard.tools_changed(note.payload()),
                    "pml_tokens_changed" => heard.tokens_changed(note.payload()),
                    _ => {}
                },
                Some(Ok(AsyncMessage::Notice(notice))) => log_notice(&notice),
                Some(Ok(_)) => {}
                Some(Err(error)) => return connect_error(&error),
                None => return DatabaseError::Unreachable("Postgres closed the connection".into()),
            }
        }
    });
    // Ends the driver, and with it the connection, whichever way this function ends.
    let mut driver = AbortOnDrop(driver);
    client
        .batch_execute("LISTEN pml_tools_changed; LISTEN pml_tokens_changed")
        .await
        .map_err(|error| connect_error(&error))?;
    ears.connected();
    let mut pulse = interval(PULSE);
    loop {
        tokio::select! {
            ended = &mut driver.0 => {
                return Ok(ended.unwrap_or_else(|error| DatabaseError::Unreachable(error.to_string())));
            }
            _ = pulse.tick() => {
                let alive = timeout(PULSE, client.simple_query("")).await;
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
