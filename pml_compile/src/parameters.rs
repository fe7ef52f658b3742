//! Infers the JSON Schema of the capability's input from TypeScript types, from the schemas of the tools that it is passed to,
//! and from how the code uses `args`.
//!
//! A parameter is required only if the code can't work without it: a type says that it is present, a tool requires it, or code
//! that always runs would throw. A call that would have worked must not be refused.

mod functions;
mod schema;
mod tools;
mod types;
mod visit;

use std::collections::HashMap;

use serde_json::Value as Json;
use swc_common::{Span, Spanned};
use swc_ecma_ast::*;
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::bindings::Bindings;
use super::lift::is_secret;
use super::link::Lookup;
use super::parse::Parsed;
use super::provides::ToolSchema;
use super::references::References;
use super::value::{
    Chain, Key, Root, Step, as_call, as_member, chain_of, chain_of_name, global_of, global_root,
    literal_json, prop_name, static_text, unwrap,
};
use functions::LocalFunctions;
use schema::{Parameter, Reads};
use types::{DeclaredTypes, method_type};

pub use schema::Parameters;
pub(crate) use schema::json_type;
pub(crate) use tools::Called;

/// The schema of what the code expects in `args`.
pub(crate) fn infer(parsed: &Parsed<'_>, bindings: &Bindings, called: &Called<'_>) -> Parameters {
    let mut inference = Inference {
        bindings,
        called,
        types: DeclaredTypes::of(parsed),
        functions: LocalFunctions::of(parsed, bindings),
        root: Parameter::default(),
        is_certain: true,
        assigned: Vec::new(),
    };
    for statement in parsed.statements() {
        statement.visit_with(&mut inference);
    }
    for (name, before) in &inference.assigned {
        inference.root.replace_field(name, *before);
    }
    Parameters { root: inference.root }
}

/// Whether every object has a member of this name.
fn is_inherited(name: &str) -> bool {
    matches!(
        name,
        "__proto__"
            | "constructor"
            | "hasOwnProperty"
            | "isPrototypeOf"
            | "propertyIsEnumerable"
            | "toLocaleString"
            | "toString"
            | "valueOf"
    )
}

struct Inference<'a> {
    bindings: &'a Bindings,
    called: &'a Called<'a>,
    types: DeclaredTypes<'a>,
    functions: LocalFunctions<'a>,
    root: Parameter,
    /// The visited code always runs, and an exception in it ends the run.
    is_certain: bool,
    /// The fields of `args` that the code assigns to, and what it has read of them by then.
    assigned: Vec<(String, Reads)>,
}

impl Inference<'_> {
    fn maybe(&mut self, look: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.is_certain, false);
        look(self);
        self.is_certain = before;
    }

    /// Visits code that a `?.` in the chain may skip.
    fn skippable(&mut self, chain: &Expr, look: impl FnOnce(&mut Self)) {
        if chain.is_opt_chain() { self.maybe(look) } else { look(self) }
    }

    /// Whether an expression is `args` itself.
    fn is_whole(&self, expr: &Expr) -> bool {
        self.path(expr).is_some_and(|steps| steps.is_empty())
    }

    /// The code would throw without it.
    fn needs(&mut self, expr: &Expr) {
        let is_certain = self.is_certain;
        self.note(expr, |parameter| parameter.needed |= is_certain);
    }

    /// The code checks for it and throws.
    fn insists(&mut self, expr: &Expr) {
        let is_certain = self.is_certain;
        self.note(expr, |parameter| parameter.insisted |= is_certain);
    }

    /// The steps from `args` to the value of an expression; `None` if it doesn't come from `args`.
    fn path(&self, expr: &Expr) -> Option<Vec<Step>> {
        // Most expressions come from elsewhere.
        global_root(self.bindings, expr).filter(|name| **name == *"args")?;
        self.steps(chain_of(self.bindings, expr)?)
    }

    fn steps(&self, chain: Chain) -> Option<Vec<Step>> {
        let chain = self.bindings.follow_chain(chain)?;
        matches!(&chain.root, Root::Global(name) if *name == *"args").then_some(chain.steps)
    }

    /// The parameter at the end of a path; `None` for `args` itself and after a key known only at run time.
    fn parameter(&mut self, steps: &[Step]) -> Option<&mut Parameter> {
        let mut is_certain = self.is_certain;
        let mut parameter = &mut self.root;
        for (index, step) in steps.iter().enumerate() {
            if index > 0 {
                parameter.optional |= step.optional;
                parameter.needed |= is_certain && !step.optional;
            }
            parameter = match &step.key {
                // A requirement of one element needn't hold for the others.
                Key::Index(index) => {
                    is_certain = false;
                    parameter.element(*index)
                }
                Key::Dynamic => {
                    parameter.is_open = true;
                    return None;
                }
                // Strings and arrays have a length, so it isn't a field.
                key if index > 0 && key.as_text() == Some("length") => return None,
                key if key.as_text().is_some_and(is_inherited) => return None,
                key => parameter.field(key.as_text()?),
            };
        }
        if steps.is_empty() { None } else { Some(parameter) }
    }

    fn note(&mut self, expr: &Expr, say: impl FnOnce(&mut Parameter)) -> bool {
        let Some(steps) = self.path(expr) else { return false };
        if let Some(parameter) = self.parameter(&steps) {
            say(parameter);
        }
        true
    }

    /// Notes that a value is used.
    fn used(&mut self, expr: &Expr) {
        if let Some(steps) = self.path(expr) {
            self.used_at(&steps);
        }
    }

    fn used_at(&mut self, steps: &[Step]) {
        self.root.is_open |= steps.is_empty();
        self.parameter(steps);
    }

    fn has_type(&mut self, expr: &Expr, name: &'static str) {
        self.note(expr, |parameter| parameter.add_type(name));
    }

    fn may_be_absent(&mut self, expr: &Expr) {
        self.note(expr, |parameter| parameter.optional = true);
    }

    fn may_be_absent_at(&mut self, steps: &[Step]) {
        if let Some(parameter) = self.parameter(steps) {
            parameter.optional = true;
        }
    }

    fn fallback(&mut self, expr: &Expr, default: &Expr) {
        let Some(steps) = self.path(expr) else { return };
        let name = steps.last().and_then(|step| step.key.as_text()).unwrap_or_default().to_owned();
        if let Some(parameter) = self.parameter(&steps) {
            parameter.set_default(default_of(&name, default));
        }
    }

    /// `const { a, b: { c } = {}, d = 1 }: T = args.x`
    fn pattern(&mut self, pattern: &Pat, steps: &[Step]) {
        let annotation = match pattern {
            Pat::Ident(name) => name.type_ann.as_deref(),
            Pat::Object(object) => object.type_ann.as_deref(),
            Pat::Array(array) => array.type_ann.as_deref(),
            _ => None,
        };
        if let Some(annotation) = annotation {
            self.declare_at(steps, &annotation.type_ann);
        }
        // Destructuring undefined throws.
        if matches!(pattern, Pat::Object(_) | Pat::Array(_)) {
            let is_certain = self.is_certain;
            if let Some(parameter) = self.parameter(steps) {
                parameter.needed |= is_certain;
            }
        }
        let inner = |key: Key| {
            let mut inner = steps.to_vec();
            inner.push(Step { key, span: pattern.span(), optional: false });
            inner
        };
        match pattern {
            Pat::Object(object) => {
                for property in &object.props {
                    match property {
                        ObjectPatProp::Assign(assign) => {
                            let path = inner(Key::Name(assign.key.id.sym.clone()));
                            let parameter = self.parameter(&path);
                            if let (Some(parameter), Some(default)) = (parameter, &assign.value) {
                                parameter.set_default(default_of(&assign.key.id.sym, default));
                                parameter.replaced = true;
                            }
                        }
                        ObjectPatProp::KeyValue(pair) => match prop_name(&pair.key) {
                            Some(name) => self.pattern(&pair.value, &inner(Key::Text(name))),
                            None => self.root.is_open |= steps.is_empty(),
                        },
                        ObjectPatProp::Rest(_) => self.root.is_open |= steps.is_empty(),
                    }
                }
            }
            Pat::Array(array) => {
                for (index, element) in array.elems.iter().enumerate() {
                    match element {
                        None | Some(Pat::Rest(_)) => {}
                        Some(Pat::Assign(assign)) => self.pattern(&assign.left, &inner(Key::Index(index))),
                        Some(element) => self.pattern(element, &inner(Key::Index(index))),
                    }
                }
            }
            Pat::Assign(assign) => {
                let name = steps.last().and_then(|step| step.key.as_text()).unwrap_or_default();
                if let Some(parameter) = self.parameter(steps) {
                    parameter.set_default(default_of(name, &assign.right));
                    parameter.replaced = true;
                }
                self.pattern(&assign.left, steps);
            }
            _ => {
                self.parameter(steps);
            }
        }
    }

    fn binary(&mut self, binary: &BinExpr) {
        use BinaryOp::*;
        let sides = [(&binary.left, &binary.right), (&binary.right, &binary.left)];
        match binary.op {
            Sub | Mul | Div | Mod | Exp | BitAnd | BitOr | BitXor | LShift | RShift | ZeroFillRShift => {
                sides.iter().for_each(|(side, _)| self.has_type(side, "number"));
            }
            Lt | LtEq | Gt | GtEq | Add => {
                for (side, other) in sides {
                    match literal_json(other) {
                        // Anything can be added to a text.
                        Some(Json::String(_)) if binary.op == Add => {}
                        Some(literal) => self.has_type(side, json_type(&literal)),
                        // Numbers are compared, and strings like dates; `+` takes anything.
                        None if binary.op != Add => {
                            self.has_type(side, "number");
                            self.has_type(side, "string");
                        }
                        None => {}
                    }
                }
            }
            EqEq | EqEqEq | NotEq | NotEqEq => {
                sides.iter().for_each(|(side, other)| self.equality(side, other));
            }
            NullishCoalescing | LogicalOr => self.fallback(&binary.left, &binary.right),
            LogicalAnd => self.may_be_absent(&binary.left),
            In => {
                if let (Some(name), Some(mut steps)) = (static_text(&binary.left), self.path(&binary.right)) {
                    steps.push(Step { key: Key::Text(name.into()), span: binary.span, optional: false });
                    self.may_be_absent_at(&steps);
                }
                if !self.is_whole(&binary.right) {
                    self.needs(&binary.right);
                }
            }
            InstanceOf => drop(self.note(&binary.left, Parameter::ask_type)),
        }
    }

    /// Visits both sides; the right one of `&&`, `||` and `??` may not run. A test of `args` itself doesn't pass it on.
    fn operands(&mut self, binary: &BinExpr) {
        use BinaryOp::*;
        let only_asked = is_equality(binary.op) || matches!(binary.op, LogicalAnd | InstanceOf);
        if only_asked && self.is_whole(&binary.left) {
            self.inside_chain(&binary.left);
        } else {
            self.compared(&binary.left, binary.op);
        }
        let is_key_known = static_text(&binary.left).is_some();
        match binary.op {
            LogicalAnd | LogicalOr | NullishCoalescing => {
                self.maybe(|inside| binary.right.visit_with(inside));
            }
            In if is_key_known && self.is_whole(&binary.right) => self.inside_chain(&binary.right),
            op if is_equality(op) && self.is_whole(&binary.right) => self.inside_chain(&binary.right),
            _ => self.compared(&binary.right, binary.op),
        }
    }

    /// Visits an operand; comparisons with `typeof` are handled already.
    fn compared(&mut self, operand: &Expr, op: BinaryOp) {
        match unwrap(operand) {
            Expr::Unary(unary) if unary.op == UnaryOp::TypeOf && is_equality(op) => {
                unary.arg.visit_with(self);
            }
            _ => operand.visit_with(self),
        }
    }

    fn equality(&mut self, side: &Expr, other: &Expr) {
        match unwrap(other) {
            Expr::Lit(Lit::Null(_)) => self.has_type(side, "null"),
            Expr::Ident(name) if name.sym == *"undefined" => self.may_be_absent(side),
            other => match (unwrap(side), literal_json(other)) {
                (Expr::Unary(unary), Some(serde_json::Value::String(name)))
                    if unary.op == UnaryOp::TypeOf =>
                {
                    match &*name {
                        "undefined" => self.may_be_absent(&unary.arg),
                        _ => drop(self.note(&unary.arg, Parameter::ask_type)),
                    }
                }
                (_, Some(literal)) => self.has_type(side, json_type(&literal)),
                _ => {}
            },
        }
    }

    /// What a call says about its callee's object and its arguments; true if the callee was handled.
    fn call(&mut self, callee: &Expr, args: &[ExprOrSpread]) -> bool {
        let callee = unwrap(callee);
        let Some((member, _, is_optional)) = as_member(callee) else { return false };
        let MemberProp::Ident(method) = &member.prop else { return false };
        if let (Expr::Ident(object), Some(first)) = (unwrap(&member.obj), args.first())
            && self.bindings.binding_at(object.span).is_none()
        {
            match (&*object.sym, &*method.sym) {
                ("Math", _) => {
                    for argument in args {
                        match argument.spread {
                            None => self.has_type(&argument.expr, "number"),
                            Some(_) => drop(self.note(&argument.expr, |list| {
                                list.add_type("array");
                                list.item().add_type("number");
                            })),
                        }
                    }
                }
                ("JSON", "parse") => {
                    self.has_type(&first.expr, "string");
                    self.needs(&first.expr);
                }
                ("Object", "keys" | "values" | "entries") => {
                    self.has_type(&first.expr, "object");
                    self.needs(&first.expr);
                }
                ("Array", "isArray") => drop(self.note(&first.expr, Parameter::ask_type)),
                _ => {}
            }
        }
        match self.path(&member.obj) {
            Some(mut steps) if steps.is_empty() => {
                let name = args.first().and_then(|argument| static_text(&argument.expr));
                let Some(name) = name.filter(|_| method.sym == *"hasOwnProperty") else { return false };
                steps.push(Step { key: Key::Text(name.into()), span: member.span, optional: false });
                self.may_be_absent_at(&steps);
                true
            }
            Some(steps) => {
                let is_certain = self.is_certain;
                if let Some(parameter) = self.parameter(&steps) {
                    parameter.optional |= is_optional;
                    parameter.needed |= is_certain;
                    if let Some(name) = method_type(&method.sym) {
                        parameter.add_type(name);
                    }
                }
                true
            }
            _ => false,
        }
    }

    /// Visits the casts in a chain, its computed keys and its root; its fields are noted already.
    fn inside_chain(&mut self, expr: &Expr) {
        let mut expr = expr;
        loop {
            expr = match (as_member(expr), as_cast(expr)) {
                (Some((member, ..)), _) => {
                    if let MemberProp::Computed(computed) = &member.prop {
                        self.skippable(expr, |inside| computed.expr.visit_with(inside));
                    }
                    &member.obj
                }
                (None, Some((inner, declared))) => {
                    self.declare(inner, declared);
                    inner
                }
                (None, None) => match expr {
                    Expr::Paren(inner) => &inner.expr,
                    Expr::TsNonNull(inner) => &inner.expr,
                    Expr::Await(inner) => &inner.arg,
                    Expr::Ident(_) => return,
                    root => return root.visit_with(self),
                },
            };
        }
    }

    fn declare(&mut self, expr: &Expr, declared: &TsType) {
        if let Some(steps) = self.path(expr) {
            self.declare_at(&steps, declared);
        }
    }

    fn declare_at(&mut self, steps: &[Step], declared: &TsType) {
        // In code that may not run, a type says what it is, not that it is present.
        let is_certain = self.is_certain || steps.is_empty();
        let types = std::mem::take(&mut self.types);
        let parameter = if steps.is_empty() { Some(&mut self.root) } else { self.parameter(steps) };
        if let Some(parameter) = parameter {
            let needed = parameter.needed;
            types.declare(parameter, declared);
            parameter.needed = needed || (parameter.needed && is_certain);
        }
        self.types = types;
    }

    /// The name in `args.name`.
    fn field_of_args(&self, target: &Expr) -> Option<String> {
        match &self.path(target)?[..] {
            [step] => step.key.as_text().map(str::to_owned),
            _ => None,
        }
    }

    /// Notes `args.x = …`, after what is assigned.
    fn assigned(&mut self, assignment: &AssignExpr) {
        let AssignTarget::Simple(SimpleAssignTarget::Member(member)) = &assignment.left else { return };
        if let Some(name) = self.field_of_args(&Expr::Member(member.clone())) {
            self.replaced(name);
        }
    }

    fn replaced(&mut self, name: String) {
        let before = self.root.reads_of(&name);
        self.assigned.push((name, before));
    }

    /// Notes `Object.assign(args, { x: … })`, after its arguments.
    fn assigned_by_call(&mut self, callee: &Expr, args: &[ExprOrSpread]) {
        let (Some((member, ..)), [target, sources @ ..]) = (as_member(unwrap(callee)), args) else { return };
        let (Expr::Ident(object), MemberProp::Ident(method)) = (unwrap(&member.obj), &member.prop) else {
            return;
        };
        if object.sym != *"Object" || method.sym != *"assign" || !self.is_whole(&target.expr) {
            return;
        }
        for source in sources {
            let Expr::Object(literal) = unwrap(&source.expr) else { continue };
            for property in literal.props.iter().filter_map(PropOrSpread::as_prop) {
                let name = match &**property {
                    Prop::Shorthand(name) => Some(name.sym.to_string()),
                    Prop::KeyValue(pair) => prop_name(&pair.key).map(|name| name.to_string()),
                    _ => None,
                };
                name.into_iter().for_each(|name| self.replaced(name));
            }
        }
    }

    /// `args.x += 1` reads what it changes; `args.x = 1` doesn't.
    fn changed(&mut self, assignment: &AssignExpr) {
        let AssignTarget::Simple(SimpleAssignTarget::Member(member)) = &assignment.left else { return };
        if global_root(self.bindings, &member.obj).is_none_or(|name| **name != *"args") {
            return;
        }
        let target = Expr::Member(member.clone());
        match assignment.op {
            AssignOp::Assign => {}
            AssignOp::NullishAssign | AssignOp::OrAssign => self.fallback(&target, &assignment.right),
            AssignOp::AndAssign => self.may_be_absent(&target),
            AssignOp::AddAssign => match literal_json(&assignment.right) {
                Some(Json::String(_)) | None => drop(self.note(&target, |_| {})),
                Some(literal) => self.has_type(&target, json_type(&literal)),
            },
            _ => self.has_type(&target, "number"),
        }
    }

    /// A condition tests whether a value is present.
    fn condition(&mut self, test: &Expr) {
        match unwrap(test) {
            Expr::Unary(unary) if unary.op == UnaryOp::Bang => self.condition(&unary.arg),
            other if self.is_whole(other) => {}
            other => self.may_be_absent(other),
        }
    }

    /// The test of an `if` that throws: what it tests for must be present.
    fn complaint(&mut self, test: &Expr) {
        use BinaryOp::*;
        match unwrap(test) {
            Expr::Unary(unary) if unary.op == UnaryOp::Bang && !self.is_whole(&unary.arg) => {
                self.insists(&unary.arg);
            }
            Expr::Bin(binary) if binary.op == LogicalOr => {
                self.complaint(&binary.left);
                self.complaint(&binary.right);
            }
            Expr::Bin(binary) if is_equality(binary.op) => {
                for (side, other) in [(&binary.left, &binary.right), (&binary.right, &binary.left)] {
                    let is_equal = matches!(binary.op, EqEq | EqEqEq);
                    match (unwrap(side), unwrap(other)) {
                        (Expr::Unary(unary), other) if unary.op == UnaryOp::TypeOf => {
                            if let Some(Json::String(name)) = literal_json(other)
                                && (name == "undefined") == is_equal
                            {
                                self.insists(&unary.arg);
                            }
                        }
                        (side, Expr::Lit(Lit::Null(_))) if is_equal => self.insists(side),
                        (side, Expr::Ident(name)) if is_equal && name.sym == *"undefined" => {
                            self.insists(side);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_equality(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, EqEq | EqEqEq | NotEq | NotEqEq)
}

/// `x as T`, `x satisfies T` and `<T>x`
fn as_cast(expr: &Expr) -> Option<(&Expr, &TsType)> {
    match expr {
        Expr::TsAs(cast) => Some((&cast.expr, &cast.type_ann)),
        Expr::TsSatisfies(cast) => Some((&cast.expr, &cast.type_ann)),
        Expr::TsTypeAssertion(cast) => Some((&cast.expr, &cast.type_ann)),
        _ => None,
    }
}

/// A default for the schema; secrets are left out.
fn default_of(name: &str, default: &Expr) -> Option<serde_json::Value> {
    literal_json(default).filter(|value| !value.as_str().is_some_and(|text| is_secret(name, text)))
}

#[cfg(test)]
mod tests;
