//! `super` and private names, which are only valid inside a class or method.

use rustc_hash::FxHashMap;
use swc_atoms::Atom;
use swc_common::{Span, Spanned};
use swc_ecma_ast::*;
use swc_ecma_visit::VisitWith;

use super::Checker;
use super::declarations::Kind;
use crate::value::{prop_name, without_types};

/// The kind of a private member. A getter and a setter may share a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Private {
    Getter { is_static: bool },
    Setter { is_static: bool },
    Other,
}

#[derive(Default)]
pub(super) struct Classes {
    /// The private names of the enclosing classes, innermost last.
    private: Vec<FxHashMap<Atom, Private>>,
    allows_super_property: bool,
    allows_super_call: bool,
}

impl Checker<'_> {
    fn with_super(&mut self, property: bool, call: bool, inside: impl FnOnce(&mut Self)) {
        let outer = (self.classes.allows_super_property, self.classes.allows_super_call);
        (self.classes.allows_super_property, self.classes.allows_super_call) = (property, call);
        inside(self);
        (self.classes.allows_super_property, self.classes.allows_super_call) = outer;
    }

    pub(super) fn in_method(&mut self, is_derived_constructor: bool, inside: impl FnOnce(&mut Self)) {
        self.with_super(true, is_derived_constructor, inside);
    }

    pub(super) fn outside_methods(&mut self, inside: impl FnOnce(&mut Self)) {
        self.with_super(false, false, inside);
    }

    pub(super) fn super_property(&mut self, span: Span) {
        if !self.classes.allows_super_property {
            self.refuse(span, "`super` is only allowed in methods", "name the object itself");
        }
    }

    pub(super) fn super_call(&mut self, span: Span) {
        if !self.classes.allows_super_call {
            let message = "`super(…)` can only be called in the constructor of a class that extends another";
            self.refuse(span, message, "call it there, or remove it");
        }
    }

    pub(super) fn private_name(&mut self, name: &PrivateName) {
        if !self.classes.private.iter().any(|names| names.contains_key(&name.name)) {
            let message = format!("no enclosing class has the private name `#{}`", name.name);
            self.refuse(name.span, message, "declare it as a field of the class");
        }
    }

    /// `#name` isn't a value: it is only allowed alone to the left of `in`.
    pub(super) fn private_operand(&mut self, binary: &BinExpr) {
        let is_in = |expr: &Expr| matches!(expr, Expr::Bin(inner) if inner.op == BinaryOp::In && inner.left.is_private_name());
        let is_misplaced = (binary.left.is_private_name() && binary.op != BinaryOp::In)
            || binary.right.is_private_name()
            // In `1 + #a in b`, the sum would be the left side.
            || (binary.op.precedence() >= BinaryOp::In.precedence() && is_in(&binary.right));
        if is_misplaced {
            let hint = "put parentheses around `#name in object`";
            self.refuse(binary.span, "a private name is only allowed alone to the left of `in`", hint);
        }
    }

    pub(super) fn delete(&mut self, argument: &Expr) {
        let member = match without_types(argument) {
            Expr::Member(member) => Some(member),
            Expr::OptChain(chain) => chain.base.as_member(),
            _ => None,
        };
        if let Some(MemberProp::PrivateName(name)) = member.map(|member| &member.prop) {
            let hint = "set it to undefined";
            self.refuse(name.span, "a private field can't be deleted", hint);
        }
    }

    pub(super) fn class(&mut self, class: &Class) {
        class.super_class.visit_with(self);
        let mut names = FxHashMap::default();
        for member in &class.body {
            if let Some((name, private)) = private_member(member) {
                let before = names.insert(name.name.clone(), private);
                let may_share = match (before, private) {
                    (None, _) => true,
                    (Some(Private::Getter { is_static: one }), Private::Setter { is_static: other })
                    | (Some(Private::Setter { is_static: one }), Private::Getter { is_static: other }) => {
                        // A third one can't share it.
                        names.insert(name.name.clone(), Private::Other);
                        one == other
                    }
                    _ => false,
                };
                if !may_share {
                    let message = format!("the class already has the private name `#{}`", name.name);
                    self.refuse(name.span, message, "give one of the two another name");
                }
            }
        }
        self.classes.private.push(names);
        for member in &class.body {
            self.member(member, class.super_class.is_some());
        }
        self.classes.private.pop();
    }

    fn member(&mut self, member: &ClassMember, is_derived: bool) {
        match member {
            ClassMember::Constructor(constructor) => {
                let Some(body) = &constructor.body else { return };
                let parameters = |checker: &mut Self| {
                    constructor.params.iter().for_each(|parameter| checker.constructor_parameter(parameter));
                };
                self.in_method(is_derived, |checker| checker.body(false, parameters, &body.stmts));
            }
            ClassMember::Method(method) => {
                method.key.visit_with(self);
                self.prototype(method.is_static, &method.key);
                self.in_method(false, |checker| checker.function(&method.function));
            }
            ClassMember::PrivateMethod(method) => {
                self.in_method(false, |checker| checker.function(&method.function));
            }
            ClassMember::ClassProp(property) => {
                property.key.visit_with(self);
                if !property.declare && !property.is_abstract {
                    self.prototype(property.is_static, &property.key);
                }
                self.in_method(false, |checker| property.value.visit_with(checker));
            }
            ClassMember::PrivateProp(property) => {
                self.in_method(false, |checker| property.value.visit_with(checker));
            }
            ClassMember::StaticBlock(block) => {
                self.in_method(false, |checker| checker.body(false, |_| {}, &block.body.stmts));
            }
            ClassMember::AutoAccessor(_) | ClassMember::TsIndexSignature(_) | ClassMember::Empty(_) => {}
        }
    }

    fn constructor_parameter(&mut self, parameter: &ParamOrTsParamProp) {
        match parameter {
            ParamOrTsParamProp::Param(parameter) => self.parameter(&parameter.pat),
            ParamOrTsParamProp::TsParamProp(property) => match &property.param {
                TsParamPropParam::Ident(name) => self.declare(&name.id, Kind::Parameter),
                TsParamPropParam::Assign(assign) => {
                    self.declare_pattern(&assign.left, Kind::Parameter);
                    assign.visit_with(self);
                }
            },
        }
    }

    fn prototype(&mut self, is_static: bool, key: &PropName) {
        if is_static && !key.is_computed() && prop_name(key).is_some_and(|name| name == *"prototype") {
            let message = "a static member can't be called `prototype`";
            self.refuse(key.span(), message, "give it another name");
        }
    }
}

fn private_member(member: &ClassMember) -> Option<(&PrivateName, Private)> {
    match member {
        ClassMember::PrivateProp(property) => Some((&property.key, Private::Other)),
        ClassMember::PrivateMethod(method) if method.function.body.is_some() => {
            let is_static = method.is_static;
            let private = match method.kind {
                MethodKind::Getter => Private::Getter { is_static },
                MethodKind::Setter => Private::Setter { is_static },
                MethodKind::Method => Private::Other,
            };
            Some((&method.key, private))
        }
        _ => None,
    }
}
