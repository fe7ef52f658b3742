//! The settings of `pml serve`'s HTTP side.

use std::{
    net::{IpAddr, SocketAddr},
    num::{NonZeroU32, NonZeroU64},
    path::PathBuf,
    time::Duration,
};

use ipnet::IpNet;

use super::{ConfigError, MIB, file::FileHttp, positive, range, seconds};
use crate::{
    cli::HttpArgs,
    rebinding::{HostPattern, OriginPattern},
};

const DEFAULT_BIND: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7410);

#[derive(Clone, Debug)]
pub struct HttpConfig {
    pub bind: SocketAddr,
    pub require_token: bool,
    pub allowed_hosts: Vec<HostPattern>,
    pub allowed_origins: Vec<OriginPattern>,
    pub max_body: usize,
    /// Requests a second for each principal; none is no limit.
    pub rate: Option<NonZeroU32>,
    pub concurrency: usize,
    pub drain: Duration,
    pub door: DoorLimits,
    pub trusted_proxies: Vec<IpNet>,
    pub tls: Option<TlsFiles>,
}

/// How many may come, and how long they may take.
#[derive(Clone, Debug)]
pub struct DoorLimits {
    pub connections: usize,
    /// None is no limit.
    pub connections_per_address: Option<usize>,
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    /// Bytes of a body that buy it another second.
    pub body_rate: NonZeroU64,
    pub idle_timeout: Duration,
    pub send_timeout: Duration,
}

/// Where the certificate and its key are, in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

pub(super) fn checked(flags: HttpArgs, file: FileHttp) -> Result<HttpConfig, ConfigError> {
    let bind = flags.bind.or(file.bind).unwrap_or(DEFAULT_BIND);
    let is_loopback = bind.ip().is_loopback();
    let require_token = flags.require_token.or(file.require_token).unwrap_or(!is_loopback);
    if !is_loopback && !require_token {
        return Err(ConfigError::OpenToAll { bind });
    }
    let concurrency = flags.concurrency.or(file.concurrency).unwrap_or(100);
    positive("concurrency", concurrency)?;
    let max_body = flags.max_body.or(file.max_body_bytes).unwrap_or(4 * MIB as usize);
    positive("the largest body", max_body)?;
    let allowed_hosts = parsed(
        flags.allowed_hosts.or(file.allowed_hosts),
        HostPattern::parse,
        "An allowed host",
        "a name or address, such as pml.example.com or [::1]:7410",
    )?;
    let allowed_origins = parsed(
        flags.allowed_origins.or(file.allowed_origins),
        OriginPattern::parse,
        "An allowed origin",
        "a scheme and a host, such as https://app.example.com or http://localhost:*",
    )?;
    let trusted_proxies = parsed(
        flags.trusted_proxies.or(file.trusted_proxies),
        parse_network,
        "A trusted proxy",
        "an address or a network, such as 10.0.0.7 or 10.0.0.0/8",
    )?;
    let rate = flags.rate.or(file.requests_per_second).unwrap_or(if require_token { 200 } else { 0 });
    let connections = flags.max_connections.or(file.max_connections).unwrap_or(1000);
    positive("max_connections", connections)?;
    // On loopback all clients have the same address, so that a limit by address would only let one shut out the others.
    let per_address = flags
        .max_connections_per_address
        .or(file.max_connections_per_address)
        .unwrap_or(if is_loopback { 0 } else { 100 });
    let body_rate = flags.body_rate.or(file.body_rate).unwrap_or(16 * 1024);
    let time = |setting, flag: Option<f64>, file: Option<f64>, default: f64| {
        seconds(setting, flag.or(file).unwrap_or(default))
    };
    Ok(HttpConfig {
        bind,
        require_token,
        allowed_hosts,
        allowed_origins,
        max_body,
        rate: NonZeroU32::new(rate),
        concurrency,
        drain: time("drain", flags.drain, file.drain_seconds, 30.0)?,
        door: DoorLimits {
            connections,
            connections_per_address: Some(per_address).filter(|limit| *limit > 0),
            header_timeout: time("header_timeout", flags.header_timeout, file.header_timeout, 10.0)?,
            body_timeout: time("body_timeout", flags.body_timeout, file.body_timeout, 10.0)?,
            body_rate: NonZeroU64::new(body_rate).ok_or_else(|| range("body_rate", 0, "at least 1"))?,
            idle_timeout: time("idle_timeout", flags.idle_timeout, file.idle_timeout, 120.0)?,
            send_timeout: time("send_timeout", flags.send_timeout, file.send_timeout, 30.0)?,
        },
        trusted_proxies,
        tls: tls_files(flags.tls_certificate.or(file.tls.certificate), flags.tls_key.or(file.tls.key))?,
    })
}

fn tls_files(certificate: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<TlsFiles>, ConfigError> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(ConfigError::HalfOfTls { given: "tls.certificate", missing: "tls.key" }),
        (None, Some(_)) => Err(ConfigError::HalfOfTls { given: "tls.key", missing: "tls.certificate" }),
    }
}

fn parse_network(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()
}

fn parsed<T>(
    given: Option<Vec<String>>,
    parse: fn(&str) -> Option<T>,
    setting: &'static str,
    expected: &'static str,
) -> Result<Vec<T>, ConfigError> {
    let given = given.unwrap_or_default();
    given.iter().map(|text| parse(text.trim()).ok_or_else(|| range(setting, text, expected))).collect()
}
