//! The walk through statements and expressions, in the order they run.

use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::*;

use super::build::{Body, Builder, Jump};
use super::frontier::{End, Frontier, Way};
use super::probe::Site;
use crate::compile::value::{as_call, as_member, literal_json, promise_method, unwrap};

/// Array methods that call a function for each item.
const PER_ITEM: &[&str] = &[
    "map",
    "forEach",
    "flatMap",
    "filter",
    "some",
    "every",
    "find",
    "findIndex",
    "findLast",
    "reduce",
    "reduceRight",
];

/// What runs several promises side by side.
const FORKS: &[&str] = &["all", "allSettled", "race", "any"];

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
        // A loop, not a recursion: chains of `else if` are long, not deep.
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
            // What falls through from the case before comes here too.
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
        // What returns inside leaves through the `finally`, and returns from there.
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

    /// A loop; one that calls and decides nothing is no node.
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

    fn optional(&mut self, expr: Option<&'a Expr>) {
        if let Some(expr) = expr {
            self.expr(expr);
        }
    }

    pub(super) fn expr(&mut self, expr: &'a Expr) {
        if self.is_stopped(1) {
            return;
        }
        let expr = unwrap(expr);
        if let Some((callee, args, span, is_optional)) = as_call(expr) {
            self.call(callee, args, span, is_optional);
            return;
        }
        match expr {
            Expr::Ident(name) => {
                if let Some(function) = self.local_function(name) {
                    self.call_local(function);
                }
            }
            Expr::Cond(cond) => {
                self.expr(&cond.test);
                let test = cond.test.span();
                let node = self.decision(test.hi, self.parsed.text(test));
                self.probe(node, Site::Branch { test });
                self.frontier = Frontier::of(node, Way::True);
                self.expr(&cond.cons);
                let ends = std::mem::replace(&mut self.frontier, Frontier::of(node, Way::False));
                self.expr(&cond.alt);
                self.frontier.join(ends);
            }
            Expr::Bin(binary) => match binary.op {
                BinaryOp::LogicalAnd => self.logical(binary, Way::True),
                BinaryOp::LogicalOr => self.logical(binary, Way::False),
                BinaryOp::NullishCoalescing => self.logical(binary, Way::True),
                _ => {
                    self.expr(&binary.left);
                    self.expr(&binary.right);
                }
            },
            Expr::Arrow(arrow) => self.run_here(arrow_body(arrow)),
            Expr::Fn(function) => self.function(&function.function),
            Expr::Class(class) => self.class(&class.class),
            Expr::Array(array) => array.elems.iter().flatten().for_each(|element| self.expr(&element.expr)),
            Expr::Object(object) => self.object(object),
            Expr::Unary(unary) => self.expr(&unary.arg),
            Expr::Update(update) => self.expr(&update.arg),
            Expr::Assign(assignment) => {
                if let AssignTarget::Simple(SimpleAssignTarget::Member(member)) = &assignment.left {
                    self.member(member);
                }
                self.expr(&assignment.right);
            }
            Expr::Member(member) => self.member(member),
            Expr::OptChain(chain) => {
                if let OptChainBase::Member(member) = &*chain.base {
                    self.member(member);
                }
            }
            Expr::New(new) => {
                self.expr(&new.callee);
                new.args.iter().flatten().for_each(|argument| self.expr(&argument.expr));
            }
            Expr::Seq(sequence) => sequence.exprs.iter().for_each(|expr| self.expr(expr)),
            Expr::Tpl(template) => template.exprs.iter().for_each(|expr| self.expr(expr)),
            Expr::TaggedTpl(tagged) => {
                self.expr(&tagged.tag);
                tagged.tpl.exprs.iter().for_each(|expr| self.expr(expr));
            }
            Expr::Yield(inner) => self.optional(inner.arg.as_deref()),
            _ => {}
        }
    }

    fn member(&mut self, member: &'a MemberExpr) {
        self.expr(&member.obj);
        if let MemberProp::Computed(computed) = &member.prop {
            self.expr(&computed.expr);
        }
    }

    fn object(&mut self, object: &'a ObjectLit) {
        for property in &object.props {
            match property {
                PropOrSpread::Spread(spread) => self.expr(&spread.expr),
                PropOrSpread::Prop(property) => match &**property {
                    Prop::KeyValue(pair) => {
                        if let PropName::Computed(computed) = &pair.key {
                            self.expr(&computed.expr);
                        }
                        self.expr(&pair.value);
                    }
                    Prop::Method(method) => self.function(&method.function),
                    Prop::Getter(getter) => self.function(&getter.function),
                    Prop::Setter(setter) => self.function(&setter.function),
                    Prop::Shorthand(_) | Prop::Assign(_) => {}
                },
            }
        }
    }

    fn function(&mut self, function: &'a Function) {
        if let Some(body) = &function.body {
            self.run_here(Body::Statements(&body.stmts));
        }
    }

    /// Methods run when someone calls them, which isn't followed: their nodes have no way in.
    fn class(&mut self, class: &'a Class) {
        let frontier = std::mem::take(&mut self.frontier);
        for member in &class.body {
            self.frontier = Frontier::Nowhere;
            match member {
                ClassMember::Constructor(constructor) => {
                    if let Some(body) = &constructor.body {
                        self.run_here(Body::Statements(&body.stmts));
                    }
                }
                ClassMember::Method(method) => self.function(&method.function),
                ClassMember::PrivateMethod(method) => self.function(&method.function),
                ClassMember::ClassProp(property) => self.optional(property.value.as_deref()),
                ClassMember::PrivateProp(property) => self.optional(property.value.as_deref()),
                ClassMember::AutoAccessor(property) => self.optional(property.value.as_deref()),
                ClassMember::StaticBlock(block) => self.run_here(Body::Statements(&block.body.stmts)),
                ClassMember::TsIndexSignature(_) | ClassMember::Empty(_) => {}
            }
        }
        self.frontier = frontier;
    }

    /// `&&`, `||` and `??` decide only if what they may skip calls something.
    fn logical(&mut self, binary: &'a BinExpr, runs_on: Way) {
        self.expr(&binary.left);
        let mark = self.mark();
        let test = binary.left.span();
        let node = self.decision(test.hi, self.parsed.text(test));
        let is_nullish = binary.op == BinaryOp::NullishCoalescing;
        self.probe(node, if is_nullish { Site::Nullish { test } } else { Site::Branch { test } });
        self.frontier = Frontier::of(node, runs_on);
        self.expr(&binary.right);
        if self.has_only(&mark, 1) {
            self.undo(mark);
        } else {
            let skipped = if runs_on == Way::True { Way::False } else { Way::True };
            self.frontier.push(End { node, way: skipped });
        }
    }

    fn call(&mut self, callee: &'a Expr, args: &'a [ExprOrSpread], span: Span, is_optional: bool) {
        if self.promise_fork(callee, args, span) || self.per_item(callee, args) {
            return;
        }
        let unwrapped = unwrap(callee);
        match unwrapped {
            Expr::Ident(name) if self.local_function(name).is_some() => {
                args.iter().for_each(|argument| self.expr(&argument.expr));
                if let Some(function) = self.local_function(name) {
                    self.call_local(function);
                }
                return;
            }
            Expr::Arrow(_) | Expr::Fn(_) => {
                args.iter().for_each(|argument| self.expr(&argument.expr));
                self.expr(unwrapped);
                return;
            }
            _ => self.expr(unwrapped),
        }
        args.iter().for_each(|argument| self.expr(&argument.expr));
        self.reference_call(span, callee, args.first().map(|argument| &*argument.expr), is_optional);
    }

    fn promise_fork(&mut self, callee: &'a Expr, args: &'a [ExprOrSpread], span: Span) -> bool {
        let [ExprOrSpread { spread: None, expr: argument }] = args else { return false };
        let is_fork = promise_method(self.bindings, callee).is_some_and(|method| FORKS.contains(&&**method));
        if !is_fork {
            return false;
        }
        let mark = self.mark();
        let fork = self.fork(span.lo);
        self.probe(fork, Site::Fork { argument: argument.span() });
        let mut ends = Vec::new();
        match unwrap(argument) {
            Expr::Array(array) => {
                for element in array.elems.iter().flatten() {
                    self.frontier = Frontier::of(fork, Way::On);
                    self.expr(&element.expr);
                    std::mem::take(&mut self.frontier).add_to(&mut ends);
                }
            }
            other => self.expr(other),
        }
        if self.has_only(&mark, 1) {
            self.undo(mark);
            return true;
        }
        self.add_ends(&ends);
        let join = self.join(span.hi);
        self.probe(join, Site::Join { call: span });
        true
    }

    /// `items.map(async (item) => …)`: a loop, if the function calls anything.
    fn per_item(&mut self, callee: &'a Expr, args: &'a [ExprOrSpread]) -> bool {
        let Some((member, ..)) = as_member(unwrap(callee)) else { return false };
        let MemberProp::Ident(method) = &member.prop else { return false };
        let Some((first, others)) = args.split_first() else { return false };
        let function = unwrap(&first.expr);
        let site = match function {
            Expr::Arrow(arrow) => match &*arrow.body {
                ArrowFunctionBody::FunctionBody(body) => {
                    Some(Site::LoopFunction { body: body.span, is_block: true })
                }
                ArrowFunctionBody::Expr(expr) => {
                    Some(Site::LoopFunction { body: expr.span(), is_block: false })
                }
            },
            Expr::Fn(FnExpr { function, .. }) => {
                function.body.as_ref().map(|body| Site::LoopFunction { body: body.span, is_block: true })
            }
            Expr::Ident(name) if self.local_function(name).is_some() => None,
            _ => return false,
        };
        if !PER_ITEM.contains(&&*method.sym) {
            return false;
        }
        self.expr(&member.obj);
        others.iter().for_each(|argument| self.expr(&argument.expr));
        let mark = self.mark();
        let node = self.loop_node(first.expr.span().lo);
        if let Some(site) = site {
            self.probe(node, site);
        }
        self.frontier = Frontier::of(node, Way::Contains);
        self.expr(function);
        self.frontier = Frontier::of(node, Way::On);
        if self.has_only(&mark, 1) {
            self.undo(mark);
        }
        true
    }
}

fn arrow_body(arrow: &ArrowExpr) -> Body<'_> {
    match &*arrow.body {
        ArrowFunctionBody::FunctionBody(body) => Body::Statements(&body.stmts),
        ArrowFunctionBody::Expr(expr) => Body::Expression(expr),
    }
}
