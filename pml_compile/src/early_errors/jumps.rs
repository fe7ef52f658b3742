//! `break` and `continue` out of static blocks, and labels that the engine doesn't know.

use swc_atoms::Atom;
use swc_ecma_ast::*;
use swc_ecma_visit::VisitWith;

use super::Checker;

/// What the statements around can be left by. The parser has checked all of it but for static blocks.
#[derive(Default)]
pub(super) struct Jumps {
    /// The labels around, and whether each stands next to a loop.
    labels: Vec<(Atom, bool)>,
    in_static_block: bool,
    in_loop: bool,
    in_switch: bool,
}

impl Checker<'_> {
    /// A static block starts anew, as a function does.
    pub(super) fn leave_jumps(&mut self) -> Jumps {
        std::mem::replace(&mut self.jumps, Jumps { in_static_block: true, ..Jumps::default() })
    }

    pub(super) fn return_to_jumps(&mut self, outer: Jumps) {
        self.jumps = outer;
    }

    pub(super) fn in_loop(&mut self, body: &Stmt) {
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
            self.refuse(function.ident.span, "such a function can't have a label", "remove the label");
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
        if !self.jumps.in_static_block {
            return;
        }
        let is_known = match &statement.label {
            Some(label) => self.jumps.labels.iter().any(|(name, _)| *name == label.sym),
            None => self.jumps.in_loop || self.jumps.in_switch,
        };
        if !is_known {
            self.refuse(statement.span, "`break` can't leave a static block", "end the block in another way");
        }
    }

    pub(super) fn continue_statement(&mut self, statement: &ContinueStmt) {
        match &statement.label {
            Some(label) => {
                let known = self.jumps.labels.iter().rev().find(|(name, _)| *name == label.sym);
                match known {
                    Some((_, true)) => {}
                    Some((_, false)) => {
                        let message = format!("`{}` isn't the label next to the loop", label.sym);
                        self.refuse(label.span, message, "give the loop one label");
                    }
                    None if self.jumps.in_static_block => self.continue_leaves_block(statement),
                    None => {}
                }
            }
            None if self.jumps.in_static_block && !self.jumps.in_loop => {
                self.continue_leaves_block(statement);
            }
            None => {}
        }
    }

    fn continue_leaves_block(&mut self, statement: &ContinueStmt) {
        self.refuse(statement.span, "`continue` can't leave a static block", "end the block in another way");
    }
}
