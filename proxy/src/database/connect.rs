//! How connections are made: with TLS where the server wants it, and with notices logged.

use std::{future::poll_fn, sync::Arc};

use deadpool_postgres::Connect;
use futures_util::future::BoxFuture;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, Socket, error::DbError};
use tokio_postgres_rustls::MakeRustlsConnect;

type PostgresConnection =
    Connection<Socket, <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream>;

/// Makes connections for the pool.
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
            Ok((client, tokio::spawn(attend(connection))))
        })
    }
}

/// Moves a connection's messages until it ends.
async fn attend(mut connection: PostgresConnection) {
    loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notice(notice))) => log_notice(&notice),
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
