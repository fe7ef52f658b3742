//! Visits expressions in execution order.

use swc_common::{Span, Spanned};
use swc_ecma_ast::*;

use super::build::{Body, Builder};
use super::frontier::{End, Frontier, Way};
use super::probe::Site;
use crate::value::{as_call, as_member, promise_method, unwrap};

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

/// Functions that run several promises in parallel.
const FORKS: &[&str] = &["all", "allSettled", "race", "any"];

impl<'a> Builder<'a> {
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

    /// What runs when the class is defined: its `extends` clause and computed names.
    fn class_head(&mut self, class: &'a Class) {
        self.optional(class.super_class.as_deref());
        for member in &class.body {
            let key = match member {
                ClassMember::Method(method) => &method.key,
                ClassMember::ClassProp(property) => &property.key,
                _ => continue,
            };
            if let PropName::Computed(computed) = key {
                self.expr(&computed.expr);
            }
        }
    }

    /// Calls of methods aren't tracked: their nodes have no incoming edge.
    pub(super) fn class(&mut self, class: &'a Class) {
        self.class_head(class);
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
                ClassMember::StaticBlock(block) => self.run_here(Body::Statements(&block.body.stmts)),
                // Accessors were refused before.
                ClassMember::AutoAccessor(_) | ClassMember::TsIndexSignature(_) | ClassMember::Empty(_) => {}
            }
        }
        self.frontier = frontier;
    }

    /// `&&`, `||` and `??` are decisions only if their right side calls something.
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

pub(super) fn arrow_body(arrow: &ArrowExpr) -> Body<'_> {
    match &*arrow.body {
        ArrowFunctionBody::FunctionBody(body) => Body::Statements(&body.stmts),
        ArrowFunctionBody::Expr(expr) => Body::Expression(expr),
    }
}
