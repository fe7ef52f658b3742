//! Enums as the JavaScript they stand for: an object with a field for each member, and one back from each number.

use rustc_hash::FxHashMap;
use swc_common::Spanned;
use swc_ecma_ast::*;
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::edits::{Edits, line_ends};
use super::error::{CompileError, ErrorKind};
use super::parse::{offset, range};

/// The text that takes an enum's place; it has as many lines as the enum.
pub(super) fn enum_text(code: &str, declaration: &TsEnumDecl) -> Result<String, CompileError> {
    let name = &declaration.id.sym;
    let mut text = format!("var {name}; (function ({name}) {{");
    let mut at = offset(declaration.span.lo);
    let mut earlier: FxHashMap<String, bool> = FxHashMap::default();
    let mut before: Option<(String, bool)> = None;
    for member in &declaration.members {
        let start = offset(member.span.lo);
        text.push_str(&line_ends(code.get(at..start).unwrap_or_default()));
        at = range(member.span).end;
        let key = match &member.id {
            TsEnumMemberId::Ident(key) => key.sym.as_str().to_owned(),
            TsEnumMemberId::Str(key) => key.value.to_string_lossy().into_owned(),
        };
        let quoted = serde_json::Value::from(key.as_str());
        let (value, is_text) = match &member.init {
            Some(init) => {
                let before = line_ends(code.get(start..offset(init.span().lo)).unwrap_or_default());
                (before + &qualified(code, init, name, &earlier), is_text(init, &earlier))
            }
            None => match &before {
                None => ("0".to_owned(), false),
                Some((before, false)) => {
                    (format!("{name}[{}] + 1", serde_json::Value::from(before.as_str())), false)
                }
                Some((_, true)) => {
                    let message = "expected a value for this member of the enum";
                    let hint = Some("the member before it is a string, so there is nothing to count on from");
                    return Err(CompileError::at(code, start, ErrorKind::Syntax, message, hint));
                }
            },
        };
        if is_text {
            text.push_str(&format!(" {name}[{quoted}] = {value};"));
        } else {
            text.push_str(&format!(" {name}[{name}[{quoted}] = {value}] = {quoted};"));
        }
        earlier.insert(key.clone(), is_text);
        before = Some((key, is_text));
    }
    text.push_str(&line_ends(code.get(at..range(declaration.span).end).unwrap_or_default()));
    text.push_str(&format!(" }})({name} || ({name} = {{}}));"));
    Ok(text)
}

/// An initializer's text without types, and with the names of earlier members written as the enum's fields.
fn qualified(code: &str, init: &Expr, name: &str, earlier: &FxHashMap<String, bool>) -> String {
    let start = offset(init.span().lo);
    let text = code.get(range(init.span())).unwrap_or_default();
    let mut names = MemberNames { text, start, name, earlier, edits: Edits::default() };
    init.visit_with(&mut names);
    names.edits.apply(text)
}

fn is_text(init: &Expr, earlier: &FxHashMap<String, bool>) -> bool {
    match init {
        Expr::Lit(Lit::Str(_)) | Expr::Tpl(_) => true,
        Expr::Paren(inner) => is_text(&inner.expr, earlier),
        Expr::Bin(binary) if binary.op == BinaryOp::Add => {
            is_text(&binary.left, earlier) || is_text(&binary.right, earlier)
        }
        Expr::Ident(name) => earlier.get(&*name.sym).copied().unwrap_or_default(),
        _ => false,
    }
}

struct MemberNames<'a> {
    text: &'a str,
    start: usize,
    name: &'a str,
    earlier: &'a FxHashMap<String, bool>,
    edits: Edits,
}

impl Visit for MemberNames<'_> {
    noop_visit_type!();

    fn visit_expr(&mut self, expr: &Expr) {
        let (inner, whole) = match expr {
            Expr::TsAs(cast) => (&cast.expr, cast.span),
            Expr::TsSatisfies(cast) => (&cast.expr, cast.span),
            Expr::TsNonNull(cast) => (&cast.expr, cast.span),
            Expr::TsConstAssertion(cast) => (&cast.expr, cast.span),
            Expr::TsTypeAssertion(cast) => (&cast.expr, cast.span),
            _ => return expr.visit_children_with(self),
        };
        let (inner_range, whole) = (range(inner.span()), range(whole));
        self.edits.remove(self.text, whole.start - self.start..inner_range.start - self.start);
        self.edits.remove(self.text, inner_range.end - self.start..whole.end - self.start);
        inner.visit_with(self);
    }

    fn visit_ident(&mut self, ident: &Ident) {
        if self.earlier.contains_key(&*ident.sym) {
            self.edits.insert(offset(ident.span.lo) - self.start, format!("{}.", self.name));
        }
    }
}
