//! Opens connections: with TLS if the server has it, and with notices logged.

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
            // Outside of the span of the request that needed a new connection.
            Ok((client, tokio::spawn(attend(connection, served))))
        })
    }
}

tokio::task_local! {
    /// Hands the cell for its request to the connection that is being opened.
    static SERVED: Served;
}

/// The span of the request that a connection serves, in which Postgres' notices are logged.
#[derive(Clone, Default)]
struct Served(Arc<Mutex<Option<Span>>>);

/// The manager of `deadpool-postgres`, with the request that each connection serves.
pub(super) struct Manager(deadpool_postgres::Manager);

impl Manager {
    pub(super) fn new(config: Config) -> Manager {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        Manager(deadpool_postgres::Manager::from_connect(config, Connector::new(), recycling))
    }
}

/// A connection of the pool, used by one request at a time.
pub(super) struct PooledClient {
    client: ClientWrapper,
    served: Served,
}

/// The connection serves the current request while this lives.
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

/// Drives a connection until it ends.
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

/// A WARNING stays one: it reports the use of an old name.
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
