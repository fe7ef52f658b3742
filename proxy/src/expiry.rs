//! Has Postgres drop what is past its time, every minute.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::database::Database;

const PERIOD: Duration = Duration::from_secs(60);

/// To be called in a Tokio runtime.
pub(crate) fn start(database: Database, stop: CancellationToken) {
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(PERIOD) => {}
            }
            if let Err(error) = database.expire_some().await {
                tracing::debug!(%error, "can't drop what is past its time");
            }
        }
    });
}
