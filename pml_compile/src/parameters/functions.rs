//! What local functions that are called with `args` say about parameters.

use rustc_hash::FxHashMap;

use super::*;
use crate::bindings::BindingId;

/// The first parameter of each function that the code declares at its top level.
#[derive(Default)]
pub(super) struct LocalFunctions<'a> {
    first: FxHashMap<BindingId, &'a Pat>,
}

impl<'a> LocalFunctions<'a> {
    pub(super) fn of(parsed: &'a Parsed<'_>, bindings: &Bindings) -> Self {
        let mut functions = Self::default();
        let mut declare = |name: &Ident, first: Option<&'a Pat>| {
            let binding = bindings.binding_at(name.span).filter(|binding| !bindings.is_reassigned(*binding));
            if let (Some(binding), Some(first)) = (binding, first) {
                functions.first.insert(binding, first);
            }
        };
        for item in &parsed.items {
            match item {
                ModuleItem::Stmt(Stmt::Decl(Decl::Fn(declared))) => {
                    declare(&declared.ident, declared.function.params.first().map(|param| &param.pat));
                }
                ModuleItem::Stmt(Stmt::Decl(Decl::Var(declared))) => {
                    for VarDeclarator { name, init, .. } in &declared.decls {
                        let (Pat::Ident(name), Some(init)) = (name, init) else { continue };
                        match unwrap(init) {
                            Expr::Arrow(arrow) => declare(&name.id, arrow.params.first()),
                            Expr::Fn(function) => {
                                declare(&name.id, function.function.params.first().map(|param| &param.pat));
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        functions
    }
}

impl Inference<'_> {
    /// `main(args)`, where it always runs: what the function destructures is read of `args`. True if this is one.
    pub(super) fn given_to_function(&mut self, callee: &Expr, args: &[ExprOrSpread]) -> bool {
        let (Expr::Ident(name), [first, rest @ ..]) = (unwrap(callee), args) else { return false };
        let binding = self.bindings.binding_at(name.span).filter(|_| self.is_certain);
        let Some(pattern) = binding.and_then(|binding| self.functions.first.get(&binding).copied()) else {
            return false;
        };
        let taken = if let Pat::Assign(assign) = pattern { &*assign.left } else { pattern };
        let (Pat::Object(_), None, Some(steps)) = (taken, first.spread, self.path(&first.expr)) else {
            return false;
        };
        self.pattern(pattern, &steps);
        self.inside_chain(&first.expr);
        rest.iter().for_each(|argument| argument.expr.visit_with(self));
        true
    }
}
