//! The one connection that listens for changes, straight to Postgres and never through a pooler.

use std::{future::poll_fn, time::Duration};

use tokio::{
    sync::mpsc,
    time::{interval, sleep, timeout},
};
use tokio_postgres::{AsyncMessage, Config};
use tokio_util::sync::CancellationToken;

use super::{
    DatabaseError,
    connect::{Connector, log_notice},
    connect_error,
};

/// How often a silent connection is asked whether it still lives.
const PULSE: Duration = Duration::from_secs(10);

/// What happened in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The tools of this `org.project` are others now.
    Tools(String),
    /// A token was revoked or changed.
    Tokens,
    /// The connection is there (again); anything may have changed meanwhile.
    Connected,
    /// The connection is gone; nothing is heard until it is back.
    Lost,
}

/// Tells what happens until `stop`; connects again, with growing pauses, whenever the connection is lost.
pub async fn listen(config: Config, changes: mpsc::UnboundedSender<Change>, stop: CancellationToken) {
    let connector = Connector::new();
    let mut pause = Duration::from_millis(50);
    loop {
        let lasted = tokio::select! {
            () = stop.cancelled() => return,
            lasted = attend(&connector, &config, &changes) => lasted,
        };
        if let Ok(error) = lasted {
            // It worked for a while, so the next try comes at once.
            pause = Duration::from_millis(50);
            let _ = changes.send(Change::Lost);
            tracing::warn!(%error, "the connection that listens for changes is lost");
        } else if let Err(error) = lasted {
            tracing::warn!(%error, "can't listen for changes; trying again in {pause:?}");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(pause) => pause = (pause * 2).min(Duration::from_secs(5)),
        }
    }
}

/// `Err` if there was no connection, `Ok` with the reason if there was one and it ended.
async fn attend(
    connector: &Connector,
    config: &Config,
    changes: &mpsc::UnboundedSender<Change>,
) -> Result<DatabaseError, DatabaseError> {
    let (client, mut connection) = connector.open(config).await.map_err(|error| connect_error(&error))?;
    let (sender, mut messages) = mpsc::unbounded_channel();
    let driver = tokio::spawn(async move {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    // Ends the driver, and with it the connection, whichever way this function ends.
    let _driver = AbortOnDrop(driver);
    client
        .batch_execute("LISTEN pml_tools_changed; LISTEN pml_tokens_changed")
        .await
        .map_err(|error| connect_error(&error))?;
    let _ = changes.send(Change::Connected);
    let mut pulse = interval(PULSE);
    loop {
        tokio::select! {
            message = messages.recv() => match message {
                Some(Ok(AsyncMessage::Notification(note))) => {
                    let _ = changes.send(match note.channel() {
                        "pml_tools_changed" => Change::Tools(note.payload().to_owned()),
                        _ => Change::Tokens,
                    });
                }
                Some(Ok(AsyncMessage::Notice(notice))) => log_notice(&notice),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Ok(connect_error(&error)),
                None => return Ok(DatabaseError::Unreachable("Postgres closed the connection".into())),
            },
            _ = pulse.tick() => {
                let alive = timeout(PULSE, client.simple_query("")).await;
                if !matches!(alive, Ok(Ok(_))) {
                    return Ok(DatabaseError::Unreachable("no answer on the connection".into()));
                }
            }
        }
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
