//! The URIs of servers' resources as clients see them: `pml://<server>/<the server's own URI>`.
//!
//! The server's URI stays as it is, behind a prefix. So it can be read, no two servers clash, and it maps back without a
//! table, whatever else is connected. A URI template keeps its expressions: what a client expands it to maps back too. The
//! server's URI is the path (and query) of a hierarchical URI, because clients that parse URIs keep those unchanged.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const PREFIX: &str = "pml://";
/// What isn't allowed in the host of a URI, or has a meaning there.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A server's URI or URI template as clients see it.
pub(crate) fn of_server(server: &str, uri: &str) -> String {
    format!("{PREFIX}{}/{uri}", utf8_percent_encode(server, ENCODED))
}

/// The server and its own URI, if this is the URI of a server's resource. The server may not exist.
pub(crate) fn parse(uri: &str) -> Option<(String, &str)> {
    let (scheme, rest) = (uri.get(..PREFIX.len())?, uri.get(PREFIX.len()..)?);
    // Parsers of URIs write schemes in lower case, people don't.
    if !scheme.eq_ignore_ascii_case(PREFIX) {
        return None;
    }
    let (server, uri) = rest.split_once('/')?;
    Some((decoded(server)?, uri)).filter(|(server, uri)| !server.is_empty() && !uri.is_empty())
}

fn decoded(server: &str) -> Option<String> {
    percent_decode_str(server).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::{of_server, parse};

    #[test]
    fn every_uri_of_every_server_maps_back() {
        for server in ["files", "my-server", "a_b.c", "mit Leerzeichen", "a/b", "100%", "schön"] {
            for uri in [
                "file:///a",
                "https://example.com:8/a?b=/c#d",
                "urn:isbn:1",
                "demo://resource/%2F",
                "test://template/{id}/data{?page*}",
                "pml://inner/file:///a",
                "no uri at all",
            ] {
                let ours = of_server(server, uri);
                assert_eq!(parse(&ours), Some((server.to_owned(), uri)), "{ours}");
            }
        }
    }

    #[test]
    fn parsers_of_uris_keep_them() {
        for (server, uri) in [
            ("files", "file:///a"),
            ("Web", "https://Example.com"),
            ("x y", "demo://Resource/a//b/?q=1#f"),
            ("isbn", "urn:isbn:1"),
            ("t", "test://a:b@c/d%2Fe"),
        ] {
            let ours = of_server(server, uri);
            assert_eq!(url::Url::parse(&ours).unwrap().as_str(), ours);
        }
    }

    #[test]
    fn other_uris_are_not_taken_for_ours() {
        for uri in
            ["", "pml:", "pml://", "pml://s", "pml://s/", "pml:///file:///a", "file:///a", "pml://%ff/a", "é"]
        {
            assert_eq!(parse(uri), None, "{uri}");
        }
        assert_eq!(parse("PML://s/a:b"), Some(("s".to_owned(), "a:b")));
    }
}
