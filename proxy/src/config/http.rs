//! The HTTP settings of `pml serve`.

use std::{
    net::{IpAddr, SocketAddr},
    num::{NonZeroU32, NonZeroU64},
    path::PathBuf,
    time::Duration,
};

use ipnet::IpNet;

use super::{ConfigError, Settings, positive, range, seconds};
use crate::rebinding::{HostPattern, OriginPattern};

#[derive(Clone, Debug)]
pub struct HttpConfig {
    pub bind: SocketAddr,
    pub require_token: bool,
    pub allowed_hosts: Vec<HostPattern>,
    pub allowed_origins: Vec<OriginPattern>,
    pub max_body: usize,
    /// Requests a second of each principal; `None` is no limit.
    pub rate: Option<NonZeroU32>,
    pub concurrency: usize,
    pub drain: Duration,
    pub door: DoorLimits,
    pub trusted_proxies: Vec<IpNet>,
    pub tls: Option<TlsFiles>,
}

/// Limits on connections.
#[derive(Clone, Debug)]
pub struct DoorLimits {
    pub connections: usize,
    /// `None` is no limit.
    pub connections_per_address: Option<usize>,
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    /// Bytes of a body that extend its timeout by a second.
    pub body_rate: NonZeroU64,
    pub idle_timeout: Duration,
    pub send_timeout: Duration,
}

/// The PEM files of the certificate and its key.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

pub(super) fn checked(settings: &Settings) -> Result<HttpConfig, ConfigError> {
    let bind = settings.bind;
    let is_loopback = bind.ip().is_loopback();
    let require_token = settings.require_token.unwrap_or(!is_loopback);
    if !is_loopback && !require_token {
        return Err(ConfigError::OpenToAll { bind });
    }
    let allowed_hosts = parsed(
        "allowed_hosts",
        &settings.allowed_hosts,
        HostPattern::parse,
        "a name or address, such as pml.example.com or [::1]:7410",
    )?;
    let allowed_origins = parsed(
        "allowed_origins",
        &settings.allowed_origins,
        OriginPattern::parse,
        "a scheme and a host, such as https://app.example.com or http://localhost:*",
    )?;
    let trusted_proxies = parsed(
        "trusted_proxies",
        &settings.trusted_proxies,
        parse_network,
        "an address or a network, such as 10.0.0.7 or 10.0.0.0/8",
    )?;
    let rate = settings.rate.unwrap_or(if require_token { 200 } else { 0 });
    // On loopback all clients share one address: with a limit by address, one could lock out the others.
    let per_address = settings.max_connections_per_address.unwrap_or(if is_loopback { 0 } else { 100 });
    Ok(HttpConfig {
        bind,
        require_token,
        allowed_hosts,
        allowed_origins,
        max_body: positive("max_body", settings.max_body)?,
        rate: NonZeroU32::new(rate),
        concurrency: positive("concurrency", settings.concurrency)?,
        drain: seconds("drain", settings.drain)?,
        door: DoorLimits {
            connections: positive("max_connections", settings.max_connections)?,
            connections_per_address: Some(per_address).filter(|limit| *limit > 0),
            header_timeout: seconds("header_timeout", settings.header_timeout)?,
            body_timeout: seconds("body_timeout", settings.body_timeout)?,
            body_rate: NonZeroU64::new(settings.body_rate)
                .ok_or_else(|| range("body_rate", 0, "at least 1"))?,
            idle_timeout: seconds("idle_timeout", settings.idle_timeout)?,
            send_timeout: seconds("send_timeout", settings.send_timeout)?,
        },
        trusted_proxies,
        tls: tls_files(settings.tls_certificate.clone(), settings.tls_key.clone())?,
    })
}

fn tls_files(certificate: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<TlsFiles>, ConfigError> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(ConfigError::HalfOfTls { given: "tls_certificate", missing: "tls_key" }),
        (None, Some(_)) => Err(ConfigError::HalfOfTls { given: "tls_key", missing: "tls_certificate" }),
    }
}

fn parse_network(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()
}

fn parsed<T>(
    setting: &'static str,
    given: &[String],
    parse: fn(&str) -> Option<T>,
    expected: &'static str,
) -> Result<Vec<T>, ConfigError> {
    given
        .iter()
        .map(|text| parse(text.trim()).ok_or_else(|| range(setting, format!("{text:?}"), expected)))
        .collect()
}
