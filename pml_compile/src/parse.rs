//! Parsing: text to syntax tree, with the checks that need no analysis (size, depth, modules, reserved names).

use std::cell::Cell;

use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::{
    ArrowExpr, AutoAccessor, CallExpr, Callee, Decl, EsVersion, ExportSpecifier, Expr, Function, Ident,
    ImportSpecifier, MetaPropExpr, MetaPropKind, Module, ModuleDecl, ModuleItem, PrivateName, ReturnStmt,
    StaticBlock, Stmt, WithStmt,
};
use swc_ecma_parser::error::{Error, SyntaxError};
use swc_ecma_parser::unstable::{Capturing, Token, TokenAndSpan};
use swc_ecma_parser::{EsSyntax, Lexer, Parser, StringInput, Syntax, TsSyntax};
use swc_ecma_visit::{Visit, VisitWith};

use super::blame::blame;
use super::contains::contains;
use super::depth::check_depth;
use super::error::{CompileError, ErrorKind};
use super::interrupt;
use super::stack::with_stack_for;

/// Longer code is refused at once. At this size the worst input found takes well below a second to compile.
pub const MAX_CODE_BYTES: usize = 256 * 1024;

const NO_MODULES: &str =
    "call tools through `mcp.server.tool(…)` and other capabilities through `capabilities.name(…)`";

/// Parsed code. Module declarations other than type-only ones were refused.
pub(crate) struct Parsed<'a> {
    pub(crate) code: &'a str,
    pub(crate) items: Vec<ModuleItem>,
    pub(crate) tokens: Vec<TokenAndSpan>,
    pub(crate) marks: Marks,
    levels: usize,
}

/// What the tokens and the text contain, found in one pass: most checks and visits are for what most code doesn't have.
#[derive(Default)]
pub(crate) struct Marks {
    /// A `\u`, which could spell any name.
    pub(crate) has_unicode_escape: bool,
    pub(crate) has_var: bool,
    pub(crate) has_this: bool,
    /// A token that makes [`Refusals`] necessary.
    may_be_refused: bool,
    old_octal: Option<Span>,
    decorator: Option<Span>,
}

impl Marks {
    fn of(code: &str, tokens: &[TokenAndSpan]) -> Self {
        let bytes = code.as_bytes();
        let is_unicode = |at: usize| bytes.get(at + 1) == Some(&b'u');
        let mut marks =
            Self { has_unicode_escape: memchr::memchr_iter(b'\\', bytes).any(is_unicode), ..Self::default() };
        for token in tokens {
            match token.token {
                Token::Var => marks.has_var = true,
                Token::This => marks.has_this = true,
                Token::Num if is_old_octal(bytes, token.span) => {
                    marks.old_octal = marks.old_octal.or(Some(token.span));
                }
                Token::At => {
                    marks.may_be_refused = true;
                    marks.decorator = marks.decorator.or(Some(token.span));
                }
                Token::Import
                | Token::Export
                | Token::With
                | Token::Static
                | Token::Require
                | Token::Accessor => marks.may_be_refused = true,
                _ => {}
            }
        }
        marks
    }
}

/// `017`: the parser loses this error where it backtracked.
fn is_old_octal(code: &[u8], number: Span) -> bool {
    matches!(code.get(range(number)), Some([b'0', b'0'..=b'9' | b'_', ..]))
}

/// The byte offset of a position in the code.
pub(crate) fn offset(position: BytePos) -> usize {
    (position.0 as usize).saturating_sub(1)
}

pub(crate) fn range(span: Span) -> std::ops::Range<usize> {
    offset(span.lo)..offset(span.hi)
}

thread_local! {
    static PARSES: Cell<u64> = const { Cell::new(0) };
}

/// How often this thread has parsed code.
pub fn parses() -> u64 {
    PARSES.get()
}

impl<'a> Parsed<'a> {
    /// Parses code as the body of an async function in strict mode.
    pub(crate) fn of(code: &'a str) -> Result<Self, CompileError> {
        if code.len() > MAX_CODE_BYTES {
            return Err(CompileError {
                kind: ErrorKind::TooComplex,
                line: 1,
                column: 1,
                message: format!("the code has {} bytes, more than the {MAX_CODE_BYTES} allowed", code.len()),
                hint: Some("split it into several capabilities, and pass data as arguments".to_owned()),
            });
        }
        if let Some(at) = memchr::memchr(0, code.as_bytes()) {
            let message = "the code has the character U+0000, which Postgres can't store";
            return Err(CompileError::at(
                code,
                at,
                ErrorKind::Unsupported,
                message,
                Some("write it as `\\0`"),
            ));
        }
        interrupt::check()?;
        PARSES.set(PARSES.get() + 1);
        let levels = check_depth(code)?;
        interrupt::check()?;
        let (module, tokens) = with_stack_for(levels, || {
            let parse = |code: &str| without_panics(code, |code| parse_module(code, typescript()));
            let parse_again = |code: &str| interrupt::check().and_then(|()| parse(code).map(drop));
            parse(code).map_err(|error| blame(code, error, parse_again))
        })?;
        let marks = Marks::of(code, &tokens);
        let parsed = Parsed { code, items: module.body, tokens, marks, levels };
        parsed.with_stack(|| refuse_unsupported(&parsed))?;
        interrupt::check()?;
        Ok(parsed)
    }

    /// Runs `work`, which visits the tree, on a large enough stack.
    pub(crate) fn with_stack<T>(&self, work: impl FnOnce() -> T) -> T {
        with_stack_for(self.levels, work)
    }

    pub(crate) fn text(&self, span: Span) -> &'a str {
        self.code.get(range(span)).unwrap_or_default()
    }

    pub(crate) fn statements(&self) -> impl Iterator<Item = &Stmt> {
        self.items.iter().filter_map(|item| match item {
            ModuleItem::Stmt(statement) => Some(statement),
            _ => None,
        })
    }
}

impl Drop for Parsed<'_> {
    fn drop(&mut self) {
        // Dropping a tree is recursive too.
        let items = std::mem::take(&mut self.items);
        with_stack_for(self.levels, || drop(items));
    }
}

/// Turns a panic of the parser, whose `unreachable!`s some broken input reaches, into a syntax error.
fn without_panics<T>(
    code: &str,
    parse: impl FnOnce(&str) -> Result<T, CompileError>,
) -> Result<T, CompileError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| parse(code))).unwrap_or_else(|_| {
        let message = "the code can't be parsed, and the position of the error is unknown";
        let hint = Some("look for a broken escape in a string or template");
        Err(CompileError::at(code, 0, ErrorKind::Syntax, message, hint))
    })
}

/// Parses the executable as JavaScript: without types the parser doesn't backtrack, so no error is lost. Lines are the same
/// as in the code, columns aren't.
pub(crate) fn check_again(code: &str, executable: &str) -> Result<(), CompileError> {
    // Probes add nesting, so the limit doesn't apply: the code has passed it.
    let Ok(levels) = check_depth(executable) else { return Ok(()) };
    let syntax = Syntax::Es(EsSyntax { allow_return_outside_function: true, ..EsSyntax::default() });
    let parse = |executable: &str| parse_module(executable, syntax).map(drop);
    with_stack_for(levels, || without_panics(executable, parse)).map_err(|error| {
        let lines = code.replace("\r\n", "\n");
        let line = lines.split(['\n', '\r', '\u{2028}', '\u{2029}']).nth(error.line - 1).unwrap_or_default();
        CompileError { column: 1 + line.chars().take_while(|c| c.is_whitespace()).count(), ..error }
    })
}

fn typescript() -> Syntax {
    Syntax::Typescript(TsSyntax { decorators: true, ..TsSyntax::default() })
}

fn parse_module(code: &str, syntax: Syntax) -> Result<(Module, Vec<TokenAndSpan>), CompileError> {
    if code.trim_start_matches('\u{feff}').starts_with("#!") {
        let hint = Some("remove the first line");
        return Err(CompileError::at(
            code,
            0,
            ErrorKind::Unsupported,
            "a `#!` line isn't allowed in a capability",
            hint,
        ));
    }
    let end = BytePos(1 + code.len() as u32);
    let lexer = Lexer::new(syntax, EsVersion::latest(), StringInput::new(code, BytePos(1), end), None);
    // About one token per four bytes.
    let mut parser = Parser::new_from(Capturing::with_capacity(lexer, code.len() / 4));
    let module = parser.parse_module();
    let tokens = parser.input_mut().iter_mut().take();
    // The code is a function's body, so a `return` outside of functions is fine; in static blocks it's checked later.
    let recovered =
        parser.take_errors().into_iter().find(|error| !matches!(error.kind(), SyntaxError::ReturnNotAllowed));
    match (module, recovered) {
        (Ok(module), None) => Ok((module, tokens)),
        // The parser reads a final `module` as a declaration, unless a line end follows.
        (Err(fatal), _) if matches!(fatal.kind(), SyntaxError::Eof) && !code.ends_with('\n') => {
            parse_module(&[code, "\n"].concat(), syntax)
        }
        (Ok(_), Some(error)) | (Err(error), None) => Err(syntax_error(code, &error)),
        (Err(fatal), Some(first)) => {
            let earliest = if first.span().lo < fatal.span().lo { first } else { fatal };
            Err(syntax_error(code, &earliest))
        }
    }
}

fn syntax_error(code: &str, error: &Error) -> CompileError {
    let message = error.kind().msg();
    let message = match error.kind() {
        SyntaxError::TS1109 | SyntaxError::Eof => format!("expected an expression ({message})"),
        SyntaxError::ExpectedIdent if code[offset(error.span().lo)..].starts_with("await") => {
            "`await` isn't allowed in a class's fields and static blocks".to_owned()
        }
        _ => lower_first(&message),
    };
    let hint = match error.kind() {
        SyntaxError::ImportExportInScript | SyntaxError::NonTopLevelImportExport => Some(NO_MODULES),
        // At the top level, the parser reads an `await` before a line end as a name.
        SyntaxError::InvalidIdentInAsync => Some("put the awaited expression on the same line as `await`"),
        _ => None,
    };
    CompileError::at(code, offset(error.span().lo), ErrorKind::Syntax, message, hint)
}

fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    match chars.next() {
        // `TS1005`-like codes and names keep their capitals.
        Some(first) if !chars.as_str().starts_with(char::is_uppercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => message.to_owned(),
    }
}

fn refuse_unsupported(parsed: &Parsed<'_>) -> Result<(), CompileError> {
    let marks = &parsed.marks;
    if let Some(number) = marks.old_octal {
        let message = "a decimal number can't start with 0";
        let hint = Some("write octal numbers as `0o17`, and decimal ones without the 0");
        let at = offset(number.lo);
        return Err(CompileError::at(parsed.code, at, ErrorKind::Syntax, message, hint));
    }
    if !marks.may_be_refused && !marks.has_unicode_escape && !contains!(parsed.code, "__pml") {
        return Ok(());
    }
    let mut visitor = Refusals { code: parsed.code, first: None, in_static_block: false };
    // By its token: the parser drops decorators where they aren't allowed.
    if let Some(sign) = marks.decorator {
        visitor.refuse(sign, "decorators aren't supported", "call the function on the class or method");
    }
    for item in &parsed.items {
        match item {
            ModuleItem::ModuleDecl(declaration) if is_type_only(declaration) => {}
            ModuleItem::ModuleDecl(ModuleDecl::Import(import)) => {
                visitor.refuse(import.span, "`import` isn't available in a capability", NO_MODULES);
            }
            ModuleItem::ModuleDecl(other) => {
                let hint = "end the code with `return` to return a value";
                visitor.refuse(
                    other.span(),
                    "`export` and `import =` aren't available in a capability",
                    hint,
                );
            }
            ModuleItem::Stmt(statement) => statement.visit_with(&mut visitor),
        }
    }
    visitor.first.map_or(Ok(()), Err)
}

/// Whether an `import` or `export` is type-only.
fn is_type_only(declaration: &ModuleDecl) -> bool {
    match declaration {
        ModuleDecl::Import(import) => {
            let is_type = |specifier: &ImportSpecifier| matches!(specifier, ImportSpecifier::Named(named) if named.is_type_only);
            import.type_only || (!import.specifiers.is_empty() && import.specifiers.iter().all(is_type))
        }
        ModuleDecl::ExportDecl(export) => match &export.decl {
            Decl::TsInterface(_) | Decl::TsTypeAlias(_) => true,
            Decl::Fn(function) => function.declare,
            Decl::Class(class) => class.declare,
            Decl::Var(variable) => variable.declare,
            Decl::TsEnum(declaration) => declaration.declare,
            Decl::TsModule(module) => module.declare,
            Decl::Using(_) => false,
        },
        ModuleDecl::ExportNamed(export) => {
            let is_type = |specifier: &ExportSpecifier| matches!(specifier, ExportSpecifier::Named(named) if named.is_type_only);
            export.type_only || (!export.specifiers.is_empty() && export.specifiers.iter().all(is_type))
        }
        ModuleDecl::ExportAll(export) => export.type_only,
        ModuleDecl::TsImportEquals(import) => import.is_type_only,
        _ => false,
    }
}

struct Refusals<'a> {
    code: &'a str,
    first: Option<CompileError>,
    in_static_block: bool,
}

impl Refusals<'_> {
    fn refuse(&mut self, span: Span, message: &str, hint: &str) {
        if self.first.is_none() {
            let at = offset(span.lo);
            self.first = Some(CompileError::at(self.code, at, ErrorKind::Unsupported, message, Some(hint)));
        }
    }

    fn reserved(&mut self, name: &str, span: Span) {
        if name.starts_with("__pml") {
            let hint = "choose one that doesn't start with `__pml`";
            self.refuse(span, &format!("the name `{name}` is reserved"), hint);
        }
    }

    fn outside_static_block(&mut self, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.in_static_block, false);
        visit(self);
        self.in_static_block = outer;
    }
}

impl Visit for Refusals<'_> {
    fn visit_call_expr(&mut self, call: &CallExpr) {
        match &call.callee {
            Callee::Import(import) => {
                self.refuse(import.span, "dynamic `import()` isn't available in a capability", NO_MODULES);
            }
            Callee::Expr(callee) if matches!(&**callee, Expr::Ident(name) if name.sym == *"require") => {
                self.refuse(call.span, "`require` isn't available in a capability", NO_MODULES);
            }
            _ => {}
        }
        call.visit_children_with(self);
    }

    fn visit_meta_prop_expr(&mut self, property: &MetaPropExpr) {
        if property.kind == MetaPropKind::ImportMeta {
            self.refuse(property.span, "`import.meta` isn't available in a capability", NO_MODULES);
        }
    }

    fn visit_ident(&mut self, name: &Ident) {
        self.reserved(&name.sym, name.span);
    }

    fn visit_private_name(&mut self, name: &PrivateName) {
        self.reserved(&name.name, name.span);
    }

    fn visit_auto_accessor(&mut self, accessor: &AutoAccessor) {
        let hint = "write a field, or a getter and a setter";
        self.refuse(accessor.span, "`accessor` fields aren't supported", hint);
    }

    fn visit_with_stmt(&mut self, statement: &WithStmt) {
        self.refuse(statement.span, "`with` isn't allowed in strict mode", "name the object in each use");
    }

    fn visit_static_block(&mut self, block: &StaticBlock) {
        let outer = std::mem::replace(&mut self.in_static_block, true);
        block.visit_children_with(self);
        self.in_static_block = outer;
    }

    fn visit_return_stmt(&mut self, statement: &ReturnStmt) {
        if self.in_static_block {
            self.refuse(statement.span, "`return` isn't allowed in a static block", "move it into a method");
        }
        statement.visit_children_with(self);
    }

    fn visit_function(&mut self, function: &Function) {
        self.outside_static_block(|visitor| function.visit_children_with(visitor));
    }

    fn visit_arrow_expr(&mut self, arrow: &ArrowExpr) {
        self.outside_static_block(|visitor| arrow.visit_children_with(visitor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> CompileError {
        Parsed::of(code).map(drop).expect_err(code)
    }

    #[test]
    fn a_function_body_parses() {
        for code in [
            "return await mcp.fs.read({ path: args.path })",
            "for await (const x of y) { if (x) return x }",
            "\u{feff}const é: string = 'ü';\r\nreturn é",
            "import type { A } from 'a'; const b: A = args; return b",
            "import { type A, type B } from 'a'; export type C = A; export interface D {} export type { A }; return 1",
            "export declare const a: number; export type * from 'a'; import type E = require('e'); return 1",
            "const f = async <T,>(x: T) => x; return f<number>(1)",
            "",
        ] {
            assert!(Parsed::of(code).map(drop).is_ok(), "{code}");
        }
    }

    #[test]
    fn a_syntax_error_has_place_and_expectation() {
        let error = refused("const a = 1;\nconst b = ;");
        assert_eq!((error.kind, error.line, error.column), (ErrorKind::Syntax, 2, 11));
        assert!(error.message.contains("expression"), "{error}");
        let error = refused("if (a { }");
        assert!(error.message.contains("expected `)`"), "{error}");
        let error = refused("let a b = 1");
        assert!(error.message.contains("expected"), "{error}");
    }

    #[test]
    fn an_await_and_its_value_stand_on_one_line() {
        let error = refused("const a = await\n  mcp.a.b()");
        assert_eq!((error.kind, error.line, error.column), (ErrorKind::Syntax, 1, 11), "{error}");
        assert_eq!(error.hint(), "put the awaited expression on the same line as `await`");
        assert!(Parsed::of("const f = async () => await\n  mcp.a.b()").is_ok());
    }

    #[test]
    fn a_class_does_not_wait() {
        for code in
            ["class A { x = await 1 }", "class A { static x = await 1 }", "class A { static { await 1 } }"]
        {
            let error = refused(code);
            assert!(error.message.starts_with("`await` isn't allowed in a class"), "{code}: {error}");
        }
    }

    #[test]
    fn what_cannot_be_stored_is_refused() {
        let error = refused("const a = 1;\nconst b = 'c\0'");
        assert_eq!((error.kind, error.line, error.column), (ErrorKind::Unsupported, 2, 13), "{error}");
    }

    #[test]
    fn old_octal_numbers_are_refused_wherever_they_stand() {
        for (code, line) in [("017", 1), ("a\n<B>c\n<D>\n017", 4), ("x = 08", 1)] {
            let error = refused(code);
            assert_eq!((error.kind, error.line), (ErrorKind::Syntax, line), "{code}: {error}");
        }
        for code in ["0", "0.5", "0n", "0x1F", "0o17", "0b1", "0e1", "x[0]", "10"] {
            assert!(Parsed::of(code).is_ok(), "{code}");
        }
    }

    #[test]
    fn modules_are_refused_with_a_hint() {
        for code in [
            "import fs from 'fs'",
            "export const a = 1",
            "const fs = require('fs')",
            "await import('fs')",
            "import fs = require('fs')",
            "return import.meta.url",
            "export default 1",
            "import { type A, b } from 'c'",
            "import {} from 'c'",
            "import 'c'",
            "export { a }",
            "export * from 'a'",
        ] {
            let error = refused(code);
            assert_eq!(error.kind, ErrorKind::Unsupported, "{code}: {error}");
            assert!(error.hint.is_some(), "{code}");
        }
    }

    #[test]
    fn names_of_the_instrumentation_are_reserved() {
        for code in ["const __pml = 1", "__pml.at('n1', f)()", "function f(__pml) {}", "({ __pml }) => 1"] {
            assert!(refused(code).message.contains("`__pml` is reserved"), "{code}");
        }
        refused("const __pml_class1 = 1");
        refused("class A { #__pml_class1_0 = 1 }");
    }

    #[test]
    fn strict_mode_and_static_blocks_keep_their_rules() {
        assert!(refused("class A { static { return } }").message.contains("static block"));
        assert!(Parsed::of("class A { static { [1].map(x => { return x }) } }").is_ok());
        refused("with (a) { b }");
        refused("const eval = 1");
    }

    #[test]
    fn a_parser_that_gives_up_is_a_syntax_error() {
        let error = without_panics("code", |_| -> Result<(), CompileError> { panic!("unreachable") });
        assert_eq!(error.map_err(|error| error.kind), Err(ErrorKind::Syntax));
    }

    #[test]
    fn large_code_is_refused_at_once() {
        let error = refused(&"a;".repeat(5 * 1024 * 1024));
        assert_eq!(error.kind, ErrorKind::TooComplex);
        assert!(error.message.contains("10485760 bytes"), "{error}");
    }

    #[test]
    fn code_at_the_limit_of_depth_fits_the_stack() {
        for (open, close) in [
            ("(", ")"),
            ("({a:", "})"),
            ("(function(){", "})"),
            ("a?(a)=>(", "):c"),
            ("(class{a=", "})"),
            ("!", ""),
            ("a+", ""),
        ] {
            for levels in (20..crate::depth::MAX_DEPTH).rev() {
                let code = format!("x={}a{}", open.repeat(levels), close.repeat(levels));
                if check_depth(&code).is_ok() {
                    assert!(Parsed::of(&code).is_ok(), "{open} {levels}");
                    break;
                }
            }
        }
    }
}
