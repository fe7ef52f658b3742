//! Guards the recursive parser: an iterative scan that refuses code nested so deep that parsing, walking or dropping its
//! tree could run out of stack. It never under-counts: where a `/` could be read in two ways that differ, it refuses.

use super::error::{CompileError, ErrorKind};

/// More nesting than any hand-written program has; the stack is sized for it.
pub const MAX_DEPTH: usize = 400;
/// Open `<` in one expression: each makes the parser try type arguments, at a cost that grows with the square.
const MAX_ANGLES: usize = 32;
/// A `<T>x` assertion is re-read by every one around it, so it counts as several levels.
const ASSERTION_WEIGHT: usize = 8;

/// What stood before the current token, as far as it decides what a `/` means and whether a statement can end here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prev {
    Start,
    Operand,
    /// An operand that may also be a modifier or an operator of types, so that a line end after it ends nothing.
    Contextual,
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
}

impl Frame {
    fn new(open: u8, at: usize, is_head: bool) -> Self {
        Self { open, at, is_head, statement: 0, expression: 0, angles: 0 }
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
    /// Whether only blanks and comments stand before this place on its line.
    line_start: bool,
}

/// How deep the code is nested, in any of the forms that count; refuses what is deeper than [`MAX_DEPTH`].
pub(crate) fn check_depth(code: &str) -> Result<usize, CompileError> {
    let mut scanner = Scanner {
        code,
        bytes: code.as_bytes(),
        at: 0,
        frames: Vec::new(),
        frame: Frame::new(b' ', 0, false),
        outer_levels: 0,
        deepest: 0,
        prev: Prev::Start,
        before_prev: Prev::Start,
        line_break: false,
        line_start: true,
    };
    scanner.run()?;
    Ok(scanner.deepest)
}

impl Scanner<'_> {
    fn run(&mut self) -> Result<(), CompileError> {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\n' | b'\r' => {
                    self.line_break = true;
                    self.line_start = true;
                    self.at += 1;
                    continue;
                }
                b' ' | b'\t' | 0x0B | 0x0C => {
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
                0xC2.. | 0x80..=0xBF if self.blank_character() => continue,
                _ => self.token(byte)?,
            }
            self.line_break = false;
            self.line_start = false;
            self.deepest = self.deepest.max(self.outer_levels + self.frame.levels());
            if self.deepest > MAX_DEPTH || self.frame.angles > MAX_ANGLES {
                return Err(self.refuse(
                    self.at,
                    ErrorKind::TooComplex,
                    format!("the code is nested too deep here (more than {MAX_DEPTH} levels)"),
                    "split it into smaller statements or functions",
                ));
            }
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
                self.advance(1, Prev::Comma);
            }
            b':' => {
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
            b'=' if rest.starts_with(b"=>") => self.operator(2, Prev::Operator),
            b'<' if rest.starts_with(b"<!--") => {
                return Err(self.html_comment());
            }
            b'<' => {
                if matches!(self.prev, Prev::Operand | Prev::Contextual | Prev::CloseParen | Prev::Greater) {
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
                // None of these can stand in type arguments, so a `<` before was a comparison.
                self.frame.angles = 0;
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
    }

    fn push(&mut self, open: u8, is_head: bool) {
        self.outer_levels += self.frame.levels();
        let inner = Frame::new(open, self.at, is_head);
        self.frames.push(std::mem::replace(&mut self.frame, inner));
    }

    /// Leaves the current frame; what it was part of got one link longer (`f()()()`).
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

    fn word(&mut self) {
        let start = self.at;
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | b'\\' => {}
                b'{' if self.code[start..self.at].ends_with("\\u") => {}
                b'}' if self.code[start..self.at].contains("\\u{") => {}
                0x80.. if !self.is_blank_at(self.at) => {}
                _ => break,
            }
            self.at += 1;
        }
        let word = &self.code[start..self.at];
        // No word that means something is longer.
        let class = if self.prev == Prev::Dot || word.len() > 10 { Word::Plain } else { classify(word) };
        let continues = matches!(class, Word::Continuation | Word::InfixWord);
        let ends_before = self.prev == Prev::CloseBrace
            || (self.line_break && matches!(self.prev, Prev::Operand | Prev::CloseParen));
        if ends_before && !continues {
            self.reset();
        }
        let kind = match class {
            Word::Plain => Prev::Operand,
            Word::Contextual => {
                self.frame.expression += 1;
                Prev::Contextual
            }
            Word::InfixWord | Word::PrefixWord => {
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
        self.prev = if word.as_bytes().contains(&b'\\') { Prev::Ambiguous } else { kind };
    }

    fn number(&mut self) {
        while self.peek(0).is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.') {
            self.at += 1;
        }
        self.advance(0, Prev::Operand);
    }

    fn string(&mut self, quote: u8) -> Result<(), CompileError> {
        let start = self.at;
        self.at += 1;
        loop {
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
    fn template(&mut self) -> Result<(), CompileError> {
        loop {
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

    fn slash(&mut self) -> Result<(), CompileError> {
        let is_regex = match self.prev {
            Prev::Operand | Prev::Contextual | Prev::CloseParen => Some(false),
            Prev::Increment | Prev::Bang => match self.before_prev {
                Prev::Operand | Prev::CloseParen => Some(false),
                Prev::CloseBrace | Prev::Contextual | Prev::Ambiguous | Prev::Greater => None,
                _ => Some(true),
            },
            Prev::CloseBrace | Prev::Ambiguous | Prev::Greater | Prev::Dot => None,
            _ => Some(true),
        };
        let end = self.regex_end();
        match (is_regex, end) {
            (Some(true), Some(end)) => {
                self.at = end;
                self.advance(0, Prev::Operand);
            }
            (Some(true), None) => {
                let message = "expected `/` to end this regular expression";
                return Err(self.refuse(self.at, ErrorKind::Syntax, message, "close it on the same line"));
            }
            (None, Some(end)) => {
                // Both readings agree as long as nothing between the slashes opens or closes anything.
                let inside = &self.code[self.at + 1..end - 1];
                if inside.contains(['(', ')', '[', ']', '{', '}', '\'', '"', '`', '/', '\\']) {
                    let message = "this `/` could be a division or a regular expression";
                    let hint = "put the regular expression in parentheses or in a variable of its own";
                    return Err(self.refuse(self.at, ErrorKind::Unsupported, message, hint));
                }
                self.frame.angles = 0;
                self.operator(1, Prev::Operator);
            }
            (Some(false), _) | (None, None) => {
                self.frame.angles = 0;
                self.operator(1, Prev::Operator);
            }
        }
        Ok(())
    }

    /// Where a regular expression starting here would end, behind its closing slash.
    fn regex_end(&self) -> Option<usize> {
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

    fn block_comment(&mut self) -> Result<(), CompileError> {
        let Some(length) = self.code[self.at + 2..].find("*/") else {
            let message = "expected `*/` to end this comment";
            return Err(self.refuse(self.at, ErrorKind::Syntax, message, "close the comment"));
        };
        let end = self.at + 2 + length + 2;
        if super::error::count_line_ends(&self.code[self.at..end]) > 0 {
            self.line_break = true;
            self.line_start = true;
        }
        self.at = end;
        Ok(())
    }

    fn end_of_line(&self, from: usize) -> usize {
        let is_end = |(at, &byte): (usize, &u8)| {
            matches!(byte, b'\n' | b'\r') || (byte == 0xE2 && self.is_line_separator(from + at))
        };
        let rest = &self.bytes[from..];
        rest.iter().enumerate().position(is_end).map_or(self.bytes.len(), |length| from + length)
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

    /// Passes a blank character outside ASCII; false if something else stands here.
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

enum Word {
    Plain,
    Contextual,
    PrefixWord,
    InfixWord,
    /// Goes on with the statement before it.
    Continuation,
    Statement,
    Clause,
    Head,
    Ambiguous,
}

fn classify(word: &str) -> Word {
    match word {
        "if" | "for" | "while" | "with" => Word::Head,
        "else" | "catch" | "finally" | "implements" | "from" => Word::Continuation,
        "do" | "try" | "switch" | "function" | "class" | "return" | "throw" | "var" | "const" | "enum" => {
            Word::Statement
        }
        "case" | "default" => Word::Clause,
        "typeof" | "void" | "delete" | "new" | "await" => Word::PrefixWord,
        "in" | "instanceof" | "as" | "satisfies" | "is" | "extends" => Word::InfixWord,
        "yield" | "let" | "static" | "of" => Word::Ambiguous,
        "keyof" | "readonly" | "unique" | "infer" | "asserts" | "abstract" | "declare" | "async" | "get"
        | "set" | "type" | "interface" | "namespace" | "module" | "accessor" | "override" | "public"
        | "private" | "protected" | "global" | "out" | "using" => Word::Contextual,
        _ => Word::Plain,
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
mod tests {
    use super::*;

    fn refused(code: &str) -> CompileError {
        check_depth(code).expect_err("should be refused")
    }

    #[test]
    fn every_way_of_nesting_is_counted() {
        let n = 100_000;
        for (open, middle, close) in [
            ("(", "a", ")"),
            ("[", "a", "]"),
            ("{", "a", "}"),
            ("`${", "a", "}`"),
            ("f(", "a", ")"),
            ("({a:", "1", "})"),
            ("!", "a", ""),
            ("-", "a", ""),
            ("typeof ", "a", ""),
            ("await ", "a", ""),
            ("new ", "a", ""),
            ("a+", "a", ""),
            ("a**", "a", ""),
            ("a=", "a", ""),
            ("a?b:", "c", ""),
            ("", "a", ".b"),
            ("", "a", "()"),
            ("", "a", "[0]"),
            ("", "a", "!"),
            ("", "a", " as A"),
            ("a=>", "a", ""),
            ("(a)=>", "a", ""),
            ("if(a)", "a", ""),
            ("!\n", "a", ""),
            ("if(a){}else ", "a", ""),
            ("a:", "a", ""),
            ("for(;;)", "a", ""),
            ("do ", "a", ""),
            ("a<", "a", ""),
            ("<T>", "a", ""),
            ("type X=keyof\n", "A", ""),
            ("type X=A<", "A", ">"),
            ("type X=A<B,", "A", ">"),
            ("type X=()=>", "A", ""),
            ("if(a)\n", "a", ""),
            ("else\n", "a", ""),
            ("a:b,(function(){", "a", "})"),
            ("a\n?b\n:", "c", ""),
            ("", "a", "\n.b"),
            ("A extends B ? C : ", "A", ""),
            ("while(a)\n", "a", ""),
            ("", "a", "\n()"),
            ("await\n", "a", ""),
            ("", "a", "`b`"),
        ] {
            let code = format!("{}{middle}{}", open.repeat(n), close.repeat(n));
            assert_eq!(refused(&code).kind, ErrorKind::TooComplex, "{open}…{close}");
        }
    }

    #[test]
    fn long_flat_code_is_not_deep() {
        let n = 3_000;
        for line in [
            "const a = b.c(d)[0] + 1;\n",
            "const a = b.c(d)[0] + 1\n",
            "foo()\n",
            "if (a) { b() }\n",
            "if(a){b()}",
            "x = {}\n",
            "function f() { return 1 }\n",
            "let s = `a${b}c`\n",
            "type A = { a: string\n b: number }\n",
            "if (a) b()\nelse c()\n",
            "switch (a) { case 1: b(); break\n default: c() }\n",
            "class A { b = 1\n c() {} }\n",
            "a < b && c < d\n",
            "x = y as T\n",
            "const f = async (a: string): Promise<Map<string, number>> => { return await g<string>(a) }\n",
        ] {
            assert!(check_depth(&line.repeat(n)).is_ok(), "{line}");
        }
        let object = format!("x = {{ {} }}", "a: b.c + 1, 'd': [e],\n".repeat(n));
        assert!(check_depth(&object).is_ok());
        let cases = format!("switch (a) {{ {} }}", "case 'b': return c + d\n".repeat(n));
        assert!(check_depth(&cases).is_ok());
    }

    #[test]
    fn brackets_in_text_do_not_count() {
        for code in [
            "'(((' + \"[[[\" + `{{{`",
            "// (((\n1",
            "/* ((( */ 1",
            "/[(/]\\//.test(a)",
            "x = a / b / c",
            "if (a) /(/.test(b)",
            "(a) / (b) / (c)",
            "a++ / (b) / c",
            "f(/\\(/g, '')",
            "return /[)]/",
            "x.return / (2) / y",
            "`${`${a}`}` / 2",
            "a! / (b) / c",
            "!/(/.test(a)",
            "b ? /(/ : /)/",
        ] {
            assert!(check_depth(code).is_ok(), "{code}");
        }
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused() {
        assert!(refused("if (a) {}\n/(/.test(b)").message.contains("division or a regular expression"));
        assert!(check_depth("if (a) {}\n/x/.test(b)").is_ok());
        assert!(refused("a <!-- (\n)").message.contains("HTML"));
        assert!(check_depth("while (n --> 0) {}").is_ok());
    }

    #[test]
    fn what_is_left_open_is_named_with_its_place() {
        let error = refused("const a = [\n  (1, 2]\n");
        assert_eq!((error.line, error.column), (2, 8));
        assert_eq!(error.message, "expected `)`, found `]`");
        assert_eq!(error.hint.as_deref(), Some("the `(` at line 2, column 3 isn't closed"));
        assert_eq!(refused("f(").message, "expected `)` before the end of the code");
        assert_eq!(refused("x = 'a\nb'").message, "expected `'` to end this string");
        assert_eq!(refused("}").message, "unexpected `}`");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_scanned_to_an_answer(code in ".{0,200}") {
            let _ = check_depth(&code);
        }

        #[test]
        fn any_soup_of_tokens_is_scanned_to_an_answer(
            parts in proptest::collection::vec(proptest::sample::select(vec![
                "(", ")", "{", "}", "[", "]", "`", "${", "/", "\\", "'", "\"", "*", "<", ">", "\n", "a", "if", "\\u{61}", "é", "1.", "?.", "=>",
            ]), 0..60)
        ) {
            let _ = check_depth(&parts.concat());
        }
    }
}
