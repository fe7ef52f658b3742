//! `break` and `continue` without a target, and labels that the engine refuses.

use swc_atoms::Atom;
use swc_common::Spanned;
use swc_ecma_ast::*;
use swc_ecma_visit::VisitWith;

use super::Checker;

/// The possible targets of jumps in the current function or static block.
#[derive(Default)]
pub(super) struct Jumps {
    /// The enclosing labels, and whether each directly labels a loop.
    labels: Vec<(Atom, bool)>,
    in_loop: bool,
    in_switch: bool,
    in_generator: bool,
}

impl Jumps {
    pub(super) fn of_function(is_generator: bool) -> Self {
        Self { in_generator: is_generator, ..Self::default() }
    }

    pub(super) fn can_yield(&self) -> bool {
        self.in_generator
    }
}

impl Checker<'_> {
    /// The body of an `if` or a loop can't be a declaration without a block.
    pub(super) fn single_statement(&mut self, body: &Stmt) {
        if let Stmt::Decl(declaration @ (Decl::Fn(_) | Decl::Class(_))) = body {
            self.refuse(
                declaration.span(),
                "a declaration isn't allowed here",
                "put it into a block `{ … }`",
            );
        }
    }

    pub(super) fn in_loop(&mut self, body: &Stmt) {
        self.single_statement(body);
        let outer = std::mem::replace(&mut self.jumps.in_loop, true);
        body.visit_with(self);
        self.jumps.in_loop = outer;
    }

    pub(super) fn in_switch(&mut self, inside: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.jumps.in_switch, true);
        inside(self);
        self.jumps.in_switch = outer;
    }

    pub(super) fn labeled(&mut self, statement: &LabeledStmt) {
        if let Stmt::Decl(Decl::Fn(function)) = &*statement.body
            && (function.function.is_async || function.function.is_generator)
        {
            self.refuse(
                function.ident.span,
                "an async or generator function can't have a label",
                "remove the label",
            );
        }
        let is_loop = matches!(
            &*statement.body,
            Stmt::For(_) | Stmt::ForIn(_) | Stmt::ForOf(_) | Stmt::While(_) | Stmt::DoWhile(_)
        );
        self.jumps.labels.push((statement.label.sym.clone(), is_loop));
        statement.body.visit_with(self);
        self.jumps.labels.pop();
    }

    pub(super) fn break_statement(&mut self, statement: &BreakStmt) {
        let is_known = match &statement.label {
            Some(label) => self.jumps.labels.iter().any(|(name, _)| *name == label.sym),
            None => self.jumps.in_loop || self.jumps.in_switch,
        };
        if !is_known {
            self.refuse(
                statement.span,
                "there is no loop, `switch` or label here for this `break`",
                "use `return` to end a function",
            );
        }
    }

    pub(super) fn continue_statement(&mut self, statement: &ContinueStmt) {
        match &statement.label {
            Some(label) => {
                let known = self.jumps.labels.iter().rev().find(|(name, _)| *name == label.sym);
                match known {
                    Some((_, true)) => {}
                    Some((_, false)) => {
                        let message = format!("the label `{}` isn't directly before the loop", label.sym);
                        self.refuse(label.span, message, "give the loop one label");
                    }
                    None => self.nothing_to_continue(statement),
                }
            }
            None if self.jumps.in_loop => {}
            None => self.nothing_to_continue(statement),
        }
    }

    fn nothing_to_continue(&mut self, statement: &ContinueStmt) {
        self.refuse(
            statement.span,
            "there is no loop here for this `continue`",
            "use `return` to end a function",
        );
    }
}
