//! `pml serve` and `pml stdio`: start, serve, stop in good order.

use std::{io, time::Duration};

use rmcp::ServiceExt;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use crate::{app::App, config::Config, handler::Handler, http};

/// Why serving ended other than by a signal.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("The sandbox can't be started: {0}")]
    Sandbox(#[from] pml_worker::StartError),
    #[error(
        "The address {address} is taken by another program. Give another with --bind or PML_BIND, such as 127.0.0.1:{other}."
    )]
    AddressInUse { address: std::net::SocketAddr, other: u16 },
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    #[error("The client's messages can't be understood: {0}")]
    Client(String),
}

/// Serves HTTP until SIGTERM or SIGINT.
pub async fn over_http(config: Config) -> Result<(), ServeError> {
    let http_config = config.http.clone();
    let address = http_config.bind;
    let listener = TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => {
            ServeError::AddressInUse { address, other: address.port().wrapping_add(1).max(1024) }
        }
        _ => ServeError::Io { what: format!("Can't listen on {address}"), source },
    })?;
    let bound = listener.local_addr().unwrap_or(address);
    let signalled = shutdown_signal()?;
    let app = App::start(config).await?;
    tracing::info!(url = format!("http://{bound}/mcp"), require_token = http_config.require_token, "serving");
    let served = http::serve(app.clone(), http_config, listener, signalled).await;
    app.close().await;
    tracing::info!("stopped");
    served.map_err(|source| ServeError::Io { what: "Serving failed".into(), source })
}

/// Serves standard input and output until the client closes them, or SIGTERM or SIGINT.
pub async fn over_stdio(config: Config) -> Result<(), ServeError> {
    let drain = config.http.drain;
    let signalled = shutdown_signal()?;
    tokio::pin!(signalled);
    let app = App::start(config).await?;
    let serving = Handler::new(app.clone()).serve_with_ct(rmcp::transport::stdio(), app.stop.child_token());
    let service = tokio::select! {
        () = &mut signalled => None,
        served = serving => match served {
            Ok(service) => Some(service),
            // A client that says nothing and leaves is none of our trouble.
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
            // The client is gone; what it left running has nobody to answer to.
            _ = &mut waiting => app.drain(Duration::ZERO).await,
            () = async { (&mut signalled).await; app.drain(drain).await } => {
                app.stop.cancel();
                let _ = tokio::time::timeout(LAST_ANSWERS, waiting).await;
            }
        }
    }
    app.close().await;
    Ok(())
}

/// How long the last answers may take to be read.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Ends with the first signal; the second one ends the process at once.
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
            tracing::warn!("a second signal: ending at once");
            std::process::exit(130);
        });
    })
}
