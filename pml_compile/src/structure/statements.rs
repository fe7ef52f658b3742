//! Visits statements in execution order.

use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::*;

use super::build::{Body, Builder, Jump};
use super::expressions::arrow_body;
use super::frontier::{End, Frontier, Way};
use super::probe::Site;
use crate::value::{literal_json, unwrap};

impl<'a> Builder<'a> {
    pub(super) fn block(&mut self, statements: &'a [Stmt]) {
        for statement in statements {
            self.declare_function(statement);
        }
        for statement in statements {
            self.statement(statement);
        }
    }

    pub(super) fn statement(&mut self, statement: &'a Stmt) {
        self.labeled_statement(statement, None);
    }

    fn labeled_statement(&mut self, statement: &'a Stmt, label: Option<&swc_atoms::Atom>) {
        if self.is_stopped(1) {
            return;
        }
        match statement {
            Stmt::Block(block) => match label {
                Some(_) => self.breakable(label, false, |builder| builder.block(&block.stmts)),
                None => self.block(&block.stmts),
            },
            Stmt::Expr(statement) => self.expr(&statement.expr),
            Stmt::If(statement) => self.if_statement(statement),
            Stmt::Switch(statement) => self.breakable(label, false, |builder| builder.switch(statement)),
            Stmt::Try(statement) => self.try_statement(statement),
            Stmt::Labeled(statement) => self.labeled_statement(&statement.body, Some(&statement.label.sym)),
            Stmt::Return(statement) => {
                self.optional(statement.arg.as_deref());
                let ends = std::mem::take(&mut self.frontier);
                if let Some(returns) = self.returns.last_mut() {
                    ends.add_to(returns);
                }
            }
            Stmt::Throw(statement) => {
                self.expr(&statement.arg);
                self.frontier = Frontier::Nowhere;
            }
            Stmt::Break(statement) => self.jump(statement.label.as_ref(), true),
            Stmt::Continue(statement) => self.jump(statement.label.as_ref(), false),
            Stmt::While(statement) => {
                let at = statement.span.lo;
                self.loop_statement(at, label, &statement.body, |builder| builder.expr(&statement.test));
            }
            Stmt::DoWhile(statement) => {
                self.loop_statement(statement.span.lo, label, &statement.body, |_| {});
                self.expr(&statement.test);
            }
            Stmt::For(statement) => {
                match &statement.init {
                    Some(VarDeclOrExpr::VarDecl(declaration)) => self.variables(declaration),
                    Some(VarDeclOrExpr::Expr(expr)) => self.expr(expr),
                    None => {}
                }
                self.loop_statement(statement.span.lo, label, &statement.body, |builder| {
                    builder.optional(statement.test.as_deref());
                    builder.optional(statement.update.as_deref());
                });
            }
            Stmt::ForOf(statement) => {
                self.expr(&statement.right);
                self.loop_statement(statement.right.span().hi, label, &statement.body, |_| {});
            }
            Stmt::ForIn(statement) => {
                self.expr(&statement.right);
                self.loop_statement(statement.right.span().hi, label, &statement.body, |_| {});
            }
            Stmt::Decl(Decl::Var(declaration)) => self.variables(declaration),
            Stmt::Decl(Decl::Using(declaration)) => {
                for declarator in &declaration.decls {
                    self.optional(declarator.init.as_deref());
                }
            }
            Stmt::Decl(Decl::Class(class)) => self.class(&class.class),
            Stmt::Decl(_) | Stmt::Empty(_) | Stmt::Debugger(_) | Stmt::With(_) => {}
        }
    }

    fn variables(&mut self, declaration: &'a VarDecl) {
        for declarator in &declaration.decls {
            match (&declarator.name, declarator.init.as_deref()) {
                (Pat::Ident(name), Some(init)) => match unwrap(init) {
                    Expr::Arrow(arrow) => self.register(&name.id, arrow_body(arrow)),
                    Expr::Fn(FnExpr { function, .. }) => {
                        if let Some(body) = &function.body {
                            self.register(&name.id, Body::Statements(&body.stmts));
                        }
                    }
                    _ => self.expr(init),
                },
                (pattern, init) => {
                    self.optional(init);
                    self.pattern(pattern);
                }
            }
        }
    }

    /// Only defaults in a pattern can call anything.
    fn pattern(&mut self, pattern: &'a Pat) {
        match pattern {
            Pat::Array(array) => array.elems.iter().flatten().for_each(|element| self.pattern(element)),
            Pat::Object(object) => {
                for property in &object.props {
                    match property {
                        ObjectPatProp::KeyValue(pair) => self.pattern(&pair.value),
                        ObjectPatProp::Assign(assign) => self.optional(assign.value.as_deref()),
                        ObjectPatProp::Rest(rest) => self.pattern(&rest.arg),
                    }
                }
            }
            Pat::Assign(assign) => {
                self.expr(&assign.right);
                self.pattern(&assign.left);
            }
            Pat::Rest(rest) => self.pattern(&rest.arg),
            Pat::Expr(expr) => self.expr(expr),
            Pat::Ident(_) | Pat::Invalid(_) => {}
        }
    }

    fn if_statement(&mut self, statement: &'a IfStmt) {
        let mut chain = Some(statement);
        let mut ends = Vec::new();
        // Iterative: chains of `else if` are long.
        while let Some(statement) = chain.take() {
            self.expr(&statement.test);
            let test = statement.test.span();
            let node = self.decision(test.hi, self.parsed.text(test));
            self.probe(node, Site::Branch { test });
            self.frontier = Frontier::of(node, Way::True);
            self.statement(&statement.cons);
            std::mem::take(&mut self.frontier).add_to(&mut ends);
            self.frontier = Frontier::of(node, Way::False);
            match statement.alt.as_deref() {
                Some(Stmt::If(next)) => chain = Some(next),
                Some(alternative) => self.statement(alternative),
                None => {}
            }
        }
        let last = std::mem::take(&mut self.frontier);
        self.add_ends(&ends);
        self.frontier.join(last);
    }

    fn switch(&mut self, statement: &'a SwitchStmt) {
        self.expr(&statement.discriminant);
        let discriminant = statement.discriminant.span();
        let node = self.decision(discriminant.hi, self.parsed.text(discriminant));
        self.frontier = Frontier::Nowhere;
        let mut has_default = false;
        for case in &statement.cases {
            for inner in &case.cons {
                self.declare_function(inner);
            }
            let label = match &case.test {
                Some(test) => match literal_json(test) {
                    Some(serde_json::Value::String(text)) => format!("case:{text}"),
                    _ => format!("case:{}", self.parsed.text(test.span())),
                },
                None => "default".to_owned(),
            };
            has_default |= case.test.is_none();
            let before_colon = case.test.as_ref().map_or_else(
                || Span::new(case.span.lo, case.span.lo + BytePos("default".len() as u32)),
                Spanned::span,
            );
            // The previous case may fall through to this one.
            self.frontier.push(End { node, way: Way::Case(self.labels.len()) });
            self.labels.push(label.clone());
            self.probe(node, Site::Case { before_colon, label });
            for inner in &case.cons {
                self.statement(inner);
            }
        }
        if !has_default {
            self.frontier.push(End { node, way: Way::Default });
            self.probe(node, Site::NoDefault { discriminant });
        }
    }

    fn try_statement(&mut self, statement: &'a TryStmt) {
        let Some(finalizer) = &statement.finalizer else {
            self.try_and_catch(statement);
            return;
        };
        // A `return` inside passes through the `finally`.
        self.returns.push(Vec::new());
        self.try_and_catch(statement);
        let returned = self.returns.pop().unwrap_or_default();
        let goes_on = self.frontier.len() > 0;
        self.add_ends(&returned);
        self.block(&finalizer.stmts);
        if !returned.is_empty() {
            let ends = if goes_on { self.frontier.clone() } else { std::mem::take(&mut self.frontier) };
            if let Some(returns) = self.returns.last_mut() {
                ends.add_to(returns);
            }
        }
    }

    fn try_and_catch(&mut self, statement: &'a TryStmt) {
        let Some(handler) = &statement.handler else {
            self.block(&statement.block.stmts);
            return;
        };
        let node = self.decision(statement.span.lo, "try");
        self.block(&statement.block.stmts);
        let body_ends = std::mem::replace(&mut self.frontier, Frontier::of(node, Way::Catch));
        self.probe(node, Site::Catch { block: handler.body.span });
        self.block(&handler.body.stmts);
        let catch_ends = std::mem::replace(&mut self.frontier, body_ends);
        self.frontier.join(catch_ends);
    }

    fn jump(&mut self, label: Option<&Ident>, is_break: bool) {
        let ends = std::mem::take(&mut self.frontier);
        let target = self.jumps.iter_mut().rev().find(|jump| match label {
            Some(label) => jump.label.as_ref() == Some(&label.sym),
            // A bare `break` leaves a switch too; labelled blocks are left by their label only.
            None => jump.label.is_none() || jump.is_loop,
        });
        if let Some(jump) = target.filter(|_| is_break) {
            ends.add_to(&mut jump.breaks);
        }
    }

    fn breakable(&mut self, label: Option<&swc_atoms::Atom>, is_loop: bool, inside: impl FnOnce(&mut Self)) {
        self.jumps.push(Jump { label: label.cloned(), is_loop, breaks: Vec::new() });
        inside(self);
        if let Some(jump) = self.jumps.pop() {
            self.add_ends(&jump.breaks);
        }
    }

    /// A loop; without calls or decisions it isn't a node.
    fn loop_statement(
        &mut self,
        at: BytePos,
        label: Option<&swc_atoms::Atom>,
        body: &'a Stmt,
        head: impl FnOnce(&mut Self),
    ) {
        let mark = self.mark();
        let node = self.loop_node(at);
        self.probe(node, Site::LoopStatement { body: body.span(), is_block: matches!(body, Stmt::Block(_)) });
        self.breakable(label, true, |builder| {
            builder.frontier = Frontier::of(node, Way::Contains);
            head(builder);
            builder.statement(body);
            builder.frontier = Frontier::of(node, Way::On);
        });
        if self.has_only(&mark, 1) {
            self.undo(mark);
        }
    }

    pub(super) fn optional(&mut self, expr: Option<&'a Expr>) {
        if let Some(expr) = expr {
            self.expr(expr);
        }
    }
}
