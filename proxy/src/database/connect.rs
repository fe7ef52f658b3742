//! How connections are made: with TLS where the server wants it, and with notices logged.

use std::{future::poll_fn, ops::Deref, sync::Arc};

use deadpool::managed::{self, RecycleResult};
use deadpool_postgres::{ClientWrapper, Connect, ManagerConfig, Metrics, RecyclingMethod};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::task::JoinHandle;
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

impl Connect for Connector {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let config = config.clone();
        Box::pin(async move {
            let (client, connection) = self.open(&config).await?;
            let served = SERVED.try_with(Served::clone).unwrap_or_default();
            // Not of the request that happened to need a new connection.
            Ok((client, tokio::spawn(attend(connection, served))))
        })
    }
}

tokio::task_local! {
    /// Tells the connection that is being made where to look for its request.
    static SERVED: Served;
}

/// The request that a connection serves: what Postgres says meanwhile belongs to it.
#[derive(Clone, Default)]
struct Served(Arc<Mutex<Option<Span>>>);

/// Makes connections for the pool: those of `deadpool-postgres`, each with the request that it serves.
pub(super) struct Manager(deadpool_postgres::Manager);

impl Manager {
    pub(super) fn new(config: Config) -> Manager {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        Manager(deadpool_postgres::Manager::from_connect(config, Connector::new(), recycling))
    }
}

/// A connection of the pool. Whoever has it is the only one to use it.
pub(super) struct PooledClient {
    client: ClientWrapper,
    served: Served,
}

/// The current request has the connection while one of these lives.
pub(super) struct Serving(Served);

impl PooledClient {
    pub(super) fn serve_current_request(&self) -> Serving {
        *self.served.0.lock() = Some(Span::current());
        Serving(self.served.clone())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}

impl Deref for PooledClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl managed::Manager for Manager {
    type Type = PooledClient;
    type Error = Error;

    async fn create(&self) -> Result<PooledClient, Error> {
        let served = Served::default();
        let client = SERVED.scope(served.clone(), self.0.create()).await?;
        Ok(PooledClient { client, served })
    }

    async fn recycle(&self, client: &mut PooledClient, metrics: &Metrics) -> RecycleResult<Error> {
        self.0.recycle(&mut client.client, metrics).await
    }

    fn detach(&self, client: &mut PooledClient) {
        self.0.detach(&mut client.client);
    }
}

/// Moves a connection's messages until it ends.
async fn attend(mut connection: PostgresConnection, served: Served) {
    loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notice(notice))) => {
                let request = served.0.lock().clone().unwrap_or_else(Span::none);
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
