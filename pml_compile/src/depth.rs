//! Guards the recursive parser: an iterative scan that refuses code nested so deeply that parsing, visiting or dropping its
//! tree could overflow the stack. It never under-counts: where a `/` is ambiguous and it matters, it refuses the code.

mod bytes;
mod literals;
mod read_again;
mod words;

use super::error::{CompileError, ErrorKind};
use bytes::{BLANK, WORD, is};
use read_again::Reading;
use words::{Word, classify};

/// More nesting than any hand-written program has; the stack is sized for it.
pub const MAX_DEPTH: usize = 400;
/// Open `<` in one expression: for each the parser tries type arguments, at quadratic cost.
const MAX_ANGLES: usize = 16;
/// A `<T>x` assertion is parsed again by every enclosing one, so it counts as several levels.
const ASSERTION_WEIGHT: usize = 8;

/// The kind of the previous token, which decides what a `/` means and whether a statement can end here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prev {
    Start,
    Operand,
    /// An operand that may also be a modifier or a type operator, so that a line end after it ends no statement.
    Contextual,
    Async,
    Operator,
    Increment,
    Bang,
    Greater,
    Dot,
    Comma,
    Semicolon,
    Colon,
    Question,
    Open,
    CloseParen,
    CloseHead,
    CloseBrace,
    /// `if`, `for`, `while`, `with`: the parenthesis that follows is the head of a statement.
    HeadWord,
    OperatorWord,
    Ambiguous,
}

#[derive(Clone, Copy)]
struct Frame {
    open: u8,
    at: usize,
    is_head: bool,
    statement: usize,
    expression: usize,
    angles: usize,
    reading: Reading,
}

impl Frame {
    fn new(open: u8, at: usize, is_head: bool, times_read: usize) -> Self {
        Self { open, at, is_head, statement: 0, expression: 0, angles: 0, reading: Reading::new(times_read) }
    }

    fn levels(&self) -> usize {
        1 + self.statement + self.expression + self.angles
    }
}

struct Scanner<'a> {
    code: &'a str,
    bytes: &'a [u8],
    at: usize,
    frames: Vec<Frame>,
    frame: Frame,
    /// The levels of all frames but the current one.
    outer_levels: usize,

    deepest: usize,
    prev: Prev,
    before_prev: Prev,
    line_break: bool,
    /// Whether only blanks and comments precede this position on its line.
    line_start: bool,
    /// The bytes scanned ahead to find the ends of possible regular expressions.
    looked_ahead: usize,
}

/// The nesting depth of the code; an error if it exceeds [`MAX_DEPTH`].
pub(crate) fn check_depth(code: &str) -> Result<usize, CompileError> {
    let mut scanner = Scanner {
        code,
        bytes: code.as_bytes(),
        at: 0,
        frames: Vec::with_capacity(16),
        frame: Frame::new(b' ', 0, false, 1),
        outer_levels: 0,
        deepest: 0,
        prev: Prev::Start,
        before_prev: Prev::Start,
        line_break: false,
        line_start: true,
        looked_ahead: 0,
    };
    scanner.run()?;
    Ok(scanner.deepest)
}

impl Scanner<'_> {
    fn run(&mut self) -> Result<(), CompileError> {
        loop {
            while let Some(&byte) = self.bytes.get(self.at)
                && is(byte, BLANK)
            {
                self.at += 1;
            }
            let Some(&byte) = self.bytes.get(self.at) else { break };
            match byte {
                b'a'..=b'z' => {
                    if !self.word() {
                        self.line_break = false;
                        self.line_start = false;
                        continue;
                    }
                }
                b'\n' | b'\r' => {
                    self.line_break = true;
                    self.line_start = true;
                    self.at += 1;
                    continue;
                }
                b'/' if self.peek(1) == Some(b'/') => {
                    self.at = self.end_of_line(self.at);
                    continue;
                }
                b'/' if self.peek(1) == Some(b'*') => {
                    self.block_comment()?;
                    continue;
                }
                0x80.. if self.blank_character() => continue,
                _ => self.token(byte)?,
            }
            self.line_break = false;
            self.line_start = false;
            self.deepest = self.deepest.max(self.outer_levels + self.frame.levels());
            if self.deepest > MAX_DEPTH || self.frame.angles > MAX_ANGLES {
                return Err(self.refuse(
                    self.at,
                    ErrorKind::TooComplex,
                    format!("the code is nested too deeply here (more than {MAX_DEPTH} levels)"),
                    "split it into smaller statements or functions",
                ));
            }
            self.check_read_again()?;
        }
        if self.frames.is_empty() {
            return Ok(());
        }
        let message = format!("expected `{}` before the end of the code", closer(self.frame.open));
        let (line, column) = super::error::line_and_column(self.code, self.frame.at);
        let hint = format!("the `{}` at line {line}, column {column} isn't closed", opener(self.frame.open));
        Err(self.refuse(self.code.len(), ErrorKind::Syntax, message, &hint))
    }

    fn token(&mut self, byte: u8) -> Result<(), CompileError> {
        match byte {
            b'\'' | b'"' => self.string(byte),
            b'`' => {
                self.push(b'`', false);
                self.at += 1;
                self.template()
            }
            b'(' => {
                let is_head = self.prev == Prev::HeadWord;
                self.push(b'(', is_head);
                self.advance(1, Prev::Open);
                Ok(())
            }
            b'[' | b'{' => {
                self.push(byte, false);
                self.advance(1, Prev::Open);
                Ok(())
            }
            b')' | b']' | b'}' => self.close(byte),
            b'/' => self.slash(),
            b'0'..=b'9' => {
                self.number();
                Ok(())
            }
            b'.' if self.peek(1).is_some_and(|b| b.is_ascii_digit()) => {
                self.number();
                Ok(())
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$' | b'#' | b'\\' | b'@' | 0x80.. => {
                self.word();
                Ok(())
            }
            _ => self.punctuation(byte),
        }
    }

    fn punctuation(&mut self, byte: u8) -> Result<(), CompileError> {
        let rest = &self.bytes[self.at..];
        match byte {
            b';' => {
                self.reset();
                self.advance(1, Prev::Semicolon);
            }
            b',' => {
                self.frame.expression = 0;
                self.frame.reading.end_expression();
                self.advance(1, Prev::Comma);
            }
            b':' => {
                self.read_again_behind_colon();
                let in_list = matches!(self.before_prev, Prev::Comma | Prev::Question | Prev::Operator);
                if self.prev == Prev::Operand && !in_list {
                    self.frame.statement += 1;
                } else {
                    self.frame.expression += 1;
                }
                self.advance(1, Prev::Colon);
            }
            b'?' if rest.starts_with(b"?.") && !rest.get(2).is_some_and(u8::is_ascii_digit) => {
                self.operator(2, Prev::Dot);
            }
            b'?' if !rest.starts_with(b"??") => self.operator(1, Prev::Question),
            b'.' if rest.starts_with(b"...") => self.operator(3, Prev::Operator),
            b'.' => self.operator(1, Prev::Dot),
            b'=' if rest.starts_with(b"=>") => {
                self.frame.reading.behind_arrow();
                self.operator(2, Prev::Operator);
            }
            b'<' if rest.starts_with(b"<!--") && !self.bytes[..self.at].ends_with(b"<") => {
                return Err(self.html_comment());
            }
            b'<' => {
                self.read_again_behind_angle();
                if self.is_behind_operand() {
                    self.frame.angles += if rest.starts_with(b"<<") { 2 } else { 1 };
                } else {
                    self.frame.expression += ASSERTION_WEIGHT - 1;
                    self.frame.angles += 1;
                }
                self.operator(1, Prev::Operator);
            }
            b'>' => {
                self.frame.angles = self.frame.angles.saturating_sub(1);
                self.operator(1, Prev::Greater);
            }
            b'-' if rest.starts_with(b"-->") && self.line_start => return Err(self.html_comment()),
            b'+' | b'-' if rest.get(1) == Some(&byte) => self.operator(2, Prev::Increment),
            b'!' if rest.get(1) != Some(&b'=') => self.operator(1, Prev::Bang),
            b'=' | b'!' | b'+' | b'-' | b'*' | b'%' | b'^' | b'~' | b'?' => {
                // None of these can be in type arguments, so an earlier `<` was a comparison; but `-1` is a type.
                if byte != b'-' || self.is_behind_operand() {
                    self.frame.angles = 0;
                }
                self.operator(1, Prev::Operator);
            }
            b'&' | b'|' => {
                let doubled = rest.get(1) == Some(&byte);
                if doubled {
                    self.frame.angles = 0;
                }
                self.operator(if doubled { 2 } else { 1 }, Prev::Operator);
            }
            _ => {
                let message = "unexpected character";
                return Err(self.refuse(
                    self.at,
                    ErrorKind::Syntax,
                    message,
                    "remove it or put it in a string",
                ));
            }
        }
        Ok(())
    }

    fn operator(&mut self, length: usize, kind: Prev) {
        self.frame.expression += 1;
        self.advance(length, kind);
    }

    fn advance(&mut self, length: usize, kind: Prev) {
        self.at += length;
        self.before_prev = self.prev;
        self.prev = kind;
    }

    fn reset(&mut self) {
        self.frame.statement = 0;
        self.frame.expression = 0;
        self.frame.angles = 0;
        self.frame.reading.end_expression();
    }

    fn push(&mut self, open: u8, is_head: bool) {
        let times_read = self.times_read_inside(open);
        self.outer_levels += self.frame.levels();
        let inner = Frame::new(open, self.at, is_head, times_read);
        self.frames.push(std::mem::replace(&mut self.frame, inner));
    }

    /// Leaves the current frame; the enclosing chain got one link longer (`f()()()`).
    fn pop(&mut self) -> Frame {
        let Some(outer) = self.frames.pop() else { return self.frame };
        self.outer_levels -= outer.levels();
        let inner = std::mem::replace(&mut self.frame, outer);
        self.frame.expression += 1;
        inner
    }

    fn close(&mut self, byte: u8) -> Result<(), CompileError> {
        let expected = closer(self.frame.open);
        if self.frames.is_empty() || expected.as_bytes()[0] != byte {
            let (message, hint) = if self.frames.is_empty() {
                (format!("unexpected `{}`", byte as char), "nothing is open here".to_owned())
            } else {
                let (line, column) = super::error::line_and_column(self.code, self.frame.at);
                let opened = opener(self.frame.open);
                (
                    format!("expected `{expected}`, found `{}`", byte as char),
                    format!("the `{opened}` at line {line}, column {column} isn't closed"),
                )
            };
            return Err(self.refuse(self.at, ErrorKind::Syntax, message, &hint));
        }
        let inner = self.pop();
        match inner.open {
            b'$' => {
                self.at += 1;
                self.template()
            }
            b'(' => {
                self.advance(1, if inner.is_head { Prev::CloseHead } else { Prev::CloseParen });
                if inner.is_head {
                    self.frame.statement += 1;
                }
                Ok(())
            }
            b'{' => {
                self.advance(1, Prev::CloseBrace);
                Ok(())
            }
            _ => {
                self.advance(1, Prev::Operand);
                Ok(())
            }
        }
    }

    /// Skips a word; true if it can nest anything.
    fn word(&mut self) -> bool {
        let start = self.at;
        let is_plain = self.skip_word();
        if is_plain && self.prev == Prev::Dot {
            self.advance(0, Prev::Operand);
            return false;
        }
        let word = &self.bytes[start..self.at];
        // No keyword is longer.
        let class = if self.prev == Prev::Dot || word.len() > 10 { Word::Plain } else { classify(word) };
        let continues = matches!(class, Word::Continuation | Word::Infix);
        let ends_before = self.prev == Prev::CloseBrace
            || (self.line_break && matches!(self.prev, Prev::Operand | Prev::CloseParen));
        if ends_before && !continues {
            self.reset();
        }
        if class != Word::Plain {
            self.read_again_behind_word(start);
        }
        let kind = match class {
            Word::Plain => Prev::Operand,
            Word::Contextual => {
                self.frame.expression += 1;
                if word == b"async" { Prev::Async } else { Prev::Contextual }
            }
            Word::Infix | Word::Prefix => {
                self.frame.expression += 1;
                Prev::OperatorWord
            }
            Word::Continuation | Word::Statement => {
                self.frame.statement += 1;
                Prev::OperatorWord
            }
            Word::Clause => {
                self.reset();
                Prev::OperatorWord
            }
            Word::Head => {
                self.frame.statement += 1;
                Prev::HeadWord
            }
            Word::Ambiguous => {
                self.frame.expression += 1;
                Prev::Ambiguous
            }
        };
        self.before_prev = self.prev;
        self.prev = if !is_plain && word.contains(&b'\\') { Prev::Ambiguous } else { kind };
        class != Word::Plain
    }

    /// Skips a word's bytes; true if all are ASCII and none is an escape.
    fn skip_word(&mut self) -> bool {
        let start = self.at;
        let mut is_plain = self.bytes[start] < 0x80 && self.bytes[start] != b'\\';
        self.at += 1;
        loop {
            while let Some(&byte) = self.bytes.get(self.at)
                && is(byte, WORD)
            {
                self.at += 1;
            }
            match self.bytes.get(self.at) {
                Some(b'\\') => is_plain = false,
                Some(0x80..) if !self.is_blank_at(self.at) => is_plain = false,
                _ if is_plain => return true,
                Some(b'{') if self.code[start..self.at].ends_with("\\u") => {}
                Some(b'}') if self.code[start..self.at].contains("\\u{") => {}
                _ => return false,
            }
            self.at += 1;
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn is_line_separator(&self, at: usize) -> bool {
        matches!(self.bytes.get(at..at + 3), Some([0xE2, 0x80, 0xA8 | 0xA9]))
    }

    fn is_blank_at(&self, at: usize) -> bool {
        self.code
            .get(at..)
            .and_then(|rest| rest.chars().next())
            .is_some_and(|c| c.is_whitespace() || c == '\u{feff}')
    }

    /// Skips a non-ASCII blank; false if there is none.
    fn blank_character(&mut self) -> bool {
        if !self.is_blank_at(self.at) {
            return false;
        }
        if self.is_line_separator(self.at) {
            self.line_break = true;
            self.line_start = true;
        }
        self.at += self.code[self.at..].chars().next().map_or(1, char::len_utf8);
        true
    }

    fn html_comment(&self) -> CompileError {
        self.refuse(
            self.at,
            ErrorKind::Syntax,
            "HTML comments aren't allowed",
            "use `//` or put a space between",
        )
    }

    fn refuse(&self, at: usize, kind: ErrorKind, message: impl Into<String>, hint: &str) -> CompileError {
        CompileError::at(self.code, at, kind, message, Some(hint))
    }
}

fn closer(open: u8) -> &'static str {
    match open {
        b'(' => ")",
        b'[' => "]",
        b'`' => "`",
        _ => "}",
    }
}

fn opener(open: u8) -> &'static str {
    match open {
        b'(' => "(",
        b'[' => "[",
        b'`' => "`",
        b'$' => "${",
        _ => "{",
    }
}

#[cfg(test)]
mod tests;
