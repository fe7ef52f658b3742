//! Numbers, strings, templates, regular expressions and comments, whose content doesn't nest.

use super::bytes::{STRING_END, TEMPLATE_END, is};
use super::{Prev, Scanner};
use crate::error::{CompileError, ErrorKind, count_line_ends};

impl Scanner<'_> {
    pub(super) fn number(&mut self) {
        while self.peek(0).is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.') {
            self.at += 1;
        }
        self.advance(0, Prev::Operand);
    }

    /// Advances to the next byte of a class, or to the end.
    fn pass(&mut self, kind: u8) {
        while let Some(&byte) = self.bytes.get(self.at)
            && !is(byte, kind)
        {
            self.at += 1;
        }
    }

    pub(super) fn string(&mut self, quote: u8) -> Result<(), CompileError> {
        let start = self.at;
        self.at += 1;
        loop {
            self.pass(STRING_END);
            match self.bytes.get(self.at) {
                Some(b'\\') => self.at += if self.bytes[self.at..].starts_with(b"\\\r\n") { 3 } else { 2 },
                Some(&byte) if byte == quote => {
                    self.advance(1, Prev::Operand);
                    return Ok(());
                }
                None | Some(b'\n' | b'\r') => {
                    let message = format!("expected `{}` to end this string", quote as char);
                    let hint = "use a template literal for text over several lines";
                    return Err(self.refuse(start, ErrorKind::Syntax, message, hint));
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// Template text, up to its end or to the next `${`.
    pub(super) fn template(&mut self) -> Result<(), CompileError> {
        loop {
            self.pass(TEMPLATE_END);
            match self.bytes.get(self.at) {
                Some(b'\\') => self.at += 2,
                Some(b'`') => {
                    self.pop();
                    self.advance(1, Prev::Operand);
                    return Ok(());
                }
                Some(b'$') if self.peek(1) == Some(b'{') => {
                    self.push(b'$', false);
                    self.advance(2, Prev::Open);
                    return Ok(());
                }
                Some(_) => self.at += 1,
                None => {
                    let message = "expected a backquote to end this template";
                    return Err(self.refuse(
                        self.frame.at,
                        ErrorKind::Syntax,
                        message,
                        "close the template literal",
                    ));
                }
            }
        }
    }

    pub(super) fn slash(&mut self) -> Result<(), CompileError> {
        let is_regex = match self.prev {
            Prev::Operand | Prev::Contextual | Prev::Async | Prev::CloseParen => Some(false),
            Prev::Increment | Prev::Bang => match self.before_prev {
                Prev::Operand | Prev::CloseParen => Some(false),
                Prev::CloseBrace | Prev::Contextual | Prev::Async | Prev::Ambiguous | Prev::Greater => None,
                _ => Some(true),
            },
            Prev::CloseBrace | Prev::Ambiguous | Prev::Greater | Prev::Dot => None,
            Prev::OperatorWord if self.is_behind_possible_name() => Some(false),
            _ => Some(true),
        };
        if is_regex == Some(false) {
            self.frame.angles = 0;
            self.operator(1, Prev::Operator);
            return Ok(());
        }
        match (is_regex, self.regex_end()?) {
            (Some(true), Some(end)) => {
                self.at = end;
                self.advance(0, Prev::Operand);
            }
            (Some(true), None) => {
                let message = "expected `/` to end this regular expression";
                return Err(self.refuse(self.at, ErrorKind::Syntax, message, "close it on the same line"));
            }
            (_, Some(end)) => {
                // Both readings agree if nothing between the slashes opens or closes anything, and the second can divide.
                let inside = &self.code[self.at + 1..end - 1];
                let ends_operand =
                    inside.trim_end().ends_with(|c: char| c.is_alphanumeric() || "_$".contains(c));
                if !ends_operand || inside.contains(['(', ')', '[', ']', '{', '}', '\'', '"', '`', '/', '\\'])
                {
                    return Err(self.ambiguous_slash());
                }
                self.frame.angles = 0;
                self.operator(1, Prev::Operator);
            }
            (_, None) => {
                self.frame.angles = 0;
                self.operator(1, Prev::Operator);
            }
        }
        Ok(())
    }

    /// Words that can be variables, and that no regular expression follows when they aren't.
    fn is_behind_possible_name(&self) -> bool {
        let before = self.code[..self.at].trim_end();
        ["as", "from", "is", "satisfies"].iter().any(|word| {
            before
                .strip_suffix(word)
                .is_some_and(|rest| !rest.ends_with(|c: char| c.is_alphanumeric() || "_$".contains(c)))
        })
    }

    fn ambiguous_slash(&self) -> CompileError {
        let message = "this `/` could be a division or a regular expression";
        let hint = "put the regular expression in parentheses or in a variable of its own";
        self.refuse(self.at, ErrorKind::Unsupported, message, hint)
    }

    /// Where a regular expression starting here would end, after its closing slash.
    fn regex_end(&mut self) -> Result<Option<usize>, CompileError> {
        let end = self.find_regex_end();
        self.looked_ahead += end.unwrap_or_else(|| self.end_of_line(self.at)) - self.at;
        // Scanning ahead to the end of the same line again and again would be quadratic.
        if self.looked_ahead > 16 * self.bytes.len() {
            return Err(self.ambiguous_slash());
        }
        Ok(end)
    }

    fn find_regex_end(&self) -> Option<usize> {
        let mut at = self.at + 1;
        let mut in_class = false;
        loop {
            match *self.bytes.get(at)? {
                b'\n' | b'\r' => return None,
                b'\\' => at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => return Some(at + 1),
                0xE2 if self.is_line_separator(at) => return None,
                _ => {}
            }
            at += 1;
        }
    }

    pub(super) fn block_comment(&mut self) -> Result<(), CompileError> {
        let Some(length) = self.code[self.at + 2..].find("*/") else {
            let message = "expected `*/` to end this comment";
            return Err(self.refuse(self.at, ErrorKind::Syntax, message, "close the comment"));
        };
        let end = self.at + 2 + length + 2;
        if count_line_ends(&self.code[self.at..end]) > 0 {
            self.line_break = true;
            self.line_start = true;
        }
        self.at = end;
        Ok(())
    }

    pub(super) fn end_of_line(&self, from: usize) -> usize {
        let mut at = from;
        while let Some(&byte) = self.bytes.get(at)
            && !matches!(byte, b'\n' | b'\r')
            && !(byte == 0xE2 && self.is_line_separator(at))
        {
            at += 1;
        }
        at
    }
}
