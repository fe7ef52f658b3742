//! U+2028 and U+2029 after a `//` comment become line feeds: the engine doesn't see a line end there, so no statement ends.

use super::{Stripper, skip_blanks};
use crate::parse::range;

const SEPARATORS: [char; 2] = ['\u{2028}', '\u{2029}'];

impl Stripper<'_> {
    pub(super) fn separators_after_comments(&mut self) {
        // Both start with these two bytes.
        if memchr::memchr(0xE2, self.code.as_bytes()).is_none() {
            return;
        }
        let ends = self.tokens.iter().map(|token| range(token.span).end);
        let gaps: Vec<_> = [0].into_iter().chain(ends).map(|end| end..skip_blanks(self.code, end)).collect();
        for gap in gaps {
            let mut at = gap.start;
            while at < gap.end {
                let rest = &self.code[at..gap.end];
                at += if rest.starts_with("/*") {
                    rest.find("*/").map_or(rest.len(), |end| end + 2)
                } else if rest.starts_with("//") {
                    let end = rest.find(['\n', '\r', SEPARATORS[0], SEPARATORS[1]]).unwrap_or(rest.len());
                    if rest[end..].starts_with(SEPARATORS) {
                        self.edits.replace(at + end..at + end + SEPARATORS[0].len_utf8(), "\n");
                    }
                    end
                } else {
                    rest.chars().next().map_or(1, char::len_utf8)
                };
            }
        }
    }
}
