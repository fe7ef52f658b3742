//! Parameters: a JSON Schema of the capability's input, read off from how the code uses `args`.

mod schema;
mod types;

use swc_common::Spanned;
use swc_ecma_ast::*;
use swc_ecma_visit::{Visit, VisitWith};

use super::bindings::Bindings;
use super::lift::is_secret;
use super::parse::Parsed;
use super::value::{
    Key, Root, Step, as_call, as_member, chain_of, global_root, literal_json, prop_name, static_text, unwrap,
};
use schema::Parameter;
use types::{declare_type, method_type};

pub use schema::Parameters;
pub(crate) use schema::json_type;

/// The schema of what the code expects in `args`.
pub(crate) fn infer(parsed: &Parsed<'_>, bindings: &Bindings) -> Parameters {
    let mut inference = Inference { bindings, root: Parameter::default() };
    for statement in parsed.statements() {
        statement.visit_with(&mut inference);
    }
    Parameters { root: inference.root }
}

struct Inference<'a> {
    bindings: &'a Bindings,
    root: Parameter,
}

impl Inference<'_> {
    /// The steps from `args` to what an expression means; `None` if it doesn't come from `args`.
    fn path(&self, expr: &Expr) -> Option<Vec<Step>> {
        // Most expressions come from elsewhere.
        global_root(self.bindings, expr).filter(|name| **name == *"args")?;
        let chain = chain_of(self.bindings, expr)?;
        let chain = self.bindings.follow_chain(chain)?;
        matches!(&chain.root, Root::Global(name) if *name == *"args").then_some(chain.steps)
    }

    /// The parameter at the end of a path; `None` for `args` itself and behind a key known only when the code runs.
    fn parameter(&mut self, steps: &[Step]) -> Option<&mut Parameter> {
        let mut parameter = &mut self.root;
        for (index, step) in steps.iter().enumerate() {
            if step.optional && index > 0 {
                parameter.optional = true;
            }
            parameter = match &step.key {
                Key::Index(_) => parameter.item(),
                Key::Dynamic => return None,
                // A string and an array have a length, so it says nothing about fields.
                key if index > 0 && key.as_text() == Some("length") => return None,
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

    fn has_type(&mut self, expr: &Expr, name: &'static str) {
        self.note(expr, |parameter| parameter.add_type(name));
    }

    fn may_be_absent(&mut self, expr: &Expr) {
        self.note(expr, |parameter| parameter.optional = true);
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
            match self.parameter(steps) {
                Some(parameter) => declare_type(parameter, &annotation.type_ann),
                None if steps.is_empty() => declare_type(&mut self.root, &annotation.type_ann),
                None => {}
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
                            }
                        }
                        ObjectPatProp::KeyValue(pair) => {
                            if let Some(name) = prop_name(&pair.key) {
                                self.pattern(&pair.value, &inner(Key::Text(name)));
                            }
                        }
                        ObjectPatProp::Rest(_) => {}
                    }
                }
            }
            Pat::Array(array) => {
                self.parameter(&inner(Key::Index(0)));
                for element in array.elems.iter().flatten().filter(|element| !matches!(element, Pat::Rest(_)))
                {
                    self.pattern(element, &inner(Key::Index(0)));
                }
            }
            Pat::Assign(assign) => {
                let name = steps.last().and_then(|step| step.key.as_text()).unwrap_or_default();
                if let Some(parameter) = self.parameter(steps) {
                    parameter.set_default(default_of(name, &assign.right));
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
                        Some(literal) => self.has_type(side, json_type(&literal)),
                        // Two values are compared as numbers, more often than not; added, they can be anything.
                        None if binary.op != Add => self.has_type(side, "number"),
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
                    if let Some(parameter) = self.parameter(&steps) {
                        parameter.optional = true;
                    }
                }
            }
            InstanceOf => {}
        }
    }

    fn equality(&mut self, side: &Expr, other: &Expr) {
        match unwrap(other) {
            Expr::Lit(Lit::Null(_)) => self.may_be_absent(side),
            Expr::Ident(name) if name.sym == *"undefined" => self.may_be_absent(side),
            other => match (unwrap(side), literal_json(other)) {
                (Expr::Unary(unary), Some(serde_json::Value::String(name)))
                    if unary.op == UnaryOp::TypeOf =>
                {
                    match &*name {
                        "string" => self.has_type(&unary.arg, "string"),
                        "number" => self.has_type(&unary.arg, "number"),
                        "boolean" => self.has_type(&unary.arg, "boolean"),
                        "undefined" => self.may_be_absent(&unary.arg),
                        _ => {}
                    }
                }
                (_, Some(literal)) => self.has_type(side, json_type(&literal)),
                _ => {}
            },
        }
    }

    /// What a call says about its callee's object and its arguments; true if the callee was looked at.
    fn call(&mut self, callee: &Expr, args: &[ExprOrSpread]) -> bool {
        let callee = unwrap(callee);
        let Some((member, _, is_optional)) = as_member(callee) else { return false };
        let MemberProp::Ident(method) = &member.prop else { return false };
        if let (Expr::Ident(object), Some(first)) = (unwrap(&member.obj), args.first())
            && self.bindings.binding_at(object.span).is_none()
        {
            match (&*object.sym, &*method.sym) {
                ("Math", _) => args.iter().for_each(|argument| self.has_type(&argument.expr, "number")),
                ("JSON", "parse") => self.has_type(&first.expr, "string"),
                ("Object", "keys" | "values" | "entries") => self.has_type(&first.expr, "object"),
                _ => {}
            }
        }
        match self.path(&member.obj) {
            Some(steps) if !steps.is_empty() => {
                if let Some(parameter) = self.parameter(&steps) {
                    parameter.optional |= is_optional;
                    if let Some(name) = method_type(&method.sym) {
                        parameter.add_type(name);
                    }
                }
                true
            }
            _ => false,
        }
    }

    /// The types in a chain whose fields are noted, what its keys are computed from, and what it starts from.
    fn inside_chain(&mut self, expr: &Expr) {
        let mut expr = expr;
        loop {
            expr = match (as_member(expr), as_cast(expr)) {
                (Some((member, ..)), _) => {
                    if let MemberProp::Computed(computed) = &member.prop {
                        computed.expr.visit_with(self);
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
            match self.parameter(&steps) {
                Some(parameter) => declare_type(parameter, declared),
                None if steps.is_empty() => declare_type(&mut self.root, declared),
                None => {}
            }
        }
    }

    /// `args.x += 1` uses what it changes; `args.x = 1` doesn't.
    fn changed(&mut self, assignment: &AssignExpr) {
        let AssignTarget::Simple(SimpleAssignTarget::Member(member)) = &assignment.left else { return };
        let target = Expr::Member(member.clone());
        match assignment.op {
            AssignOp::NullishAssign | AssignOp::OrAssign => self.fallback(&target, &assignment.right),
            AssignOp::AndAssign => self.may_be_absent(&target),
            AssignOp::AddAssign => match literal_json(&assignment.right) {
                Some(literal) => self.has_type(&target, json_type(&literal)),
                None => drop(self.note(&target, |_| {})),
            },
            _ => self.has_type(&target, "number"),
        }
    }

    /// A condition asks whether something is there, unless what follows is a complaint that it isn't.
    fn condition(&mut self, test: &Expr) {
        match unwrap(test) {
            Expr::Unary(unary) if unary.op == UnaryOp::Bang => self.condition(&unary.arg),
            other => self.may_be_absent(other),
        }
    }
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

/// A default as the schema shows it; a secret is none.
fn default_of(name: &str, default: &Expr) -> Option<serde_json::Value> {
    literal_json(default).filter(|value| !value.as_str().is_some_and(|text| is_secret(name, text)))
}

fn is_complaint(statement: &Stmt) -> bool {
    match statement {
        Stmt::Throw(_) => true,
        Stmt::Block(block) => block.stmts.first().is_some_and(is_complaint),
        _ => false,
    }
}

impl Visit for Inference<'_> {
    fn visit_expr(&mut self, expr: &Expr) {
        if let Some((callee, args, _, is_optional)) = as_call(expr) {
            if is_optional {
                self.may_be_absent(callee);
            }
            if self.call(callee, args) {
                self.inside_chain(callee);
            } else {
                callee.visit_with(self);
            }
            args.visit_with(self);
            return;
        }
        if let Some((inner, declared)) = as_cast(expr) {
            self.declare(inner, declared);
            inner.visit_with(self);
            return;
        }
        match expr {
            Expr::Update(update) => self.has_type(&update.arg, "number"),
            Expr::Assign(assignment) if assignment.op != AssignOp::Assign => self.changed(assignment),
            Expr::Bin(binary) => self.binary(binary),
            Expr::Unary(unary) => match unary.op {
                UnaryOp::Minus | UnaryOp::Plus | UnaryOp::Tilde => self.has_type(&unary.arg, "number"),
                _ => {}
            },
            Expr::Cond(cond) => self.condition(&cond.test),
            Expr::Array(array) => {
                for element in array.elems.iter().flatten().filter(|element| element.spread.is_some()) {
                    self.has_type(&element.expr, "array");
                }
            }
            _ => {}
        }
        if matches!(expr, Expr::Ident(_) | Expr::Member(_) | Expr::OptChain(_)) {
            self.note(expr, |_| {});
            self.inside_chain(expr);
        } else {
            expr.visit_children_with(self);
        }
    }

    fn visit_prop(&mut self, property: &Prop) {
        match property {
            Prop::Shorthand(name) => {
                self.note(&Expr::Ident(name.clone()), |_| {});
            }
            _ => property.visit_children_with(self),
        }
    }

    fn visit_var_declarator(&mut self, declarator: &VarDeclarator) {
        if let Some(init) = &declarator.init {
            // The use in a plain declaration is noted like any other.
            let is_plain = matches!(&declarator.name, Pat::Ident(name) if name.type_ann.is_none());
            if !is_plain && let Some(steps) = self.path(init) {
                self.pattern(&declarator.name, &steps);
            }
            init.visit_with(self);
        }
        declarator.name.visit_with(self);
    }

    fn visit_if_stmt(&mut self, statement: &IfStmt) {
        if !is_complaint(&statement.cons) {
            self.condition(&statement.test);
        }
        statement.visit_children_with(self);
    }

    fn visit_switch_stmt(&mut self, statement: &SwitchStmt) {
        for test in statement.cases.iter().filter_map(|case| case.test.as_deref()) {
            self.equality(&statement.discriminant, test);
        }
        statement.visit_children_with(self);
    }

    fn visit_for_of_stmt(&mut self, statement: &ForOfStmt) {
        self.has_type(&statement.right, "array");
        // Each item has the fields that the loop takes out of it.
        if let (ForHead::VarDecl(declaration), Some(mut steps)) =
            (&statement.left, self.path(&statement.right))
            && let [VarDeclarator { name: pattern @ (Pat::Object(_) | Pat::Array(_)), .. }] =
                &declaration.decls[..]
        {
            steps.push(Step { key: Key::Index(0), span: statement.right.span(), optional: false });
            self.pattern(pattern, &steps);
        }
        statement.visit_children_with(self);
    }

    fn visit_for_in_stmt(&mut self, statement: &ForInStmt) {
        self.has_type(&statement.right, "object");
        statement.visit_children_with(self);
    }

    fn visit_ts_type(&mut self, _: &TsType) {}
}

#[cfg(test)]
mod tests;
