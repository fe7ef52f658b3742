//! Which URI templates (RFC 6570) a URI may come from.

/// Whether the URI has the template's literal parts, in order. Its expressions may stand for anything.
pub(crate) fn matches(template: &str, uri: &str) -> bool {
    let Some((start, mut rest)) = template.split_once('{') else { return template == uri };
    let Some(mut uri) = uri.strip_prefix(start) else { return false };
    loop {
        // Without its end, an expression is none.
        let Some((_, after)) = rest.split_once('}') else { return false };
        let Some((literal, next)) = after.split_once('{') else { return uri.ends_with(after) };
        let Some(at) = uri.find(literal) else { return false };
        uri = &uri[at + literal.len()..];
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn literal_parts_decide() {
        for (template, uri, expected) in [
            ("test://a", "test://a", true),
            ("test://a", "test://ab", false),
            ("test://{id}", "test://7", true),
            ("test://{id}/data", "test://7/data", true),
            ("test://{id}/data", "test://7/date", false),
            ("test://{a}/x/{b}.txt{?q}", "test://1/x/2.txt?q=3", true),
            ("test://{a}/x/{b}.txt", "test://1/y/2.txt", false),
            ("file:///{+path}", "file:///a/b/c", true),
            ("file:///{+path}", "test:///a", false),
            ("test://{a", "test://{a", false),
        ] {
            assert_eq!(matches(template, uri), expected, "{template} {uri}");
        }
    }
}
