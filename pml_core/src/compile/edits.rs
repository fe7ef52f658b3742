//! Text with pieces replaced: all that the compiler writes is the source with edits, so that what isn't touched stays to the byte.

use std::borrow::Cow;
use std::ops::Range;

/// What comes first where several edits meet: what ends before what starts, the inner end before the outer, the outer
/// start before the inner, and all of them before the replacement of what follows.
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
    pub(crate) fn replace(&mut self, range: Range<usize>, text: impl Into<Cow<'static, str>>) {
        let end = range.end.max(range.start);
        self.list.push(Edit { start: range.start, end, text: text.into(), rank: Rank::Replace });
    }

    pub(crate) fn insert(&mut self, at: usize, text: impl Into<Cow<'static, str>>) {
        self.list.push(Edit { start: at, end: at, text: text.into(), rank: Rank::Insert });
    }

    /// Puts text around a piece, which may have edits of its own inside.
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

    /// Removes a piece but keeps its line ends, so that the lines after it keep their numbers.
    pub(crate) fn remove(&mut self, code: &str, range: Range<usize>) {
        let kept = line_ends(code.get(range.clone()).unwrap_or_default());
        self.replace(range, kept);
    }

    pub(crate) fn append(&mut self, other: &Edits) {
        self.list.extend(other.list.iter().cloned());
    }

    /// The text with all edits; an edit inside one that was applied before it in the text is dropped.
    pub(crate) fn apply(&self, code: &str) -> String {
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

/// Only the line ends of a text.
pub(crate) fn line_ends(text: &str) -> String {
    // Most pieces have none, and bytes are quicker to look at than characters.
    if !text.bytes().any(|byte| matches!(byte, b'\n' | b'\r' | 0xE2)) {
        return String::new();
    }
    text.chars().filter(|c| matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')).collect()
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
    fn an_edit_inside_a_replaced_piece_is_dropped() {
        let mut edits = Edits::default();
        edits.replace(0..4, "X");
        edits.replace(1..2, "Y");
        assert_eq!(edits.apply("abcdef"), "Xef");
    }
}
