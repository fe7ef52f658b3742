//! Invalid literals, words and punctuation that the parser accepts: regular expressions, escapes, duplicate fields.

use oxc_allocator::Allocator;
use oxc_regular_expression::{LiteralParser, Options};
use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::*;
use swc_ecma_parser::unstable::Token;

use super::Checker;
use crate::contains::contains;
use crate::depth::MAX_DEPTH;
use crate::error::{CompileError, ErrorKind, count_line_ends};
use crate::parse::{Parsed, offset, range};
use crate::stack::with_stack_for;
use crate::strip::skip_blanks;
use crate::value::prop_name;

/// What the code contains, to skip checks that can't fail.
pub(super) struct Literals {
    has_prototype: bool,
    has_decimal_escape: bool,
    has_hexadecimal_escape: bool,
    /// Reused for each regular expression.
    allocator: Allocator,
}

/// Keywords, which can't be written with escapes.
const WORDS: &[&str] = &[
    "accessor",
    "arguments",
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "get",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "of",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "set",
    "static",
    "super",
    "switch",
    "target",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "using",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// Names that no variable can have; the parser accepts some in a pattern.
const TARGETS_REFUSED: &[&str] = &[
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// Refuses keywords that are written with escapes (`l\u0065t`): parsers disagree on them.
pub(super) fn check_words(parsed: &Parsed<'_>) -> Result<(), CompileError> {
    if !parsed.marks.has_unicode_escape {
        return Ok(());
    }
    for token in &parsed.tokens {
        let text = parsed.text(token.span);
        if text.contains("\\u") && !text.starts_with(['"', '\'', '`', '/', '#']) {
            let word = unescaped(text);
            if token.token == Token::Ident && !is_name(&word) {
                let message =
                    "an escape in a name must stand for a letter, or for a digit after the first character";
                let hint = Some("write the name without escapes");
                return Err(CompileError::at(
                    parsed.code,
                    offset(token.span.lo),
                    ErrorKind::Syntax,
                    message,
                    hint,
                ));
            }
            if WORDS.contains(&&*word) {
                let message = format!("the keyword `{word}` can't contain an escape");
                let hint = Some("write it as it is, or choose another name");
                return Err(CompileError::at(
                    parsed.code,
                    offset(token.span.lo),
                    ErrorKind::Syntax,
                    message,
                    hint,
                ));
            }
        }
    }
    Ok(())
}

/// A name with its escapes (`\u0061`, `\u{61}`) decoded.
fn unescaped(text: &str) -> String {
    let mut word = String::new();
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once("\\u") {
        word.push_str(before);
        let (digits, after) = match escape.strip_prefix('{') {
            Some(braced) => braced.split_once('}').unwrap_or((braced, "")),
            None => escape.split_at_checked(4).unwrap_or((escape, "")),
        };
        word.extend(u32::from_str_radix(digits, 16).ok().and_then(char::from_u32));
        rest = after;
    }
    word + rest
}

fn is_name(word: &str) -> bool {
    let mut characters = word.chars();
    characters.next().is_some_and(Ident::is_valid_start) && characters.all(Ident::is_valid_continue)
}

impl Literals {
    pub(super) fn of(code: &str) -> Self {
        let bytes = code.as_bytes();
        let escapes = || memchr::memchr_iter(b'\\', bytes).filter_map(|at| bytes.get(at + 1));
        Self {
            has_prototype: contains!(code, "proto"),
            has_decimal_escape: escapes().any(u8::is_ascii_digit),
            has_hexadecimal_escape: escapes().any(|byte| matches!(byte, b'u' | b'x')),
            allocator: Allocator::default(),
        }
    }
}

/// `\8`, `\9`, and `\0` before a digit.
fn has_decimal_escape(text: &str) -> bool {
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' {
            match bytes.next() {
                Some(b'1'..=b'9') => return true,
                Some(b'0') if bytes.peek().is_some_and(u8::is_ascii_digit) => return true,
                _ => {}
            }
        }
    }
    false
}

/// `\u00_61`: the parser takes a separator for a digit.
fn has_separator_in_escape(text: &str) -> bool {
    let mut rest = text.as_bytes();
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let digits = match &rest[at + 1..] {
            [b'u', b'{', digits @ ..] => digits.split(|byte| *byte == b'}').next().unwrap_or_default(),
            [b'u', digits @ ..] => &digits[..digits.len().min(4)],
            [b'x', digits @ ..] => &digits[..digits.len().min(2)],
            _ => &[],
        };
        if digits.contains(&b'_') {
            return true;
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    false
}

impl Checker<'_> {
    fn separator_in_escape(&mut self, span: Span, text: &str) {
        if self.literals.has_hexadecimal_escape && has_separator_in_escape(text) {
            self.refuse(
                span,
                "an escape can't contain `_`",
                "write its hexadecimal digits without separators",
            );
        }
    }

    fn decimal_escape(&mut self, span: Span) {
        let message = "a backslash and a decimal number aren't a valid escape";
        self.refuse(span, message, "write the character itself, or its hexadecimal code as in `\\x38`");
    }

    pub(super) fn string(&mut self, text: &Str) {
        if self.literals.has_decimal_escape && self.code.get(range(text.span)).is_some_and(has_decimal_escape)
        {
            self.decimal_escape(text.span);
        }
        self.separator_in_escape(text.span, self.code.get(range(text.span)).unwrap_or_default());
    }

    pub(super) fn template(&mut self, template: &Tpl) {
        if self.literals.has_decimal_escape {
            let wrong = template.quasis.iter().find(|piece| has_decimal_escape(&piece.raw));
            if let Some(piece) = wrong {
                self.decimal_escape(piece.span);
            }
        }
        template.quasis.iter().for_each(|piece| self.separator_in_escape(piece.span, &piece.raw));
    }

    pub(super) fn regular_expression(&mut self, regex: &Regex) {
        // An upper bound of the nesting. Deeper ones are left to the engine at run time.
        let levels = regex.exp.bytes().filter(|byte| matches!(byte, b'(' | b'[')).count();
        if levels > MAX_DEPTH {
            return;
        }
        let allocator = &mut self.literals.allocator;
        allocator.reset();
        let parser = LiteralParser::new(allocator, &regex.exp, Some(&regex.flags), Options::default());
        if let Err(error) = with_stack_for(levels, || parser.parse().map(drop)) {
            let reason = error.message.trim_start_matches("Invalid regular expression: ");
            let message = format!("invalid regular expression: {reason}");
            self.refuse(regex.span, message, "escape special characters with a backslash");
        }
    }

    /// `__proto__: …` may set the prototype only once.
    pub(super) fn object(&mut self, object: &ObjectLit) {
        for property in &object.props {
            if let PropOrSpread::Prop(property) = property
                && let Prop::Shorthand(name) = &**property
                && name.sym == *"static"
            {
                self.refuse(name.span, "`static` can't be the name of a variable", "choose another name");
            }
        }
        if !self.literals.has_prototype {
            return;
        }
        let sets_prototype = |property: &&PropOrSpread| {
            matches!(property, PropOrSpread::Prop(property)
                if matches!(&**property, Prop::KeyValue(pair)
                    if !pair.key.is_computed() && prop_name(&pair.key).is_some_and(|name| name == *"__proto__")))
        };
        if let Some(second) = object.props.iter().filter(sets_prototype).nth(1) {
            self.refuse(second.span(), "the object has a duplicate `__proto__`", "remove one of the two");
        }
    }

    pub(super) fn shorthand_target(&mut self, name: &Ident) {
        if TARGETS_REFUSED.contains(&name.sym.as_str()) {
            let message = format!("`{}` can't be assigned to", name.sym);
            self.refuse(name.span, message, "choose another name, as in `{ eval: value }`");
        }
    }

    /// `{ async` and the method's name on the next line.
    pub(super) fn async_method(&mut self, method: &MethodProp) {
        if !method.function.is_async {
            return;
        }
        let start = range(method.function.span).start;
        let Some(after) = self.code.get(start..).and_then(|text| text.strip_prefix("async")) else { return };
        let from = self.code.len() - after.len();
        let next = skip_blanks(self.code, from);
        if self.code.get(from..next).is_some_and(|between| count_line_ends(between) > 0) {
            self.refuse(
                method.function.span,
                "a line end isn't allowed after `async`",
                "put the name on the same line",
            );
        }
    }

    /// `(a⏎=> 1)`: the parser checks for the line end only after a type, or outside parentheses.
    pub(super) fn line_before_arrow(&mut self, arrow: &ArrowExpr) {
        if arrow.return_type.is_some() {
            return;
        }
        let from = arrow.params.last().map_or(arrow.span.lo, |last| last.span().hi);
        let between = self.code.get(offset(from)..offset(arrow.body.span().lo)).unwrap_or_default();
        if count_line_ends(between) == 0 {
            return;
        }
        // Comments aside, only parentheses and a comma can precede the arrow.
        let mut at = skip_blanks(self.code, offset(from));
        let mut end_of_parameters = offset(from);
        while self.code.get(at..).is_some_and(|rest| rest.starts_with([',', '(', ')'])) {
            end_of_parameters = at + 1;
            at = skip_blanks(self.code, end_of_parameters);
        }
        let is_arrow = self.code.get(at..).is_some_and(|rest| rest.starts_with("=>"));
        if is_arrow && self.code.get(end_of_parameters..at).is_some_and(|gap| count_line_ends(gap) > 0) {
            let position = BytePos(1 + at as u32);
            self.refuse(
                Span::new(position, position),
                "a line end isn't allowed before `=>`",
                "put it on the line of the parameters",
            );
        }
    }

    /// `for (a; b c)`: the parser accepts a missing second semicolon.
    pub(super) fn semicolon_behind(&mut self, test: &Expr) {
        let next = skip_blanks(self.code, range(test.span()).end);
        if !self.code.get(next..).is_some_and(|rest| rest.starts_with(';')) {
            let position = BytePos(1 + next as u32);
            let span = Span::new(position, position);
            self.refuse(
                span,
                "expected `;` after the condition of the loop",
                "write `for (start; condition; step)`",
            );
        }
    }

    /// `for (let a = b in c;;)`: that `in` would belong to the loop.
    pub(super) fn bare_in(&mut self, variables: &VarDecl) {
        let values = variables.decls.iter().filter_map(|declarator| declarator.init.as_deref());
        if let Some(span) = values.into_iter().find_map(first_bare_in) {
            self.refuse(span, "an `in` needs parentheses here", "put parentheses around it");
        }
    }
}

fn first_bare_in(expr: &Expr) -> Option<Span> {
    match expr {
        Expr::Bin(binary) if binary.op == BinaryOp::In => Some(binary.span),
        Expr::Bin(binary) => first_bare_in(&binary.left).or_else(|| first_bare_in(&binary.right)),
        Expr::Unary(unary) => first_bare_in(&unary.arg),
        Expr::Await(wait) => first_bare_in(&wait.arg),
        Expr::Yield(wait) => wait.arg.as_deref().and_then(first_bare_in),
        Expr::Assign(assign) => first_bare_in(&assign.right),
        Expr::Cond(choice) => first_bare_in(&choice.test).or_else(|| first_bare_in(&choice.alt)),
        Expr::Arrow(arrow) => match &*arrow.body {
            ArrowFunctionBody::Expr(value) => first_bare_in(value),
            ArrowFunctionBody::FunctionBody(_) => None,
        },
        _ => None,
    }
}
