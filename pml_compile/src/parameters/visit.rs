//! The visitor: what each kind of statement and expression says about parameters, and what always runs.

use super::*;

impl Visit for Inference<'_> {
    fn visit_expr(&mut self, expr: &Expr) {
        if let Some((callee, args, span, is_optional)) = as_call(expr) {
            if self.given_to_function(callee, args) {
                return;
            }
            if is_optional {
                self.may_be_absent(callee);
            }
            if self.call(callee, args) {
                self.inside_chain(callee);
            } else {
                if !is_optional && let Some(steps) = self.path(callee).filter(|steps| !steps.is_empty()) {
                    let is_certain = self.is_certain;
                    self.parameter(&steps).into_iter().for_each(|parameter| parameter.needed |= is_certain);
                }
                callee.visit_with(self);
            }
            self.skippable(expr, |inside| inside.arguments(args, span));
            return self.assigned_by_call(callee, args);
        }
        if let Some((inner, declared)) = as_cast(expr) {
            self.declare(inner, declared);
            inner.visit_with(self);
            return;
        }
        match expr {
            Expr::TsNonNull(asserted) => self.needs(&asserted.expr),
            Expr::Update(update) => self.has_type(&update.arg, "number"),
            Expr::Assign(assignment) => {
                self.changed(assignment);
                assignment.left.visit_with(self);
                match assignment.op {
                    AssignOp::AndAssign | AssignOp::OrAssign | AssignOp::NullishAssign => {
                        self.maybe(|inside| assignment.right.visit_with(inside));
                    }
                    _ => assignment.right.visit_with(self),
                }
                return self.assigned(assignment);
            }
            Expr::Bin(binary) => {
                self.binary(binary);
                return self.operands(binary);
            }
            Expr::Unary(unary) => match unary.op {
                // `+x` makes a number of what isn't one.
                UnaryOp::Minus | UnaryOp::Tilde => self.has_type(&unary.arg, "number"),
                UnaryOp::TypeOf => drop(self.note(&unary.arg, Parameter::ask_type)),
                UnaryOp::Bang if self.is_whole(&unary.arg) => return self.inside_chain(&unary.arg),
                _ => {}
            },
            Expr::Cond(cond) => {
                self.condition(&cond.test);
                cond.test.visit_with(self);
                return self.maybe(|inside| {
                    cond.cons.visit_with(inside);
                    cond.alt.visit_with(inside);
                });
            }
            Expr::Array(array) => {
                for element in array.elems.iter().flatten().filter(|element| element.spread.is_some()) {
                    self.has_type(&element.expr, "array");
                    self.needs(&element.expr);
                }
            }
            _ => {}
        }
        if matches!(expr, Expr::Ident(_) | Expr::Member(_) | Expr::OptChain(_)) {
            self.used(expr);
            self.inside_chain(expr);
        } else {
            expr.visit_children_with(self);
        }
    }

    fn visit_prop(&mut self, property: &Prop) {
        match property {
            Prop::Shorthand(name) => {
                if global_of(self.bindings, name).is_some_and(|name| **name == *"args")
                    && let Some(steps) = self.steps(chain_of_name(self.bindings, name))
                {
                    self.used_at(&steps);
                }
            }
            _ => property.visit_children_with(self),
        }
    }

    fn visit_assign_pat(&mut self, pattern: &AssignPat) {
        pattern.left.visit_with(self);
        self.maybe(|inside| pattern.right.visit_with(inside));
    }

    fn visit_assign_pat_prop(&mut self, property: &AssignPatProp) {
        self.maybe(|inside| property.value.visit_with(inside));
    }

    fn visit_var_declarator(&mut self, declarator: &VarDeclarator) {
        if let Some(init) = &declarator.init {
            let given = without_fallback(init);
            let is_followed = match &declarator.name {
                Pat::Ident(name) => self
                    .bindings
                    .binding_at(name.id.span)
                    .is_some_and(|binding| self.bindings.value(binding).is_some()),
                _ => true,
            };
            match self.path(given) {
                Some(steps) if is_followed => {
                    // A plain declaration is a use like any other.
                    self.pattern(&declarator.name, &steps);
                    if !std::ptr::eq(given, &**init) {
                        self.may_be_absent_at(&steps);
                    }
                    self.inside_chain(given);
                }
                _ => init.visit_with(self),
            }
        }
        declarator.name.visit_with(self);
    }

    fn visit_stmt(&mut self, statement: &Stmt) {
        statement.visit_children_with(self);
        // Code after a branch that may return doesn't always run.
        if self.is_certain && may_return(statement) {
            self.is_certain = false;
        }
    }

    fn visit_if_stmt(&mut self, statement: &IfStmt) {
        if is_complaint(&statement.cons) {
            self.complaint(&statement.test);
        } else {
            self.condition(&statement.test);
        }
        statement.test.visit_with(self);
        self.maybe(|inside| {
            statement.cons.visit_with(inside);
            statement.alt.visit_with(inside);
        });
    }

    fn visit_while_stmt(&mut self, statement: &WhileStmt) {
        statement.test.visit_with(self);
        self.maybe(|inside| statement.body.visit_with(inside));
    }

    // A `break` or `continue` can skip the rest of it.
    fn visit_do_while_stmt(&mut self, statement: &DoWhileStmt) {
        self.maybe(|inside| statement.visit_children_with(inside));
    }

    fn visit_for_stmt(&mut self, statement: &ForStmt) {
        statement.init.visit_with(self);
        statement.test.visit_with(self);
        self.maybe(|inside| {
            statement.update.visit_with(inside);
            statement.body.visit_with(inside);
        });
    }

    fn visit_try_stmt(&mut self, statement: &TryStmt) {
        self.maybe(|inside| statement.visit_children_with(inside));
    }

    fn visit_labeled_stmt(&mut self, statement: &LabeledStmt) {
        self.maybe(|inside| statement.visit_children_with(inside));
    }

    fn visit_function(&mut self, function: &Function) {
        self.maybe(|inside| function.visit_children_with(inside));
    }

    fn visit_arrow_expr(&mut self, function: &ArrowExpr) {
        self.maybe(|inside| function.visit_children_with(inside));
    }

    fn visit_class(&mut self, class: &Class) {
        self.maybe(|inside| class.visit_children_with(inside));
    }

    fn visit_switch_stmt(&mut self, statement: &SwitchStmt) {
        for test in statement.cases.iter().filter_map(|case| case.test.as_deref()) {
            self.equality(&statement.discriminant, test);
        }
        statement.discriminant.visit_with(self);
        self.maybe(|inside| statement.cases.visit_with(inside));
    }

    fn visit_for_of_stmt(&mut self, statement: &ForOfStmt) {
        self.has_type(&statement.right, "array");
        self.needs(&statement.right);
        // Each item has the fields that the loop destructures.
        if let (ForHead::VarDecl(declaration), Some(mut steps)) =
            (&statement.left, self.path(&statement.right))
            && let [VarDeclarator { name: pattern @ (Pat::Object(_) | Pat::Array(_)), .. }] =
                &declaration.decls[..]
        {
            steps.push(Step { key: Key::Index(0), span: statement.right.span(), optional: false });
            self.pattern(pattern, &steps);
        }
        statement.right.visit_with(self);
        self.maybe(|inside| {
            statement.left.visit_with(inside);
            statement.body.visit_with(inside);
        });
    }

    fn visit_for_in_stmt(&mut self, statement: &ForInStmt) {
        self.has_type(&statement.right, "object");
        statement.right.visit_with(self);
        self.maybe(|inside| {
            statement.left.visit_with(inside);
            statement.body.visit_with(inside);
        });
    }

    fn visit_ts_type(&mut self, _: &TsType) {}
}

/// For destructuring, `x ?? {}` and `x || {}` are `x`.
fn without_fallback(expr: &Expr) -> &Expr {
    match unwrap(expr) {
        Expr::Bin(binary)
            if matches!(binary.op, BinaryOp::NullishCoalescing | BinaryOp::LogicalOr)
                && matches!(unwrap(&binary.right), Expr::Object(object) if object.props.is_empty()) =>
        {
            &binary.left
        }
        _ => expr,
    }
}

/// Whether a statement may return from the code.
fn may_return(statement: &Stmt) -> bool {
    struct Returns(bool);
    impl Visit for Returns {
        noop_visit_type!();
        fn visit_return_stmt(&mut self, _: &ReturnStmt) {
            self.0 = true;
        }
        fn visit_expr(&mut self, _: &Expr) {}
        fn visit_function(&mut self, _: &Function) {}
        fn visit_class(&mut self, _: &Class) {}
    }
    let mut returns = Returns(false);
    statement.visit_with(&mut returns);
    returns.0
}

fn is_complaint(statement: &Stmt) -> bool {
    match statement {
        Stmt::Throw(_) => true,
        Stmt::Block(block) => block.stmts.first().is_some_and(is_complaint),
        _ => false,
    }
}
