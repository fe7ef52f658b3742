//! The canonical form of code: its tokens, independent of white space, comments and formatting.

use swc_common::{BytePos, Span};
use swc_ecma_ast::{
    BreakStmt, ClassProp, ContinueStmt, DebuggerStmt, DoWhileStmt, ExprStmt, PrivateProp, ReturnStmt,
    ThrowStmt, TsTypeAliasDecl, VarDecl,
};
use swc_ecma_parser::unstable::{Token, TokenAndSpan};
use swc_ecma_visit::{Visit, VisitWith};

use pml_core::fqdn::LONGEST_HASH;

use crate::error::CompileError;
use crate::link::Links;
use crate::parse::{Parsed, offset};

/// BLAKE3, in hex, of the code's canonical form.
pub fn code_hash(code: &str) -> Result<String, CompileError> {
    let parsed = Parsed::of(code)?;
    Ok(parsed.with_stack(|| canonical_hash(&parsed, &Links::default())))
}

/// The same hash with as many characters as the longest FQDN needs.
pub fn long_code_hash(code: &str) -> Result<String, CompileError> {
    let parsed = Parsed::of(code)?;
    let mut hash = [0; LONGEST_HASH / 2];
    parsed.with_stack(|| {
        let canonical = canonical(&parsed, &Links::default());
        blake3::Hasher::new().update(&canonical).finalize_xof().fill(&mut hash);
    });
    Ok(hash.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The hash of the linked code.
pub(crate) fn canonical_hash(parsed: &Parsed<'_>, links: &Links<'_>) -> String {
    blake3::hash(&canonical(parsed, links)).to_hex().to_string()
}

/// The tokens of the code, one per line, including automatically inserted semicolons.
fn canonical(parsed: &Parsed<'_>, links: &Links<'_>) -> Vec<u8> {
    let Parsed { code, tokens, .. } = parsed;
    let mut ends = StatementEnds { code, missing: Vec::new() };
    parsed.items.visit_with(&mut ends);
    ends.missing.sort_unstable();
    ends.missing.dedup();

    // Strings lose a quote, and every token gains a line end.
    let mut canonical = Vec::with_capacity(code.len() + tokens.len());
    let bytes = code.as_bytes();
    let mut missing = &ends.missing[..];
    let mut links = links.list();
    let mut replaced_to = 0;
    // Everything before this is tokens.
    let mut plain_to = 0;
    for (index, token) in tokens.iter().enumerate() {
        let (start, end) = (offset(token.span.lo), offset(token.span.hi));
        if start >= plain_to {
            if start < replaced_to {
                continue;
            }
            while let [end, rest @ ..] = missing
                && *end <= token.span.lo
            {
                missing = rest;
                canonical.extend_from_slice(b";\n");
            }
            // A link inside an applied one is dropped, as it is in the text.
            while let [link, rest @ ..] = links
                && link.start() <= start
            {
                links = rest;
                if link.start() == start && replaced_to <= start {
                    replaced_to = link.end();
                    link.tokens().iter().for_each(|text| push_text(&mut canonical, text.as_bytes()));
                }
            }
            if start < replaced_to {
                continue;
            }
            let next_end = missing.first().map_or(usize::MAX, |end| offset(*end));
            plain_to = links.first().map_or(next_end, |link| next_end.min(link.start()));
        }
        match bytes.get(start..end) {
            Some(b",") if is_trailing_comma(tokens, index) => {}
            Some([byte]) => canonical.extend_from_slice(&[*byte, b'\n']),
            Some(text) => push_text(&mut canonical, text),
            None => {}
        }
    }
    missing.iter().for_each(|_| canonical.extend_from_slice(b";\n"));
    canonical
}

fn push_text(canonical: &mut Vec<u8>, text: &[u8]) {
    match text {
        [] => return,
        // A string's quotes are formatting, its content isn't.
        [b'"' | b'\'', inner @ .., _] => {
            canonical.push(b'"');
            canonical.extend_from_slice(inner);
        }
        _ => canonical.extend_from_slice(text),
    }
    canonical.push(b'\n');
}

/// A trailing comma; in an array it must not be an elision.
fn is_trailing_comma(tokens: &[TokenAndSpan], index: usize) -> bool {
    let before = index.checked_sub(1).map(|before| tokens[before].token);
    match tokens.get(index + 1).map(|after| after.token) {
        Some(Token::RParen | Token::RBrace) => true,
        Some(Token::RBracket) => !matches!(before, Some(Token::Comma | Token::LBracket)),
        _ => false,
    }
}

/// The positions of automatically inserted semicolons: `return\n1` isn't `return 1`, though the tokens are the same.
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

            // Types contain no statements.
            fn visit_ts_type(&mut self, _: &swc_ecma_ast::TsType) {}
            fn visit_ts_interface_body(&mut self, _: &swc_ecma_ast::TsInterfaceBody) {}

            // The declaration in a loop's head has no semicolon.
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

/// Visits the children of the declaration in a loop's head, but not the declaration itself.
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

#[cfg(test)]
mod tests {
    use super::code_hash;
    use proptest::prelude::*;

    fn same(a: &str, b: &str) {
        assert_eq!(code_hash(a).unwrap(), code_hash(b).unwrap(), "{a:?} {b:?}");
    }

    fn differ(a: &str, b: &str) {
        assert_ne!(code_hash(a).unwrap(), code_hash(b).unwrap(), "{a:?} {b:?}");
    }

    #[test]
    fn white_space_comments_and_formatting_dont_count() {
        same("return a+b", "return a  +\n\tb;");
        same("return 1 // one", "/* two */ return 1");
        same("const x = 'a'\nreturn x", "const x = \"a\"; return x;");
        same("f(a, b)", "f(\n  a,\n  b,\n);");
        same("return [1, 2]", "return [\n1,\n2,\n]");
        same("for (const x of y) { f(x) }", "for (const x of y) {\n  f(x);\n}\n");
        same("for (let i = 0; i < 3; i++) f(i)", "for (let i = 0; i < 3; i++) f(i);");
        same("class A { x = 1\ny = 2 }", "class A { x = 1; y = 2; }");
        same("\u{feff}return 1\r\n", "return 1");
        same("const x: number = 1", "const x : number = 1 ;");
    }

    #[test]
    fn what_is_inside_strings_templates_and_regexes_counts() {
        differ("return \"a  b\"", "return \"a b\"");
        differ("return 'https://a.example/x'", "return 'https://a.example/y'");
        differ("return 'http://a//b'", "return 'http://a'");
        differ("return `a  ${x} b`", "return `a ${x} b`");
        same("return `a ${ x } b`", "return `a ${x} b`");
        differ("return /a  b/.test(x)", "return /a b/.test(x)");
        differ("return '1'", "return 1");
        differ("return `1`", "return '1'");
    }

    #[test]
    fn line_ends_that_change_the_meaning_count() {
        differ("return\n1", "return 1");
        differ("x\n++\ny", "x++\ny");
        differ("return [,]", "return []");
        differ("return [1,,]", "return [1,]");
        same("a\n(b)", "a(b)");
    }

    #[test]
    fn what_is_not_code_is_refused_with_its_place() {
        let error = code_hash("const a = 1\nconst = 2").unwrap_err();
        assert!(error.to_string().starts_with("Invalid code at line 2, column "), "{error}");
        assert!(code_hash(&"(".repeat(100_000)).is_err());
        assert!(code_hash("import fs from 'fs'").is_err());
        code_hash("").unwrap();
    }

    proptest! {
        #[test]
        fn any_text_is_judged_without_panic(text in ".{0,200}") {
            let _ = code_hash(&text);
        }

        #[test]
        fn spacing_between_tokens_never_counts(gaps in prop::collection::vec("[ \t]{1,3}", 9)) {
            let tokens = ["const", "x", "=", "await", "mcp.fs.read(", "{ path:", "args.path", "}", ")"];
            let code: String = tokens.iter().zip(&gaps).flat_map(|(token, gap)| [*token, gap.as_str()]).collect();
            prop_assert_eq!(code_hash(&code).unwrap(), code_hash(&tokens.join(" ")).unwrap());
        }
    }
}
