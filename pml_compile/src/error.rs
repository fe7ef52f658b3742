//! Compile errors: where, what is wrong, and what to do instead.

use std::fmt;

/// Why code was refused; callers map each to their own error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// It isn't TypeScript or JavaScript.
    Syntax,
    /// It is valid, but can't run in the sandbox (imports, namespaces, …).
    Unsupported,
    /// It is larger or nested deeper than the compiler takes.
    TooComplex,
    /// The caller interrupted the compile; nothing is wrong with the code.
    Interrupted,
}

/// An error with its position in the source (lines and columns start at 1, columns count characters).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CompileError {
    pub kind: ErrorKind,
    pub line: usize,
    pub column: usize,
    pub message: String,
    pub hint: Option<String>,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Invalid code at line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl CompileError {
    /// What to do about it.
    pub fn hint(&self) -> &str {
        self.hint.as_deref().unwrap_or(
            "Code is the body of an async function in TypeScript or JavaScript, with args, mcp and capabilities in scope.",
        )
    }

    pub(crate) fn at(
        code: &str,
        offset: usize,
        kind: ErrorKind,
        message: impl Into<String>,
        hint: Option<&str>,
    ) -> Self {
        let (line, column) = line_and_column(code, offset);
        Self { kind, line, column, message: message.into(), hint: hint.map(str::to_owned) }
    }
}

/// The line and column of a byte offset; JavaScript ends lines at LF, CR, CRLF, U+2028 and U+2029.
pub fn line_and_column(code: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(code.len());
    while !code.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &code[..offset];
    let line = 1 + count_line_ends(before);
    let start = before
        .rfind(['\n', '\r', '\u{2028}', '\u{2029}'])
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    (line, 1 + before[start..].trim_start_matches('\u{feff}').chars().count())
}

/// Computes lines and columns incrementally, from the nearest position that is already known.
pub(crate) struct Places<'a> {
    code: &'a str,
    /// Offset, line and column, sorted by offset.
    known: Vec<(usize, usize, usize)>,
}

impl<'a> Places<'a> {
    pub(crate) fn of(code: &'a str) -> Self {
        let mut known = Vec::with_capacity(32);
        known.push((0, 1, 1));
        Self { code, known }
    }

    pub(crate) fn at(&mut self, offset: usize) -> (usize, usize) {
        if !self.code.is_char_boundary(offset) {
            return line_and_column(self.code, offset);
        }
        // Mostly the last one, as the code is visited in order.
        let after = match self.known.last() {
            Some(last) if last.0 <= offset => self.known.len(),
            _ => self.known.partition_point(|known| known.0 <= offset),
        };
        let (from, mut line, mut column) = self.known[after - 1];
        self.advance(from, offset, &mut line, &mut column);
        if from != offset {
            self.known.insert(after, (offset, line, column));
        }
        (line, column)
    }

    fn advance(&self, from: usize, to: usize, line: &mut usize, column: &mut usize) {
        let bytes = &self.code.as_bytes()[..to];
        let between = &bytes[from..];
        if between.is_ascii() && memchr::memchr(b'\r', between).is_none() {
            match memchr::memrchr(b'\n', between) {
                None => *column += between.len(),
                Some(last) => {
                    *line += memchr::memchr_iter(b'\n', between).count();
                    *column = between.len() - last;
                }
            }
            return;
        }
        let mut at = from;
        while at < to {
            let byte = bytes[at];
            at += 1;
            match byte {
                b'\r' if bytes.get(at) == Some(&b'\n') => {}
                b'\n' | b'\r' => (*line, *column) = (*line + 1, 1),
                0xE2 if matches!(bytes.get(at..at + 2), Some([0x80, 0xA8 | 0xA9])) => {
                    at += 2;
                    (*line, *column) = (*line + 1, 1);
                }
                // A byte order mark isn't a column, and a character is one column however many bytes it has.
                0xEF if at == 1 && matches!(bytes.get(1..3), Some([0xBB, 0xBF])) => at += 2,
                0x80..=0xBF => {}
                _ => *column += 1,
            }
        }
    }
}

/// The number of line ends in the text; CRLF counts once.
pub(crate) fn count_line_ends(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut count = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        count += match byte {
            b'\n' => 1,
            b'\r' if bytes.get(i + 1) != Some(&b'\n') => 1,
            0xE2 if matches!(bytes.get(i..i + 3), Some([_, 0x80, 0xA8 | 0xA9])) => 1,
            _ => 0,
        };
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_and_every_kind_of_line_end() {
        assert_eq!(line_and_column("ab", 1), (1, 2));
        assert_eq!(line_and_column("é=1\nx", 2), (1, 2));
        assert_eq!(line_and_column("a\r\nb\rc\u{2028}d", 9), (4, 1));
        assert_eq!(line_and_column("\u{feff}a", 3), (1, 1));
    }

    #[test]
    fn places_one_after_the_other_are_the_same() {
        let code = "\u{feff}a é\r\nb\n\nc d\u{2028}e";
        let mut places = Places::of(code);
        for (offset, _) in code.char_indices().chain([(3, 'a'), (0, ' ')]).chain(code.char_indices().rev()) {
            // No position is inside a CRLF.
            if !code[offset..].starts_with('\n') {
                assert_eq!(places.at(offset), line_and_column(code, offset), "{offset}");
            }
        }
    }

    #[test]
    fn an_offset_inside_a_character_or_past_the_end_is_still_a_place() {
        assert_eq!(line_and_column("é", 1), (1, 1));
        assert_eq!(line_and_column("a", 99), (1, 2));
    }
}
