//! Text edits: everything that the compiler writes is the source with edits, so that the rest stays the same to the byte.

use std::borrow::Cow;
use std::ops::Range;

/// The order of edits at the same position: ends before starts, inner ends before outer ones, outer starts before inner
/// ones, and all of them before a replacement of what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Close { length: usize },
    Insert,
    Open { shortness: usize, newest_first: usize },
    Replace,
}

/// Replaces `start..end` by `text`.
#[derive(Debug, Clone)]
struct Edit {
    start: usize,
    end: usize,
    text: Cow<'static, str>,
    rank: Rank,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Edits {
    list: Vec<Edit>,
}

impl Edits {
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self { list: Vec::with_capacity(count) }
    }

    pub(crate) fn replace(&mut self, range: Range<usize>, text: impl Into<Cow<'static, str>>) {
        let end = range.end.max(range.start);
        self.list.push(Edit { start: range.start, end, text: text.into(), rank: Rank::Replace });
    }

    pub(crate) fn insert(&mut self, at: usize, text: impl Into<Cow<'static, str>>) {
        self.list.push(Edit { start: at, end: at, text: text.into(), rank: Rank::Insert });
    }

    /// Wraps a range, which may contain other edits.
    pub(crate) fn wrap(
        &mut self,
        range: Range<usize>,
        open: impl Into<Cow<'static, str>>,
        close: impl Into<Cow<'static, str>>,
    ) {
        let length = range.len();
        let newest_first = usize::MAX - self.list.len();
        let rank = Rank::Open { shortness: usize::MAX - length, newest_first };
        self.list.push(Edit { start: range.start, end: range.start, text: open.into(), rank });
        self.list.push(Edit {
            start: range.end,
            end: range.end,
            text: close.into(),
            rank: Rank::Close { length },
        });
    }

    /// Removes a range but keeps its line ends, so that line numbers stay the same.
    pub(crate) fn remove(&mut self, code: &str, range: Range<usize>) {
        let kept = line_ends(code.get(range.clone()).unwrap_or_default());
        // After a lone CR, an LF would be part of the same line end.
        let before = code.get(..range.start).unwrap_or_default();
        let follows_cr = kept.starts_with('\n') && before.ends_with('\r');
        // Marks before it may be removed as well, and blanks between them.
        let left = before.trim_end_matches(|c: char| c == '!' || c.is_whitespace());
        let after = code.get(range.end..).unwrap_or_default();
        let joins_ends = before.ends_with('\r') && after.starts_with('\n');
        let joins = kept.is_empty() && (joins_ends || become_one(left, after));
        self.replace(range, if follows_cr || joins { format!(" {kept}") } else { kept });
    }

    pub(crate) fn append(&mut self, mut other: Edits) {
        self.list.append(&mut other.list);
    }

    /// Applies all edits; an edit inside an already applied one is dropped.
    pub(crate) fn apply(&self, code: &str) -> String {
        if self.list.is_empty() {
            return code.to_owned();
        }
        let mut edits: Vec<&Edit> = self.list.iter().collect();
        edits.sort_by_key(|edit| (edit.start, edit.rank));
        let mut result =
            String::with_capacity(code.len() + self.list.iter().map(|edit| edit.text.len()).sum::<usize>());
        let mut at = 0;
        for edit in edits {
            let Some(kept) = code.get(at..edit.start) else { continue };
            result.push_str(kept);
            result.push_str(&edit.text);
            at = edit.end.max(at);
        }
        result.push_str(code.get(at..).unwrap_or_default());
        result
    }
}

/// Whether the end of one text and the start of the next would merge into one token: two words, `1.` and a letter, `--`, the
/// start of a comment.
fn become_one(left: &str, right: &str) -> bool {
    let meet =
        |end: fn(char) -> bool, start: fn(char) -> bool| left.ends_with(end) && right.starts_with(start);
    meet(is_of_word, is_of_word)
        || meet(|c| c.is_ascii_digit(), |c| c == '.')
        || ['+', '-', '/'].iter().any(|mark| left.ends_with(*mark) && right.starts_with(*mark))
        || (left.ends_with('<') && right.starts_with("!--"))
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '\\' | '\u{200c}' | '\u{200d}')
}

/// Only the line ends of the text.
pub(crate) fn line_ends(text: &str) -> String {
    let mut ends = String::new();
    // Most texts have none, and bytes are faster to scan than characters.
    if !text.bytes().any(|byte| matches!(byte, b'\n' | b'\r' | 0xE2)) {
        return ends;
    }
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.next_if_eq(&'\n').is_some() => ends.push_str("\r\n"),
            // A lone CR could merge with a following LF.
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => ends.push('\n'),
            _ => {}
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_apply_in_the_order_of_the_text() {
        let mut edits = Edits::default();
        edits.replace(4..5, "B");
        edits.insert(0, "<");
        edits.insert(0, "<");
        edits.remove("a\nb c", 1..2);
        assert_eq!(edits.apply("a\nb c"), "<<a\nb B");
    }

    #[test]
    fn wraps_nest_however_they_were_added() {
        let mut edits = Edits::default();
        edits.wrap(0..1, "(", ")");
        edits.wrap(0..3, "[", "]");
        edits.wrap(2..3, "<", ">");
        edits.wrap(0..3, "{", "}");
        edits.replace(0..1, "A");
        assert_eq!(edits.apply("a+b"), "{[(A)+<b>]}");
    }

    #[test]
    fn removed_line_ends_stay_as_many() {
        assert_eq!(line_ends("a\rb\nc\r\nd\u{2028}"), "\n\n\r\n\n");
        let mut edits = Edits::default();
        edits.remove("a\rb\nc", 2..4);
        assert_eq!(edits.apply("a\rb\nc"), "a\r \nc");
    }

    #[test]
    fn an_edit_inside_a_replaced_piece_is_dropped() {
        let mut edits = Edits::default();
        edits.replace(0..4, "X");
        edits.replace(1..2, "Y");
        assert_eq!(edits.apply("abcdef"), "Xef");
    }
}
