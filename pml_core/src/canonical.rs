//! What makes two pieces of code the same: their tokens, whatever the white space, comments and formatting.

use swc_common::{BytePos, Span, input::StringInput};
use swc_ecma_ast::{
    BreakStmt, ClassProp, ContinueStmt, DebuggerStmt, DoWhileStmt, EsVersion, ExprStmt, Module, PrivateProp,
    ReturnStmt, ThrowStmt, TsTypeAliasDecl, VarDecl,
};
use swc_ecma_parser::{
    Parser, Syntax, TsSyntax,
    error::{Error as ParseError, SyntaxError},
    lexer::Lexer,
    unstable::{Capturing, Token, TokenAndSpan},
};
use swc_ecma_visit::{Visit, VisitWith};

use crate::error::{Error, Result};

pub const MAX_CODE: usize = 1 << 20;

/// BLAKE3, in hex, of the code's canonical form.
pub fn code_hash(code: &str) -> Result<String> {
    Ok(hash(&canonical(code)?))
}

/// BLAKE3 of any text, in hex.
pub fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// The code's tokens, one a line, with the semicolons that the parser reads where none is written.
fn canonical(code: &str) -> Result<String> {
    let (module, tokens) = parse(code)?;
    let mut ends = StatementEnds { code, missing: Vec::new() };
    module.visit_with(&mut ends);
    ends.missing.sort_unstable();
    ends.missing.dedup();

    let mut canonical = String::with_capacity(code.len() + tokens.len());
    let mut missing = ends.missing.into_iter().peekable();
    for (index, token) in tokens.iter().enumerate() {
        while missing.next_if(|end| *end <= token.span.lo).is_some() {
            canonical.push_str(";\n");
        }
        if !is_trailing_comma(&tokens, index) {
            push_token(&mut canonical, token, text(code, token.span));
        }
    }
    canonical.extend(missing.map(|_| ";\n"));
    Ok(canonical)
}

fn push_token(canonical: &mut String, token: &TokenAndSpan, text: &str) {
    match token.token {
        // Which quotes a string has is formatting; what is between them isn't.
        Token::Str => {
            let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or(text);
            canonical.push('"');
            canonical.push_str(inner);
        }
        _ => canonical.push_str(text),
    }
    canonical.push('\n');
}

/// A comma that only ends a list; in an array it must not be a hole.
fn is_trailing_comma(tokens: &[TokenAndSpan], index: usize) -> bool {
    if tokens[index].token != Token::Comma {
        return false;
    }
    let before = index.checked_sub(1).map(|before| tokens[before].token);
    match tokens.get(index + 1).map(|after| after.token) {
        Some(Token::RParen | Token::RBrace) => true,
        Some(Token::RBracket) => !matches!(before, Some(Token::Comma | Token::LBracket)),
        _ => false,
    }
}

/// Where statements end with no semicolon written: `return\n1` is not `return 1`, though the tokens are the same.
struct StatementEnds<'a> {
    code: &'a str,
    missing: Vec<BytePos>,
}

impl StatementEnds<'_> {
    fn ends(&mut self, span: Span) {
        if !text(self.code, span).ends_with(';') {
            self.missing.push(span.hi);
        }
    }
}

macro_rules! statements_with_semicolon {
    ($($visit:ident: $node:ty),* $(,)?) => {
        impl Visit for StatementEnds<'_> {
            $(fn $visit(&mut self, node: &$node) {
                self.ends(node.span);
                node.visit_children_with(self);
            })*

            // The declaration in the head of a loop has no semicolon of its own.
            fn visit_for_head(&mut self, head: &swc_ecma_ast::ForHead) {
                head.visit_children_with(&mut WithoutHead(self));
            }

            fn visit_var_decl_or_expr(&mut self, head: &swc_ecma_ast::VarDeclOrExpr) {
                head.visit_children_with(&mut WithoutHead(self));
            }
        }
    };
}

statements_with_semicolon! {
    visit_expr_stmt: ExprStmt,
    visit_var_decl: VarDecl,
    visit_return_stmt: ReturnStmt,
    visit_throw_stmt: ThrowStmt,
    visit_break_stmt: BreakStmt,
    visit_continue_stmt: ContinueStmt,
    visit_debugger_stmt: DebuggerStmt,
    visit_do_while_stmt: DoWhileStmt,
    visit_class_prop: ClassProp,
    visit_private_prop: PrivateProp,
    visit_ts_type_alias_decl: TsTypeAliasDecl,
}

/// Visits what is below the declaration in a loop's head, but not the declaration itself.
struct WithoutHead<'a, 'b>(&'a mut StatementEnds<'b>);

impl Visit for WithoutHead<'_, '_> {
    fn visit_var_decl(&mut self, declaration: &VarDecl) {
        declaration.visit_children_with(self.0);
    }

    fn visit_expr(&mut self, expression: &swc_ecma_ast::Expr) {
        expression.visit_with(self.0);
    }

    fn visit_pat(&mut self, pattern: &swc_ecma_ast::Pat) {
        pattern.visit_with(self.0);
    }
}

fn text(code: &str, span: Span) -> &str {
    code.get(offset(span.lo)..offset(span.hi)).unwrap_or("")
}

/// Positions start at 1: 0 is the parser's mark for "nowhere".
fn offset(position: BytePos) -> usize {
    position.0.saturating_sub(1) as usize
}
