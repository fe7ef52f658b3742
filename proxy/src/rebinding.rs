//! Protection against DNS rebinding: under which name a request may come (`Host`) and from which pages (`Origin`). Both are
//! parsed whole, never matched in part.

use http::{
    HeaderMap, Uri, Version,
    header::{HOST, ORIGIN},
};

/// A host with an optional port, as in `Host` and URIs, without user or path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Authority<'a> {
    host: &'a str,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Authority<'a>> {
        let end = match text.strip_prefix('[') {
            Some(rest) => rest.find(']')? + 2,
            None => text.find(':').unwrap_or(text.len()),
        };
        let (host, port) = text.split_at(end);
        let port = match port.strip_prefix(':') {
            Some(digits) => Some(parse_port(digits)?),
            None if port.is_empty() => None,
            None => return None,
        };
        is_host(host).then_some(Authority { host, port })
    }

    fn is_same(&self, other: &Authority<'_>, scheme: Option<&str>) -> bool {
        let port = |authority: &Authority<'_>| authority.port.or_else(|| default_port(scheme?));
        self.host.eq_ignore_ascii_case(other.host) && port(self) == port(other)
    }
}

fn is_host(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
        }
    }
}

/// Digits only: `parse` would accept a sign.
fn parse_port(digits: &str) -> Option<u16> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme.to_ascii_lowercase().as_str() {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// An allowed host; without a port it allows any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    host: String,
    port: Option<u16>,
}

impl HostPattern {
    pub fn parse(text: &str) -> Option<HostPattern> {
        let Authority { host, port } = Authority::parse(text)?;
        Some(HostPattern { host: host.to_owned(), port })
    }

    pub(crate) fn address(address: std::net::IpAddr) -> HostPattern {
        let host = match address {
            std::net::IpAddr::V4(address) => address.to_string(),
            std::net::IpAddr::V6(address) => format!("[{address}]"),
        };
        HostPattern { host, port: None }
    }

    fn fits(&self, authority: &Authority<'_>) -> bool {
        self.host.eq_ignore_ascii_case(authority.host)
            && self.port.is_none_or(|port| authority.port == Some(port))
    }
}

/// An allowed web origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginPattern {
    /// Pages without an origin, such as local files.
    Null,
    Of {
        scheme: String,
        host: String,
        port: PortPattern,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortPattern {
    /// Written as `*`.
    Any,
    /// `None` is the scheme's default.
    One(Option<u16>),
}

impl OriginPattern {
    pub fn parse(text: &str) -> Option<OriginPattern> {
        if text == "null" {
            return Some(OriginPattern::Null);
        }
        let (origin, is_any) = text.strip_suffix(":*").map_or((text, false), |origin| (origin, true));
        let (scheme, Authority { host, port }) = parse_origin(origin)?;
        let port = match port {
            Some(_) if is_any => return None,
            _ if is_any => PortPattern::Any,
            port => PortPattern::One(port),
        };
        Some(OriginPattern::Of { scheme: scheme.to_owned(), host: host.to_owned(), port })
    }

    fn fits(&self, origin: &str) -> bool {
        match self {
            OriginPattern::Null => origin == "null",
            OriginPattern::Of { scheme, host, port } => {
                parse_origin(origin).is_some_and(|(given_scheme, given)| {
                    let port = match port {
                        PortPattern::Any => given.port,
                        PortPattern::One(port) => *port,
                    };
                    scheme.eq_ignore_ascii_case(given_scheme)
                        && given.is_same(&Authority { host, port }, Some(given_scheme))
                })
            }
        }
    }
}

/// `scheme://host[:port]` and nothing after it.
fn parse_origin(text: &str) -> Option<(&str, Authority<'_>)> {
    let (scheme, authority) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    Some((scheme, Authority::parse(authority)?)).filter(|_| is_scheme)
}

/// What is wrong with the host of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadHost {
    #[error("The request has no Host header; send exactly one.")]
    Missing,
    #[error("The request has more than one Host header; send exactly one.")]
    Several,
    #[error("The Host header isn't a host with an optional port, such as localhost:7410.")]
    Malformed,
    #[error("The host in the request's URI differs from its Host header; send the same.")]
    Contradicted,
}

/// The one host of a request. Before HTTP/1.1 there may be none.
pub(crate) fn requested_host<'a>(
    uri: &'a Uri,
    version: Version,
    headers: &'a HeaderMap,
) -> Result<Option<Authority<'a>>, BadHost> {
    let mut given = headers.get_all(HOST).iter();
    let host = match (given.next(), given.next()) {
        (_, Some(_)) => return Err(BadHost::Several),
        (Some(host), None) => {
            let host = host.to_str().ok().and_then(Authority::parse);
            Some(host.ok_or(BadHost::Malformed)?)
        }
        (None, None) => None,
    };
    let target = match uri.authority() {
        Some(authority) => Some(Authority::parse(authority.as_str()).ok_or(BadHost::Malformed)?),
        None => None,
    };
    match (host, target) {
        (Some(host), Some(target)) if !host.is_same(&target, uri.scheme_str()) => Err(BadHost::Contradicted),
        // HTTP/2 has it only in the URI.
        (None, None) if version >= Version::HTTP_11 => Err(BadHost::Missing),
        (None, Some(_)) if version == Version::HTTP_11 => Err(BadHost::Missing),
        (host, target) => Ok(host.or(target)),
    }
}

pub(crate) fn is_allowed_host(host: Option<Authority<'_>>, allowed: &[HostPattern]) -> bool {
    host.is_some_and(|host| allowed.iter().any(|pattern| pattern.fits(&host)))
}

/// Whether the request has no origin, or an allowed one.
pub(crate) fn is_allowed_origin(headers: &HeaderMap, allowed: &[OriginPattern]) -> bool {
    let mut given = headers.get_all(ORIGIN).iter();
    match (given.next(), given.next()) {
        (None, _) => true,
        (Some(origin), None) => {
            origin.to_str().is_ok_and(|origin| allowed.iter().any(|pattern| pattern.fits(origin)))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Uri, Version, header};

    use super::{
        Authority, BadHost, HostPattern, OriginPattern, is_allowed_host, is_allowed_origin, requested_host,
    };

    #[test]
    fn an_authority_is_read_to_its_end() {
        for good in
            ["localhost", "LOCALHOST:80", "127.0.0.1:7410", "[::1]", "[::1]:7410", "a_b.example-c.org"]
        {
            assert!(Authority::parse(good).is_some(), "{good}");
        }
        for bad in [
            "",
            ":80",
            "localhost:",
            "localhost:80.evil.com",
            "localhost:+80",
            "localhost:99999",
            "a b",
            "a/b",
            "user@localhost",
            "localhost#",
            "localhost:80:80",
            "[::1",
            "[::1]x",
            "[evil]",
            "::1",
            "é",
            "a,b",
        ] {
            assert!(Authority::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn origins_are_compared_as_a_whole() {
        let allowed: Vec<_> =
            ["http://localhost:*", "https://app.example.com", "vscode-webview://abc", "http://a:81"]
                .map(|text| OriginPattern::parse(text).unwrap())
                .to_vec();
        let may = |origins: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for origin in origins {
                headers.append(header::ORIGIN, HeaderValue::from_static(origin));
            }
            is_allowed_origin(&headers, &allowed)
        };
        assert!(may(&[]));
        for good in [
            "http://localhost",
            "http://localhost:3000",
            "HTTP://LOCALHOST:1",
            "https://app.example.com",
            "https://app.example.com:443",
            "vscode-webview://abc",
            "http://a:81",
        ] {
            assert!(may(&[good]), "{good}");
        }
        for bad in [
            "http://localhost:80.evil.com",
            "http://localhost.evil.com",
            "http://localhost:3000/",
            "https://localhost",
            "http://localhost@evil.com",
            "http://evil.com#http://localhost",
            "http://localhost:",
            "null",
            "",
            "https://app.example.com:8443",
            "http://app.example.com",
            "http://a",
            "localhost",
            "http://localhost ",
        ] {
            assert!(!may(&[bad]), "{bad}");
        }
        assert!(!may(&["http://localhost", "http://localhost"]));
        assert!(OriginPattern::parse("http://a:80:*").is_none() && OriginPattern::parse("a").is_none());
    }

    #[test]
    fn a_request_has_one_host() {
        let asked = |uri: &'static str, version, hosts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, HeaderValue::from_static(host));
            }
            let names =
                [HostPattern::parse("localhost").unwrap(), HostPattern::parse("b.example:81").unwrap()];
            requested_host(&Uri::from_static(uri), version, &headers)
                .map(|asked| is_allowed_host(asked, &names))
        };
        assert_eq!(asked("/mcp", Version::HTTP_11, &["localhost:7410"]), Ok(true));
        assert_eq!(asked("/mcp", Version::HTTP_11, &["evil.example"]), Ok(false));
        assert_eq!(asked("/mcp", Version::HTTP_11, &["b.example:81"]), Ok(true));
        assert_eq!(asked("/mcp", Version::HTTP_11, &["b.example"]), Ok(false));
        assert_eq!(asked("/mcp", Version::HTTP_11, &[]), Err(BadHost::Missing));
        assert_eq!(asked("/mcp", Version::HTTP_10, &[]), Ok(false));
        assert_eq!(asked("/mcp", Version::HTTP_11, &["localhost", "localhost"]), Err(BadHost::Several));
        assert_eq!(asked("/mcp", Version::HTTP_11, &["localhost:x"]), Err(BadHost::Malformed));
        assert_eq!(asked("http://localhost:80/mcp", Version::HTTP_11, &["LocalHost"]), Ok(true));
        for (uri, host) in [
            ("http://evil.example/mcp", "localhost"),
            ("http://localhost:81/mcp", "localhost"),
            ("http://localhost/mcp", "evil.example"),
        ] {
            assert_eq!(asked(uri, Version::HTTP_11, &[host]), Err(BadHost::Contradicted), "{uri}");
            assert_eq!(asked(uri, Version::HTTP_2, &[host]), Err(BadHost::Contradicted), "{uri}");
        }
        assert_eq!(asked("http://localhost/mcp", Version::HTTP_2, &[]), Ok(true));
        assert_eq!(asked("http://user@localhost/mcp", Version::HTTP_2, &[]), Err(BadHost::Malformed));
    }
}
