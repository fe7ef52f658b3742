//! Whether a session's client is connected: whether it has an open request or stream.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::timeout};

/// The open requests and streams of one session.
#[derive(Debug)]
pub struct Presence(watch::Sender<usize>);

/// An open request or stream, until it is dropped.
#[derive(Debug)]
pub(crate) struct Here(Arc<Presence>);

impl Presence {
    pub(crate) fn new() -> Arc<Presence> {
        Arc::new(Presence(watch::Sender::new(0)))
    }

    pub(crate) fn here(self: &Arc<Self>) -> Here {
        self.0.send_modify(|open| *open += 1);
        Here(self.clone())
    }

    /// Waits until the client has been disconnected for so long.
    pub async fn away_for(&self, time: Duration) {
        let mut open = self.0.subscribe();
        loop {
            if open.wait_for(|open| *open == 0).await.is_err() {
                return;
            }
            if timeout(time, open.wait_for(|open| *open > 0)).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep, timeout};

    use super::Presence;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reconnects_in_time_is_not_gone() {
        let presence = Presence::new();
        let away = Duration::from_secs(30);
        let here = presence.here();
        assert!(timeout(away * 2, presence.away_for(away)).await.is_err());
        let comes_back = async {
            drop(here);
            sleep(away / 2).await;
            let _here = presence.here();
            sleep(away).await;
        };
        let begun = Instant::now();
        tokio::join!(presence.away_for(away), comes_back);
        assert_eq!(begun.elapsed(), away / 2 + away + away);
    }
}
