//! Listens for notifications, for as long as it is proven that they arrive.

use std::{sync::Arc, time::Duration};

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Config;
use tokio_util::sync::CancellationToken;

use super::{
    Database,
    connect::Connector,
    hearing::{Ear, ProofChannel, SILENT_ADVICE, Unheard},
};
use crate::backoff::pauses;

/// Back-off between attempts.
const RECONNECTING: ExponentialBuilder = pauses(Duration::from_millis(50), Duration::from_secs(5));
/// How often the connection is checked; with the wait for its answer, a dead one is found within 4 s.
const PULSE: Duration = Duration::from_secs(2);
/// How often hearing is proven while nothing relies on it. Each proof is a transaction, which writes WAL.
const IDLE_PROOF: Duration = Duration::from_secs(60);

/// Handles notifications. Payloads may be any text, because any database user can send them. Handlers must not block:
/// Postgres queues what isn't read.
pub trait NotificationHandler: Send + Sync + 'static {
    /// The tools of this `org.project` may have changed.
    fn tools_changed(&self, payload: &str);
    /// The token with this id may have been revoked or changed.
    fn tokens_changed(&self, payload: &str);
    /// Notifications arrive from now on; earlier ones may have been missed.
    fn heard(&self);
    /// Notifications don't arrive, until `heard`.
    fn unheard(&self);
    /// Notifications don't arrive, but Postgres can be asked what they would have told.
    fn look_up(&self);
    /// Whether anything relied on notifications since this was last asked.
    fn was_relied_on(&self) -> bool;
}

/// Listens until `stop`, and reconnects with back-off when nothing is heard. Hearing is proven through `database`.
pub async fn listen(
    config: Config,
    database: Database,
    handler: Arc<impl NotificationHandler>,
    stop: CancellationToken,
) {
    let mut listener =
        Listener { connector: Connector::new(), config, database, handler, is_silence_told: false };
    tokio::select! {
        () = stop.cancelled() => {}
        () = listener.run() => {}
    }
}

struct Listener<H> {
    connector: Connector,
    config: Config,
    database: Database,
    handler: Arc<H>,
    /// Whether it was logged that nothing arrives.
    is_silence_told: bool,
}

impl<H: NotificationHandler> Listener<H> {
    async fn run(&mut self) {
        // The same for all attempts: the sessions of a pooler would keep each.
        let channel = ProofChannel::new();
        let mut pauses = RECONNECTING.build();
        loop {
            let mut has_heard = false;
            let unheard = self.attend(&channel, &mut has_heard).await;
            self.handler.unheard();
            if has_heard {
                // It worked for a while, so the back-off starts over.
                pauses = RECONNECTING.build();
            }
            let pause = pauses.next().unwrap_or_default();
            self.tell(&unheard, pause);
            if matches!(unheard, Unheard::Silent) || self.database_answers().await {
                self.handler.look_up();
            }
            sleep(pause).await;
        }
    }

    async fn database_answers(&self) -> bool {
        matches!(timeout(PULSE, self.database.ping()).await, Ok(Ok(())))
    }

    /// Listens until nothing is heard any more.
    async fn attend(&mut self, channel: &ProofChannel, has_heard: &mut bool) -> Unheard {
        let opened = Ear::open(&self.connector, &self.config, channel, self.handler.clone()).await;
        let attending = async {
            let mut ear = opened?;
            ear.prove(&self.database).await?;
            ear.listen().await?;
            *has_heard = true;
            self.handler.heard();
            if std::mem::take(&mut self.is_silence_told) {
                tracing::info!("notifications arrive; tokens and tools are cached again");
            }
            let mut proven = Instant::now();
            let mut is_proof_due = false;
            loop {
                tokio::select! {
                    unheard = ear.ended() => return Err(unheard),
                    () = sleep(PULSE) => {}
                }
                ear.ping().await?;
                is_proof_due |= self.handler.was_relied_on() || proven.elapsed() >= IDLE_PROOF;
                if is_proof_due {
                    match ear.prove(&self.database).await {
                        Ok(()) => (proven, is_proof_due) = (Instant::now(), false),
                        // The connection answers; what is cached can't be asked for now either.
                        Err(Unheard::NotSent(error)) if error.is_passing() => {
                            tracing::debug!(%error, "can't prove now that notifications arrive");
                        }
                        Err(unheard) => return Err(unheard),
                    }
                }
            }
        };
        let attended: Result<std::convert::Infallible, Unheard> = attending.await;
        match attended {
            Ok(never) => match never {},
            Err(unheard) => unheard,
        }
    }

    fn tell(&mut self, unheard: &Unheard, pause: Duration) {
        match unheard {
            _ if unheard.is_lasting() && std::mem::replace(&mut self.is_silence_told, true) => {
                tracing::debug!("still no notifications; retrying in {pause:?}");
            }
            _ if unheard.is_lasting() => tracing::warn!(
                "no notifications: {unheard}. Until they arrive, each request asks Postgres for its token and tools. \
                 {SILENT_ADVICE}"
            ),
            Unheard::Lost(error) => tracing::warn!(%error, "lost the connection for notifications"),
            _ => tracing::warn!(error = %unheard, "can't listen for notifications; retrying in {pause:?}"),
        }
    }
}
