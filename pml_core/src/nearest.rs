//! "Did you mean": the existing name that is closest to a missing one.

use strsim::damerau_levenshtein;

/// The candidate nearest to `wanted`, if any is near enough to be a typo.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let tolerance = (wanted.len() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(wanted.len()) <= tolerance)
        .map(|candidate| (distance(wanted, candidate), candidate))
        .filter(|(distance, _)| *distance <= tolerance)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The edit distance; case and `-` or `_` don't count.
fn distance(a: &str, b: &str) -> usize {
    let fold = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    damerau_levenshtein(&fold(a), &fold(b))
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typos_are_found() {
        let names = ["fs:read_json", "fs:write_json", "api:fetch"];
        assert_eq!(nearest("fs:raed_json", names), Some("fs:read_json"));
        assert_eq!(nearest("FS:Read-Json", names), Some("fs:read_json"));
        assert_eq!(nearest("api:fetsh", names), Some("api:fetch"));
    }

    #[test]
    fn other_names_are_not() {
        assert_eq!(nearest("git:log", ["fs:read_json", "db:query"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
