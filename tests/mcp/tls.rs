//! The proxy's TLS: serving, reloading, and errors for invalid files.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    sync::Arc,
};

use pml_tests::{
    Database,
    mcp::{Proxy, ProxySetup, Wire, eventually, pml},
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName},
};

/// Writes a new self-signed certificate and its key, and gives the certificate.
fn certificate(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

fn proxy(database: &Database, folder: &Path, args: &[&str]) -> Proxy {
    database.create_role("proxy", &["pml_proxy"]);
    let file = |name: &str| folder.join(name).to_str().expect("a readable path").to_owned();
    ProxySetup::new(database)
        .args(&["--tls-certificate", &file("cert.pem"), "--tls-key", &file("key.pem")])
        .args(args)
        .start()
}

type Secure = StreamOwned<ClientConnection, TcpStream>;

/// A connection that trusts only this certificate.
fn connect(proxy: &Proxy, trusted: &CertificateDer<'static>) -> Result<Secure, std::io::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut stream = StreamOwned::new(connection, Wire::to(proxy).into_stream());
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

fn get(stream: &mut Secure) -> String {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("a connection");
    let mut buffer = [0; 4096];
    let mut answer = String::new();
    while !answer.ends_with("ok\n") {
        let count = stream.read(&mut buffer).expect("an answer");
        assert!(count > 0, "closed after {answer:?}");
        answer.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    answer
}

#[test]
fn a_certificate_is_served_and_replaced_without_dropping_anybody() {
    let database = Database::new();
    let folder = tempfile::tempdir().unwrap();
    let first = certificate(folder.path());
    let proxy = proxy(&database, folder.path(), &[]);
    assert!(proxy.url.starts_with("https://"), "{}", proxy.url);
    let mut old = connect(&proxy, &first).expect("a connection");
    assert!(get(&mut old).starts_with("HTTP/1.1 200"));

    let second = certificate(folder.path());
    assert!(connect(&proxy, &second).is_err(), "it isn't reloaded yet");
    proxy.signal("HUP");
    let mut new = eventually("the new certificate", || connect(&proxy, &second).ok());
    assert!(get(&mut new).starts_with("HTTP/1.1 200"));
    assert!(get(&mut old).starts_with("HTTP/1.1 200"), "open connections stay");

    fs::write(folder.path().join("key.pem"), "no key").unwrap();
    proxy.signal("HUP");
    eventually("the log says so", || {
        let is_said = |line: &String| line.contains("keeping the old one") && line.contains("key.pem");
        proxy.log().iter().any(is_said).then_some(())
    });
    assert!(connect(&proxy, &second).is_ok());
}

#[test]
fn a_hangup_without_tls_changes_nothing() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    proxy.signal("HUP");
    eventually("the log says so", || {
        proxy.log().iter().any(|line| line.contains("nothing to reload without TLS")).then_some(())
    });
    assert!(Wire::to(&proxy).ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").0 == 200);
}

#[test]
fn a_handshake_has_its_time() {
    let database = Database::new();
    let folder = tempfile::tempdir().unwrap();
    let trusted = certificate(folder.path());
    let proxy = proxy(&database, folder.path(), &["--header-timeout", "2", "--max-connections", "3"]);
    Wire::to(&proxy).is_closed();
    // It counts as any connection does.
    let crowd: Vec<Wire> = (0..30).map(|_| Wire::to(&proxy)).collect();
    let mut working = eventually("a connection", || connect(&proxy, &trusted).ok());
    assert!(get(&mut working).starts_with("HTTP/1.1 200"));
    // A client without TLS gets a TLS alert and is disconnected.
    let mut plain = Wire::to(&proxy);
    plain.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(!plain.answer().contains("HTTP/"));
    drop(crowd);
}

#[test]
fn wrong_files_are_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    certificate(folder.path());
    fs::rename(path("key.pem"), path("other.pem")).unwrap();
    certificate(folder.path());
    fs::write(path("empty.pem"), "").unwrap();
    for (cert, key, says) in [
        ("missing.pem", "key.pem", "missing.pem: can't read the certificate"),
        ("empty.pem", "key.pem", "empty.pem: no certificate found"),
        ("cert.pem", "empty.pem", "empty.pem: no private key found"),
        ("cert.pem", "other.pem", "other.pem don't match"),
    ] {
        let output = pml()
            .args(["serve", "--bind", "127.0.0.1:0", "--database-url", "postgres://nobody@localhost/none"])
            .args(["--tls-certificate", &path(cert), "--tls-key", &path(key)])
            .output()
            .expect("pml starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(said.contains(says), "{says}: {said}");
    }
    let half = pml()
        .args(["serve", "--database-url", "postgres://nobody@localhost/none", "--tls-key", &path("key.pem")])
        .output()
        .expect("pml starts");
    assert_eq!(half.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&half.stderr).contains("without tls_certificate"));
}
