//! Versions: the semver tag of a version, and the specifier after `@` that picks one.

use time::{Date, Month, OffsetDateTime, Time, format_description::well_known::Rfc3339};

use crate::error::{Error, Result};

/// The specifier after the `@`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionSpec {
    Latest,
    /// `v1`: the highest tag of that major version, else the version with that number.
    Major(u64),
    /// `v1.2`: the highest tag of that minor version.
    Minor(u64, u64),
    /// `v1.2.0`: that tag.
    Exact(Tag),
    /// The last version created before this time, in microseconds since the Unix epoch.
    Before(i64),
}

impl VersionSpec {
    pub fn parse(text: &str) -> Result<Self> {
        let problem = || Error::InvalidVersion { value: text.to_owned() };
        if text == "latest" {
            return Ok(VersionSpec::Latest);
        }
        if let Some(moment) = parse_moment(text) {
            return Ok(VersionSpec::Before(moment));
        }
        let digits = text.strip_prefix('v').unwrap_or(text);
        let mut numbers = digits.splitn(3, '.');
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(major), None, _) => Ok(VersionSpec::Major(number(major).ok_or_else(problem)?)),
            (Some(major), Some(minor), None) => {
                Ok(VersionSpec::Minor(number(major).ok_or_else(problem)?, number(minor).ok_or_else(problem)?))
            }
            _ => Tag::parse(text).map(VersionSpec::Exact).map_err(|_| problem()),
        }
    }
}

/// The first microsecond after the date or timestamp, since the Unix epoch.
fn parse_moment(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() < 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let date = text.get(..10)?;
    let moment = if text.len() == 10 {
        let year = date.get(..4)?.parse().ok()?;
        let month: u8 = date.get(5..7)?.parse().ok()?;
        let day = date.get(8..)?.parse().ok()?;
        let next_day = Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()?.next_day()?;
        OffsetDateTime::new_utc(next_day, Time::MIDNIGHT)
    } else {
        // A version created in that very microsecond counts.
        let zoned = has_zone(text.get(10..)?);
        let text = if zoned { text.to_owned() } else { format!("{text}Z") };
        OffsetDateTime::parse(&text, &Rfc3339).ok()?.checked_add(time::Duration::microseconds(1))?
    };
    i64::try_from(moment.unix_timestamp_nanos() / 1_000).ok()
}

fn has_zone(time: &str) -> bool {
    time.ends_with(['Z', 'z']) || time.contains(['+', '-'])
}

/// A decimal number without sign or leading zeros.
fn number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if plain && (text.len() == 1 || !text.starts_with('0')) { text.parse().ok() } else { None }
}

/// A semantic version, `v1.2.0-rc.1+build`; the `v` is optional in input and always stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(semver::Version);

impl Tag {
    pub fn parse(tag: &str) -> Result<Self> {
        let problem = |detail: String| Error::InvalidTag { value: tag.to_owned(), detail };
        if tag.len() > 128 {
            return Err(problem("It has more than 128 characters.".to_owned()));
        }
        let text = tag.strip_prefix('v').unwrap_or(tag);
        semver::Version::parse(text)
            .map(Tag)
            .map_err(|error| problem(format!("It can't be parsed: {error}.")))
    }

    /// The form in which tags are stored and compared for equality.
    pub fn stored(&self) -> String {
        format!("v{}", self.0)
    }

    /// Text that sorts bytewise by semver precedence.
    pub fn sort_key(&self) -> String {
        let mut key = core_key(&[self.0.major, self.0.minor, self.0.patch]);
        if self.0.pre.is_empty() {
            // "~" sorts after anything a pre-release can start with: a release comes after its pre-releases.
            key.push('~');
            return key;
        }
        for identifier in self.0.pre.split('.') {
            if identifier.bytes().all(|b| b.is_ascii_digit()) {
                // Prefixed with its length, since numbers have no leading zeros and no limit.
                key.push_str(&format!("!0{:03}{identifier}", identifier.len()));
            } else {
                key.push_str(&format!("!1{identifier}"));
            }
        }
        key
    }
}

/// The common prefix of the sort keys of all tags of this major, or this major and minor version.
pub fn sort_key_prefix(major: u64, minor: Option<u64>) -> String {
    match minor {
        Some(minor) => core_key(&[major, minor]),
        None => core_key(&[major]),
    }
}

fn core_key(numbers: &[u64]) -> String {
    numbers.iter().map(|number| format!("{number:020}.")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn specifiers() {
        let exact = |text| VersionSpec::Exact(Tag::parse(text).unwrap());
        for (text, expected) in [
            ("latest", VersionSpec::Latest),
            ("v1", VersionSpec::Major(1)),
            ("1", VersionSpec::Major(1)),
            ("v1.2", VersionSpec::Minor(1, 2)),
            ("v1.2.0", exact("v1.2.0")),
            ("1.2.0", exact("v1.2.0")),
            ("v2.0.0-rc.1", exact("v2.0.0-rc.1")),
            ("1970-01-01", VersionSpec::Before(86_400_000_000)),
            ("2025-12-22", VersionSpec::Before(1_766_448_000_000_000)),
            ("1970-01-01T00:00:01Z", VersionSpec::Before(1_000_001)),
            ("1970-01-01T00:00:01", VersionSpec::Before(1_000_001)),
            ("1970-01-01T02:00:01.5+02:00", VersionSpec::Before(1_500_001)),
        ] {
            assert_eq!(VersionSpec::parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn invalid_specifiers_are_refused() {
        for text in [
            "",
            "v",
            "V1",
            "v01",
            "v-1",
            "v1.",
            "v1.02",
            "v1.2.x",
            "newest",
            "2025-13-01",
            "2025-02-30",
            "v1 ",
            "99999999999999999999",
            "2025-12-22T25:00:00Z",
            "é2345-12-22",
            "1.2.3.4",
        ] {
            assert!(VersionSpec::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tags_are_semver() {
        for tag in ["v1.2.0", "1.2.0", "v0.0.0", "v1.0.0-alpha.1", "v1.0.0-0a.x-y", "v1.0.0+build.01"] {
            Tag::parse(tag).unwrap();
        }
        for tag in [
            "",
            "v1",
            "v1.2",
            "v1.2.3.4",
            "v1.02.3",
            "v1.2.3-",
            "v1.2.3-01",
            "v1.2.3+",
            "v1.2.3-a..b",
            "x1.2.3",
        ] {
            assert!(Tag::parse(tag).is_err(), "{tag}");
        }
        assert_eq!(Tag::parse("1.2.0").unwrap().stored(), "v1.2.0");
    }

    #[test]
    fn precedence_is_that_of_the_semver_specification() {
        let ascending = [
            "v0.9.9",
            "v1.0.0-alpha",
            "v1.0.0-alpha.1",
            "v1.0.0-alpha.beta",
            "v1.0.0-beta",
            "v1.0.0-beta.2",
            "v1.0.0-beta.11",
            "v1.0.0-beta.99999999999999999999",
            "v1.0.0-rc.1",
            "v1.0.0",
            "v1.2.0",
            "v1.10.0",
            "v2.0.0-rc.1",
            "v2.0.0",
            "v10.0.0",
        ];
        for pair in ascending.windows(2) {
            let keys = pair.iter().map(|tag| Tag::parse(tag).unwrap().sort_key()).collect::<Vec<_>>();
            assert!(keys[0] < keys[1], "{pair:?}");
        }
    }

    #[test]
    fn prefixes_select_their_tags() {
        let key = Tag::parse("v1.12.3-rc.1").unwrap().sort_key();
        assert!(key.starts_with(&sort_key_prefix(1, None)));
        assert!(key.starts_with(&sort_key_prefix(1, Some(12))));
        assert!(!key.starts_with(&sort_key_prefix(1, Some(1))));
        assert!(!key.starts_with(&sort_key_prefix(11, None)));
    }

    proptest! {
        #[test]
        fn any_text_is_judged_without_panic(text in ".{0,60}") {
            let _ = VersionSpec::parse(&text);
            let _ = Tag::parse(&text);
        }

        #[test]
        fn anything_like_a_date_is_judged_without_panic(text in "[0-9é]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.+Zé-]{0,20})?") {
            let _ = VersionSpec::parse(&text);
        }
    }
}
