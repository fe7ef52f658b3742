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
        // Behind a lone CR, an LF would be the end of the same line.
        let before = code.get(..range.start).unwrap_or_default();
        let follows_cr = kept.starts_with('\n') && before.ends_with('\r');
        // Other marks before may go as well, and blanks between them.
        let left = before.trim_end_matches(|c: char| c == '!' || c.is_whitespace());
        let joins = kept.is_empty() && become_one(left, code.get(range.end..).unwrap_or_default());
        self.replace(range, if follows_cr || joins { format!(" {kept}") } else { kept });
    }

    pub(crate) fn append(&mut self, mut other: Edits) {
        self.list.append(&mut other.list);
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

/// Whether the end of one text and the start of the next would be read as one thing: two words, `1.` with a letter behind,
/// `--`, the start of a comment.
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

/// As many line ends as the text has, and nothing else.
pub(crate) fn line_ends(text: &str) -> String {
    let mut ends = String::new();
    // Most pieces have none, and bytes are quicker to look at than characters.
    if !text.bytes().any(|byte| matches!(byte, b'\n' | b'\r' | 0xE2)) {
        return ends;
    }
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.next_if_eq(&'\n').is_some() => ends.push_str("\r\n"),
            // A lone CR could meet an LF and be one line end with it.
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
