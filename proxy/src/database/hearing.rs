//! The proof that notifications arrive. Behind a pooler in transaction mode, on a standby or in another database `LISTEN`
//! succeeds and nothing is ever heard, so a notification is sent through the pool and has to arrive on the connection.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};
use tokio_postgres::{AsyncMessage, Client, Config};
use uuid::Uuid;

use super::{
    Database, DatabaseError, NotificationHandler,
    connect::{Connector, log_notice},
    connect_error, statement_error,
};

/// How long a connection may take to be opened.
const OPENING: Duration = Duration::from_secs(5);
/// How long an answer, a notification to be sent, and its arrival may take, unless other messages arrive.
const ANSWER: Duration = Duration::from_secs(2);

/// Why notifications don't arrive, or why that isn't known.
#[derive(Debug, thiserror::Error)]
pub enum Unheard {
    #[error("can't connect: {0}")]
    NotConnected(DatabaseError),
    #[error("LISTEN fails: {0}")]
    NotListening(DatabaseError),
    #[error("can't send a notification through database_url: {0}")]
    NotSent(DatabaseError),
    #[error("connected, but a notification that was sent through database_url didn't arrive")]
    Silent,
    #[error("lost the connection: {0}")]
    Lost(DatabaseError),
}

impl Unheard {
    /// Whether it stays so until somebody does something about it.
    pub(super) fn is_lasting(&self) -> bool {
        match self {
            Unheard::Silent => true,
            Unheard::NotListening(error) | Unheard::NotSent(error) => !error.is_passing(),
            Unheard::NotConnected(_) | Unheard::Lost(_) => false,
        }
    }
}

/// What to do about it.
pub const SILENT_ADVICE: &str = "LISTEN needs a direct connection to the primary, to the same database: set listen_url \
     (--listen-url, PML_LISTEN_URL) if database_url goes through a pooler such as pgbouncer.";

/// A channel of this process only, so that its proofs don't wake other proxies. Unguessable, because any database user can
/// listen and notify.
pub(super) struct ProofChannel(String);

impl ProofChannel {
    pub(super) fn new() -> ProofChannel {
        ProofChannel(format!("pml_hearing_{}", Uuid::new_v4().simple()))
    }
}

/// A listening connection.
pub(super) struct Ear<'c> {
    client: Client,
    driver: AbortOnDrop,
    channel: &'c ProofChannel,
    expected: Arc<Mutex<Option<Expected>>>,
    /// How many notifications have arrived.
    heard: Arc<AtomicU64>,
}

/// A notification that was sent.
struct Expected {
    payload: String,
    arrived: oneshot::Sender<()>,
}

impl<'c> Ear<'c> {
    /// Listens only for proofs: the sessions of a pooler would keep other channels.
    pub(super) async fn open(
        connector: &Connector,
        config: &Config,
        channel: &'c ProofChannel,
        handler: Arc<impl NotificationHandler>,
    ) -> Result<Ear<'c>, Unheard> {
        let opening = async {
            let opened = connector.open(config).await;
            let (client, mut connection) =
                opened.map_err(|error| Unheard::NotConnected(connect_error(&error)))?;
            let expected: Arc<Mutex<Option<Expected>>> = Arc::default();
            let (awaited, proofs) = (expected.clone(), channel.0.clone());
            let heard: Arc<AtomicU64> = Arc::default();
            let count = heard.clone();
            // Each message is handled as it is read, so that a flood fills no queue.
            let driver = tokio::spawn(async move {
                loop {
                    match poll_fn(|context| connection.poll_message(context)).await {
                        Some(Ok(AsyncMessage::Notification(note))) => {
                            count.fetch_add(1, Ordering::Relaxed);
                            match note.channel() {
                                "pml_tools_changed" => handler.tools_changed(note.payload()),
                                "pml_tokens_changed" => handler.tokens_changed(note.payload()),
                                proof if proof == proofs => arrived(&awaited, note.payload()),
                                _ => {}
                            }
                        }
                        Some(Ok(AsyncMessage::Notice(notice))) => log_notice(&notice),
                        Some(Ok(_)) => {}
                        Some(Err(error)) => return connect_error(&error),
                        None => return DatabaseError::Unreachable("Postgres closed the connection".into()),
                    }
                }
            });
            let ear = Ear { client, driver: AbortOnDrop(driver), channel, expected, heard };
            let listening = ear.client.batch_execute(&format!("LISTEN {}", channel.0)).await;
            listening.map_err(|error| Unheard::NotListening(statement_error(&error)))?;
            Ok(ear)
        };
        timeout(OPENING, opening).await.unwrap_or_else(|_| Err(Unheard::NotConnected(no_answer())))
    }

    /// Listens for changes.
    pub(super) async fn listen(&self) -> Result<(), Unheard> {
        self.answered("LISTEN pml_tools_changed; LISTEN pml_tokens_changed").await
    }

    /// Checks that the connection is alive.
    pub(super) async fn ping(&self) -> Result<(), Unheard> {
        self.answered("").await
    }

    async fn answered(&self, statement: &str) -> Result<(), Unheard> {
        match self.while_alive(self.client.simple_query(statement)).await {
            Some(answer) => answer.map(drop).map_err(|error| Unheard::Lost(connect_error(&error))),
            None => Err(Unheard::Lost(no_answer())),
        }
    }

    /// Waits for what the connection brings; `None` if it brings nothing.
    async fn while_alive<T>(&self, awaited: impl Future<Output = T>) -> Option<T> {
        let mut awaited = pin!(awaited);
        loop {
            let heard = self.heard.load(Ordering::Relaxed);
            match timeout(ANSWER, &mut awaited).await {
                Ok(brought) => return Some(brought),
                // It is behind a flood of other messages.
                Err(_) if self.heard.load(Ordering::Relaxed) > heard => {}
                Err(_) => return None,
            }
        }
    }

    /// Sends a notification through the pool and waits for it. Nothing else may use this connection meanwhile: a pooler
    /// might deliver what arrives with the answer to a statement.
    pub(super) async fn prove(&self, database: &Database) -> Result<(), Unheard> {
        let payload = Uuid::new_v4().simple().to_string();
        let (arrived, arrival) = oneshot::channel();
        *self.expected.lock() = Some(Expected { payload: payload.clone(), arrived });
        let sent = timeout(ANSWER, database.notify(&self.channel.0, &payload)).await;
        sent.unwrap_or_else(|_| Err(DatabaseError::Interrupted("no answer".into())))
            .map_err(Unheard::NotSent)?;
        match self.while_alive(arrival).await {
            Some(Ok(())) => Ok(()),
            _ => Err(Unheard::Silent),
        }
    }

    /// Why the connection ended.
    pub(super) async fn ended(&mut self) -> Unheard {
        let ended = (&mut self.driver.0).await;
        Unheard::Lost(ended.unwrap_or_else(|error| DatabaseError::Unreachable(error.to_string())))
    }
}

fn arrived(expected: &Mutex<Option<Expected>>, payload: &str) {
    let mut expected = expected.lock();
    if expected.as_ref().is_some_and(|expected| expected.payload == payload)
        && let Some(Expected { arrived, .. }) = expected.take()
    {
        let _ = arrived.send(());
    }
}

fn no_answer() -> DatabaseError {
    DatabaseError::Unreachable("no answer on the connection".into())
}

/// Closes the connection however the ear is dropped.
struct AbortOnDrop(JoinHandle<DatabaseError>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether notifications that are sent through `database` arrive on a connection of `config`.
pub async fn hears(config: &Config, database: &Database) -> Result<(), Unheard> {
    let channel = ProofChannel::new();
    Ear::open(&Connector::new(), config, &channel, Arc::new(Deaf)).await?.prove(database).await
}

/// Ignores everything but the proof.
struct Deaf;

impl NotificationHandler for Deaf {
    fn tools_changed(&self, _: &str) {}

    fn tokens_changed(&self, _: &str) {}

    fn heard(&self) {}

    fn unheard(&self) {}

    fn look_up(&self) {}

    fn was_relied_on(&self) -> bool {
        false
    }
}
