//! How connections are made: with TLS where the server wants it, and with notices logged.

use std::{
    future::poll_fn,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use futures_util::future::BoxFuture;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, Socket, error::DbError};
use tokio_postgres_rustls::MakeRustlsConnect;
use tracing::Span;

type PostgresConnection =
    Connection<Socket, <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream>;

/// Makes connections.
pub(super) struct Connector {
    tls: MakeRustlsConnect,
}

impl Connector {
    pub(super) fn new() -> Connector {
        Connector { tls: tls() }
    }

    pub(super) async fn open(&self, config: &Config) -> Result<(Client, PostgresConnection), Error> {
        config.connect(self.tls.clone()).await
    }
}

/// Makes connections for the pool.
pub(super) struct Manager {
    pub(super) connector: Connector,
    pub(super) config: Config,
}

/// A connection of the pool. Whoever has it is the only one to use it.
pub(super) struct PooledClient {
    client: Client,
    /// The request that it works for: what Postgres says meanwhile belongs to it.
    at_work_for: Arc<Mutex<Span>>,
}

/// The current request has the connection while one of these lives.
pub(super) struct AtWork(Arc<Mutex<Span>>);

impl PooledClient {
    pub(super) fn for_current_request(&self) -> AtWork {
        *lock(&self.at_work_for) = Span::current();
        AtWork(Arc::clone(&self.at_work_for))
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        *lock(&self.0) = Span::none();
    }
}

impl Deref for PooledClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

fn lock(span: &Mutex<Span>) -> MutexGuard<'_, Span> {
    span.lock().unwrap_or_else(PoisonError::into_inner)
}

impl managed::Manager for Manager {
    type Type = PooledClient;
    type Error = Error;

    async fn create(&self) -> Result<PooledClient, Error> {
        // Boxed: the type of a connection with TLS is too deep for whatever holds this future.
        let opening: BoxFuture<'_, _> = Box::pin(self.connector.open(&self.config));
        let (client, connection) = opening.await?;
        let at_work_for = Arc::new(Mutex::new(Span::none()));
        // Not of the request that happened to need a new connection.
        tokio::spawn(attend(connection, Arc::clone(&at_work_for)));
        Ok(PooledClient { client, at_work_for })
    }

    async fn recycle(&self, client: &mut PooledClient, _: &Metrics) -> RecycleResult<Error> {
        if client.is_closed() { Err(RecycleError::message("it is closed")) } else { Ok(()) }
    }
}

/// Moves a connection's messages until it ends.
async fn attend(mut connection: PostgresConnection, at_work_for: Arc<Mutex<Span>>) {
    loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notice(notice))) => {
                let request = lock(&at_work_for).clone();
                request.in_scope(|| log_notice(&notice));
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(%error, "a connection to Postgres ended");
                return;
            }
            None => return,
        }
    }
}

/// A WARNING is worth one here too: it tells of the use of an old name.
pub(super) fn log_notice(notice: &DbError) {
    if notice.severity() == "WARNING" {
        tracing::warn!(code = notice.code().code(), "Postgres: {}", notice.message());
    } else {
        tracing::debug!(code = notice.code().code(), "Postgres: {}", notice.message());
    }
}

fn tls() -> MakeRustlsConnect {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .expect("the provider knows TLS 1.2 and 1.3")
        .with_no_client_auth();
    MakeRustlsConnect::new(config)
}
