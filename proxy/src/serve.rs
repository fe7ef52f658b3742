//! `pml serve` and `pml stdio`: start, serve, shut down gracefully.

use std::{
    io::{self, IsTerminal},
    sync::Arc,
    time::Duration,
};

use rmcp::ServiceExt;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
};

use crate::{
    app::App,
    config::{Config, DoorLimits},
    handler::Handler,
    http::{self, Tls, TlsError},
    stdio,
};

/// Why serving ended other than by a signal.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("{0}")]
    Tls(#[from] TlsError),
    #[error("Can't start the sandbox: {0}")]
    Sandbox(#[from] pml_worker::StartError),
    #[error(
        "The address {address} is taken by another program. Choose another with --bind or PML_BIND, such as 127.0.0.1:{other}."
    )]
    AddressInUse { address: std::net::SocketAddr, other: u16 },
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    #[error("The client's first messages are invalid: {0}")]
    Client(String),
}

/// Serves HTTP until SIGTERM or SIGINT.
pub async fn over_http(config: Config) -> Result<(), ServeError> {
    let mut http_config = config.http.clone();
    let tls = http_config.tls.clone().map(Tls::load).transpose()?.map(Arc::new);
    fit_open_files(&mut http_config.door);
    let address = http_config.bind;
    let listener = TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => {
            ServeError::AddressInUse { address, other: address.port().wrapping_add(1).max(1024) }
        }
        _ => ServeError::Io { what: format!("Can't listen on {address}"), source },
    })?;
    let bound = listener.local_addr().unwrap_or(address);
    let signalled = shutdown_signal()?;
    // At a terminal it means that the terminal was closed.
    if tls.is_some() || !io::stdin().is_terminal() {
        tokio::spawn(reload_on_hangup(tls.clone(), hangup()?));
    }
    let app = App::start(config).await?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    tracing::info!(
        url = format!("{scheme}://{bound}/mcp"),
        require_token = http_config.require_token,
        "serving"
    );
    http::serve(app.clone(), http_config, tls, listener, signalled).await;
    app.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// Open files besides HTTP connections: for Postgres, the sandbox and the servers.
const OTHER_FILES: u64 = 200;

/// Lowers the limit of connections to what the limit of open files allows.
fn fit_open_files(door: &mut DoorLimits) {
    let Some(files) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current else { return };
    let room = usize::try_from(files.saturating_sub(OTHER_FILES).max(1)).unwrap_or(usize::MAX);
    if door.connections > room {
        tracing::warn!(
            max_connections = room,
            open_files = files,
            "max_connections is lowered: raise the limit of open files (ulimit -n)"
        );
        door.connections = room;
    }
}

fn hangup() -> Result<Signal, ServeError> {
    signal(SignalKind::hangup())
        .map_err(|source| ServeError::Io { what: "Can't wait for signals".into(), source })
}

async fn reload_on_hangup(tls: Option<Arc<Tls>>, mut hangup: Signal) {
    while hangup.recv().await.is_some() {
        match &tls {
            Some(tls) => tls.reload(),
            None => tracing::info!("SIGHUP: nothing to reload without TLS; restart to change settings"),
        }
    }
}

/// Serves standard input and output until the client closes them, or SIGTERM or SIGINT.
pub async fn over_stdio(config: Config) -> Result<(), ServeError> {
    let drain = config.http.drain;
    let signalled = shutdown_signal()?;
    tokio::pin!(signalled);
    let app = App::start(config).await?;
    let serving =
        Handler::new(app.clone()).serve_with_ct(stdio::transport(), app.lifecycle.stop.child_token());
    let service = tokio::select! {
        () = &mut signalled => None,
        served = serving => match served {
            Ok(service) => Some(service),
            // A client that disconnects without a message isn't an error.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => None,
            Err(error) => {
                app.close().await;
                return Err(ServeError::Client(error.to_string()));
            }
        },
    };
    if let Some(service) = service {
        let waiting = service.waiting();
        tokio::pin!(waiting);
        tokio::select! {
            // The client is gone, and nobody waits for its running calls.
            _ = &mut waiting => app.lifecycle.drain(Duration::ZERO).await,
            () = async { (&mut signalled).await; app.lifecycle.drain(drain).await } => {
                app.lifecycle.stop.cancel();
                let _ = tokio::time::timeout(LAST_ANSWERS, waiting).await;
            }
        }
    }
    app.close().await;
    Ok(())
}

/// How long the client may take to read the last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Completes with the first signal; the second one ends the process at once.
fn shutdown_signal() -> Result<impl Future<Output = ()> + Send + 'static, ServeError> {
    let io = |source| ServeError::Io { what: "Can't wait for signals".into(), source };
    let mut terminate = signal(SignalKind::terminate()).map_err(io)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(io)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::warn!("second signal: ending at once");
            #[expect(clippy::disallowed_methods, reason = "a second signal means no cleanup")]
            std::process::exit(130);
        });
    })
}
