//! Parameter properties as the equivalent fields and assignments.

use swc_common::Spanned;
use swc_ecma_ast::*;
use swc_ecma_parser::unstable::Token;

use super::Stripper;
use crate::parse::{offset, range};

impl Stripper<'_> {
    /// `constructor(private a)` → `a; constructor(a) { this.a = a; }`
    pub(super) fn parameter_properties(&mut self, constructor: &Constructor, class: &Class) {
        let is_derived = class.super_class.is_some();
        let names: Vec<String> = constructor.params.iter().filter_map(parameter_property).collect();
        let Some(body) = constructor.body.as_ref().filter(|_| !names.is_empty()) else { return };
        let at = if is_derived {
            body.stmts
                .iter()
                .find(|statement| is_super_call(statement))
                .map(|statement| range(statement.span()).end)
        } else {
            Some(range(body.span).start + 1)
        };
        match at {
            Some(at) => {
                let text: String = names.iter().map(|name| format!(" this.{name} = {name};")).collect();
                self.edits.insert(at, if is_derived { format!(";{text}") } else { text });
                // Their fields come first.
                let fields: String = names.iter().map(|name| format!(" {name};")).collect();
                self.edits.insert(self.start_of_body(class), fields);
            }
            None => {
                let hint = "call `super(…)` as a statement of the constructor";
                self.refuse(constructor.span, "parameter properties without a call of `super`", hint);
            }
        }
    }

    /// The position after the opening brace of a class.
    fn start_of_body(&self, class: &Class) -> usize {
        let head = [
            Some(class.span.lo),
            class.type_params.as_ref().map(|list| list.span.hi),
            class.super_class.as_ref().map(|expr| expr.span().hi),
            class.super_type_params.as_ref().map(|list| list.span.hi),
            class.implements.last().map(|last| last.span.hi),
        ];
        let from = head.into_iter().flatten().max().unwrap_or(class.span.lo);
        let at = self.tokens.partition_point(|token| token.span.lo < from);
        let brace = self.tokens[at..].iter().find(|token| token.token == Token::LBrace);
        brace.map_or(offset(from), |brace| range(brace.span).end)
    }
}

fn parameter_property(parameter: &ParamOrTsParamProp) -> Option<String> {
    match parameter {
        ParamOrTsParamProp::Param(_) => None,
        ParamOrTsParamProp::TsParamProp(property) => match &property.param {
            TsParamPropParam::Ident(name) => Some(name.id.sym.as_str().to_owned()),
            TsParamPropParam::Assign(assign) => match &*assign.left {
                Pat::Ident(name) => Some(name.id.sym.as_str().to_owned()),
                _ => None,
            },
        },
    }
}

fn is_super_call(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Expr(ExprStmt { expr, .. })
        if matches!(&**expr, Expr::Call(CallExpr { callee: Callee::Super(_), .. })))
}
