//! TLS without a reverse proxy. SIGHUP reloads the certificate and its key.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::RwLock;
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsFiles;

/// What is wrong with the files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{}: can't read the {what}: {why}.", .file.display())]
    Unreadable { what: &'static str, file: PathBuf, why: String },
    #[error("{}: no {what} found; expected a PEM file with BEGIN {label}.", .file.display())]
    Empty { what: &'static str, label: &'static str, file: PathBuf },
    #[error(
        "The certificate in {} and the key in {} don't match or aren't supported: {why}.",
        .certificate.display(), .key.display()
    )]
    Unusable { certificate: PathBuf, key: PathBuf, why: rustls::Error },
}

/// The certificate that new connections get.
pub struct Tls {
    files: TlsFiles,
    current: RwLock<TlsAcceptor>,
}

impl Tls {
    pub fn load(files: TlsFiles) -> Result<Tls, TlsError> {
        let acceptor = read(&files)?;
        Ok(Tls { files, current: RwLock::new(acceptor) })
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.current.read().clone()
    }

    /// Open connections keep the old certificate. If the new files are invalid, so do new ones.
    pub(crate) fn reload(&self) {
        let file = self.files.certificate.display();
        match read(&self.files) {
            Ok(acceptor) => {
                *self.current.write() = acceptor;
                tracing::info!(%file, "reloaded the certificate");
            }
            Err(error) => tracing::error!(%error, "can't reload the certificate; keeping the old one"),
        }
    }
}

fn read(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let (chain, key) = (read_chain(&files.certificate)?, read_key(&files.key)?);
    let unusable =
        |why| TlsError::Unusable { certificate: files.certificate.clone(), key: files.key.clone(), why };
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read_chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let what = "certificate";
    let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let chain = chain.map_err(|error| unreadable(what, file, &error))?;
    if chain.is_empty() {
        return Err(TlsError::Empty { what, label: "CERTIFICATE", file: file.to_owned() });
    }
    Ok(chain)
}

fn read_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let what = "private key";
    PrivateKeyDer::from_pem_file(file).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::Empty { what, label: "PRIVATE KEY", file: file.to_owned() },
        error => unreadable(what, file, &error),
    })
}

fn unreadable(what: &'static str, file: &Path, error: &pem::Error) -> TlsError {
    let why = match error {
        pem::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    };
    TlsError::Unreadable { what, file: file.to_owned(), why }
}
