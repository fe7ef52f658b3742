//! Enums as JavaScript: an object with a field for each member, and a reverse mapping for each numeric one.

use rustc_hash::FxHashMap;
use swc_common::{Span, Spanned};
use swc_ecma_ast::*;
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::edits::{Edits, line_ends};
use super::error::{CompileError, ErrorKind};
use super::parse::{offset, range};

/// The edits around an enum's initializers, and of references to earlier members in them. Lines are kept; stripping types in
/// the initializers is up to the caller.
pub(super) fn enum_edits(code: &str, declaration: &TsEnumDecl) -> Result<Edits, CompileError> {
    let name = &declaration.id.sym;
    let mut edits = Edits::default();
    let mut text = format!("var {name}; (function ({name}) {{");
    // The start of the range that `text` replaces, and of the part whose lines it doesn't have yet.
    let mut from = offset(declaration.span.lo);
    let mut at = from;
    let mut earlier: FxHashMap<String, bool> = FxHashMap::default();
    let mut before: Option<(String, bool)> = None;
    for member in &declaration.members {
        let start = offset(member.span.lo);
        text.push_str(&line_ends(code.get(at..start).unwrap_or_default()));
        let key = match &member.id {
            TsEnumMemberId::Ident(key) => key.sym.as_str().to_owned(),
            TsEnumMemberId::Str(key) => key.value.to_string_lossy().into_owned(),
        };
        let quoted = serde_json::Value::from(key.as_str());
        let is_text = member.init.as_ref().is_some_and(|init| is_text(init, &earlier));
        let (open, close) = if is_text {
            (format!(" {name}[{quoted}] = "), ";".to_owned())
        } else {
            (format!(" {name}[{name}[{quoted}] = "), format!("] = {quoted};"))
        };
        text.push_str(&open);
        match (&member.init, &before) {
            (Some(init), _) => {
                let init_range = range(init.span());
                text.push_str(&line_ends(code.get(start..init_range.start).unwrap_or_default()));
                edits.replace(from..init_range.start, std::mem::take(&mut text));
                from = init_range.end;
                let mut names =
                    MemberNames { code, name, earlier: &earlier, edits: &mut edits, refused: None };
                init.visit_with(&mut names);
                names.refused.map_or(Ok(()), Err)?;
            }
            (None, None) => text.push('0'),
            (None, Some((before, false))) => {
                text.push_str(&format!("{name}[{}] + 1", serde_json::Value::from(before.as_str())));
            }
            (None, Some((_, true))) => {
                let message = "expected a value for this member of the enum";
                let hint = Some("the member before it is a string, so the next number is unknown");
                return Err(CompileError::at(code, start, ErrorKind::Syntax, message, hint));
            }
        }
        text.push_str(&close);
        at = range(member.span).end;
        earlier.insert(key.clone(), is_text);
        before = Some((key, is_text));
    }
    let end = range(declaration.span).end;
    text.push_str(&line_ends(code.get(at..end).unwrap_or_default()));
    text.push_str(&format!(" }})({name} || ({name} = {{}}));"));
    edits.replace(from..end, text);
    Ok(edits)
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

/// Qualifies the names of earlier members with the enum's name.
struct MemberNames<'a> {
    code: &'a str,
    name: &'a str,
    earlier: &'a FxHashMap<String, bool>,
    edits: &'a mut Edits,
    refused: Option<CompileError>,
}

impl Visit for MemberNames<'_> {
    noop_visit_type!();

    fn visit_ident(&mut self, ident: &Ident) {
        if ident.sym == *"await" {
            self.refuse_await(ident.span);
        }
        if self.earlier.contains_key(&*ident.sym) {
            self.edits.insert(offset(ident.span.lo), format!("{}.", self.name));
        }
    }

    fn visit_prop(&mut self, property: &Prop) {
        match property {
            Prop::Shorthand(ident) if self.earlier.contains_key(&*ident.sym) => {
                self.edits.insert(offset(ident.span.lo), format!("{}: {}.", ident.sym, self.name));
            }
            _ => property.visit_children_with(self),
        }
    }

    fn visit_await_expr(&mut self, expr: &AwaitExpr) {
        self.refuse_await(expr.span);
    }

    // These can use `await` themselves.
    fn visit_function(&mut self, function: &Function) {
        self.inside_function(function.is_async, |names| function.visit_children_with(names));
    }

    fn visit_arrow_expr(&mut self, arrow: &ArrowExpr) {
        self.inside_function(arrow.is_async, |names| arrow.visit_children_with(names));
    }
}

impl MemberNames<'_> {
    fn refuse_await(&mut self, span: Span) {
        let hint = Some("put the value into a variable before the enum");
        let message = "`await` isn't allowed in an enum";
        self.refused =
            Some(CompileError::at(self.code, offset(span.lo), ErrorKind::Unsupported, message, hint));
    }

    fn inside_function(&mut self, is_async: bool, visit: impl FnOnce(&mut Self)) {
        let before = self.refused.take();
        visit(self);
        if is_async {
            self.refused = None;
        }
        self.refused = before.or(self.refused.take());
    }
}
