//! The client behind a reverse proxy: `Forwarded` and `X-Forwarded-For` are trusted only from configured proxies.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{HeaderMap, HeaderName, header::FORWARDED};
use ipnet::IpNet;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sender {
    pub address: IpAddr,
    /// Whether it was sent on this machine.
    pub is_local: bool,
    /// Whether it was encrypted on the way to the nearest proxy.
    pub is_encrypted: bool,
}

/// The reverse proxy forwards one of the headers unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Forwarded and X-Forwarded-For name different clients; configure the reverse proxy to set one and remove the other."
)]
pub(super) struct Contradiction;

/// The key of limits by address: an IPv6 client has a whole /64.
pub(super) fn limited_by(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address @ IpAddr::V4(_) => address,
    }
}

pub(super) fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|net| net.contains(&address.to_canonical()))
}

/// The rightmost address that isn't a trusted proxy's, if the connection comes from a trusted proxy.
pub(super) fn sender(
    peer: IpAddr,
    is_encrypted: bool,
    headers: &HeaderMap,
    trusted: &[IpNet],
) -> Result<Sender, Contradiction> {
    let peer = peer.to_canonical();
    let direct = Sender { address: peer, is_local: peer.is_loopback(), is_encrypted };
    if trusted.is_empty() || !is_trusted(peer, trusted) {
        return Ok(direct);
    }
    let by_standard = values(headers, &FORWARDED).map(|hops| {
        let hops: Vec<Hop> = hops.iter().map(|hop| Hop::parse(hop)).collect();
        behind(peer, &hops, trusted)
    });
    let by_custom = values(headers, &FOR).map(|hops| {
        // X-Forwarded-Proto isn't by hop; its last value is the nearest proxy's.
        let proto = values(headers, &PROTO).and_then(|protos| protos.last().copied());
        let is_encrypted = proto.map(|proto| proto.eq_ignore_ascii_case("https"));
        let hops: Vec<Hop> =
            hops.iter().map(|hop| Hop { address: parse_address(hop), is_encrypted }).collect();
        behind(peer, &hops, trusted)
    });
    match (by_standard, by_custom) {
        (Some(one), Some(other)) if one.address != other.address => Err(Contradiction),
        (Some(sender), _) | (None, Some(sender)) => Ok(sender),
        (None, None) => Ok(direct),
    }
}

/// All elements of a header, on any number of lines. Unreadable ones are kept as empty.
fn values<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Vec<&'a str>> {
    let lines = headers.get_all(name);
    headers.contains_key(name).then(|| {
        let text = lines.iter().map(|line| line.to_str().unwrap_or_default());
        text.flat_map(|line| line.split(',')).map(str::trim).collect()
    })
}

/// One hop: who connected to a proxy, and how.
struct Hop {
    address: Option<IpAddr>,
    is_encrypted: Option<bool>,
}

impl Hop {
    /// An element of `Forwarded`: `for=192.0.2.60;proto=https;by=203.0.113.43`.
    fn parse(element: &str) -> Hop {
        let mut hop = Hop { address: None, is_encrypted: None };
        for pair in element.split(';') {
            let Some((name, value)) = pair.split_once('=') else { continue };
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "for" => hop.address = parse_address(value),
                "proto" => hop.is_encrypted = Some(value.eq_ignore_ascii_case("https")),
                _ => {}
            }
        }
        hop
    }
}

/// With or without port and brackets; none for `unknown` and obfuscated names.
fn parse_address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

fn behind(peer: IpAddr, hops: &[Hop], trusted: &[IpNet]) -> Sender {
    // The last address that a trusted proxy reported.
    let mut nearest = Sender { address: peer, is_local: false, is_encrypted: false };
    for hop in hops.iter().rev() {
        let Some(address) = hop.address else { return nearest };
        nearest = Sender {
            address,
            is_local: address.is_loopback(),
            is_encrypted: hop.is_encrypted.unwrap_or(false),
        };
        if !is_trusted(address, trusted) {
            return nearest;
        }
    }
    nearest
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use http::{HeaderMap, HeaderName, HeaderValue};
    use ipnet::IpNet;

    use super::{Contradiction, Sender, limited_by, sender};

    fn asked(peer: &str, headers: &[(&'static str, &'static str)]) -> Result<Sender, Contradiction> {
        let trusted: Vec<IpNet> =
            ["127.0.0.1/32", "10.0.0.0/8", "fd00::/8"].map(|net| net.parse().unwrap()).to_vec();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        sender(peer.parse().unwrap(), false, &map, &trusted)
    }

    fn address(peer: &str, headers: &[(&'static str, &'static str)]) -> String {
        asked(peer, headers).unwrap().address.to_string()
    }

    #[test]
    fn only_trusted_proxies_count() {
        let spoofed = [("x-forwarded-for", "127.0.0.1"), ("forwarded", "for=127.0.0.1;proto=https")];
        let stranger = asked("192.0.2.9", &spoofed).unwrap();
        assert_eq!(stranger.address.to_string(), "192.0.2.9");
        assert!(!stranger.is_local && !stranger.is_encrypted);
        assert_eq!(address("10.0.0.1", &[("x-forwarded-for", "192.0.2.1")]), "192.0.2.1");
        assert_eq!(address("::ffff:10.0.0.1", &[("x-forwarded-for", "192.0.2.1")]), "192.0.2.1");
        assert_eq!(address("10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn the_rightmost_untrusted_address_is_the_client() {
        for value in [
            "203.0.113.7, 192.0.2.1",
            "garbage, 192.0.2.1, 10.1.1.1",
            "192.0.2.1:5000, 10.1.1.1, 10.2.2.2",
            "127.0.0.1,192.0.2.1",
        ] {
            assert_eq!(address("10.0.0.1", &[("x-forwarded-for", value)]), "192.0.2.1", "{value}");
        }
        let lines = [("x-forwarded-for", "192.0.2.1"), ("x-forwarded-for", "10.1.1.1")];
        assert_eq!(address("10.0.0.1", &lines), "192.0.2.1");
        for value in [
            "for=192.0.2.1",
            "For=\"192.0.2.1:80\";proto=https",
            "for=evil, for=192.0.2.1;by=10.0.0.1, for=10.3.3.3",
        ] {
            assert_eq!(address("10.0.0.1", &[("forwarded", value)]), "192.0.2.1", "{value}");
        }
        let v6 = [("forwarded", "for=\"[2001:db8::1]:4711\", for=\"[fd00::1]\"")];
        assert_eq!(address("10.0.0.1", &v6), "2001:db8::1");
    }

    #[test]
    fn an_unreadable_hop_ends_the_chain_at_the_last_proxy() {
        for value in ["for=unknown", "for=_hidden", "", "nonsense"] {
            let sender = asked("127.0.0.1", &[("forwarded", value)]).unwrap();
            assert_eq!(sender.address.to_string(), "127.0.0.1", "{value}");
            assert!(!sender.is_local, "another client is behind it: {value}");
        }
        assert_eq!(address("127.0.0.1", &[("x-forwarded-for", "x, 10.1.1.1")]), "10.1.1.1");
        assert!(asked("127.0.0.1", &[]).unwrap().is_local);
        assert!(asked("127.0.0.1", &[("x-forwarded-for", "127.0.0.1")]).unwrap().is_local);
        assert!(!asked("127.0.0.1", &[("x-forwarded-for", "127.0.0.1, 192.0.2.1")]).unwrap().is_local);
    }

    #[test]
    fn headers_that_contradict_each_other_are_refused() {
        let both =
            |standard, custom| asked("10.0.0.1", &[("forwarded", standard), ("x-forwarded-for", custom)]);
        assert_eq!(both("for=127.0.0.1", "192.0.2.1"), Err(Contradiction));
        assert!(both("for=192.0.2.1", "192.0.2.1").is_ok());
    }

    #[test]
    fn encryption_is_what_the_nearest_proxy_says() {
        let encrypted = |headers: &[_]| asked("10.0.0.1", headers).unwrap().is_encrypted;
        assert!(encrypted(&[("forwarded", "for=192.0.2.1;proto=HTTPS")]));
        assert!(!encrypted(&[("forwarded", "for=1.1.1.1;proto=https, for=192.0.2.1;proto=http")]));
        assert!(encrypted(&[("x-forwarded-for", "192.0.2.1"), ("x-forwarded-proto", "http, https")]));
        assert!(!encrypted(&[("x-forwarded-for", "192.0.2.1")]));
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let key = |text: &str| limited_by(text.parse::<IpAddr>().unwrap()).to_string();
        assert_eq!(key("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(key("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(key("192.0.2.1"), "192.0.2.1");
    }
}
