//! The visitor that collects bindings: it declares the names of a scope before it visits the scope's contents.

use rustc_hash::FxHashMap;
use swc_atoms::Atom;
use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::*;
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::patterns::{PatternNames, Vars, each_name};
use super::{Binding, BindingId, Bindings, ByPosition, MAX_VALUE};
use crate::parse::Parsed;
use crate::value::{Draft, Key, Step, draft_of, prop_name, select};

struct Scope {
    span: Span,
    /// The length of `hidden` when this scope was entered.
    hidden: usize,
}

pub(super) struct Binder {
    found: Bindings,
    scopes: Vec<Scope>,
    /// The current binding of each name, and the depth of the scope that declares it.
    names: FxHashMap<Atom, (BindingId, usize)>,
    /// Shadowed bindings, restored at the end of the scope that shadows them.
    hidden: Vec<(Atom, Option<(BindingId, usize)>)>,
    /// Whether there is any `var` to look for.
    has_var: bool,
}

impl Binder {
    pub(super) fn bind(parsed: &Parsed<'_>) -> Bindings {
        let whole = Span::new(BytePos(1), BytePos(1 + parsed.code.len() as u32));
        let mut binder = Self {
            found: Bindings::default(),
            scopes: Vec::with_capacity(16),
            names: FxHashMap::with_capacity_and_hasher(32, Default::default()),
            hidden: Vec::with_capacity(32),
            has_var: parsed.marks.has_var,
        };
        binder.found.by_position = ByPosition::of(parsed.code);
        binder.found.list.reserve(32);
        binder.in_scope(whole, |binder| {
            for statement in parsed.statements() {
                binder.hoist_statement(statement);
                binder.hoist_vars(statement);
            }
            for statement in parsed.statements() {
                statement.visit_with(binder);
            }
        });
        binder.found
    }

    fn in_scope(&mut self, span: Span, inside: impl FnOnce(&mut Self)) {
        self.scopes.push(Scope { span, hidden: self.hidden.len() });
        inside(self);
        let Some(scope) = self.scopes.pop() else { return };
        for (name, meaning) in self.hidden.drain(scope.hidden..).rev() {
            match meaning {
                Some(meaning) => self.names.insert(name, meaning),
                None => self.names.remove(&name),
            };
        }
    }

    fn declare(&mut self, name: &Ident) {
        let Some(scope) = self.scopes.last() else { return };
        let depth = self.scopes.len();
        let id = match self.names.get(&name.sym) {
            Some((id, at)) if *at == depth => *id,
            _ => {
                let list = &mut self.found.list;
                list.push(Binding::default());
                let id = list.len() - 1;
                let before = self.names.insert(name.sym.clone(), (id, depth));
                self.hidden.push((name.sym.clone(), before));
                id
            }
        };
        self.found.by_position.insert(name.span.lo, id);
        if let Some(scopes) = self.found.shadowed.scopes(&name.sym) {
            scopes.push(scope.span);
        }
    }

    fn declare_pattern(&mut self, pattern: &Pat) {
        each_name(pattern, &mut |name| self.declare(name));
    }

    fn declare_variables(&mut self, declaration: &VarDecl) {
        for declarator in &declaration.decls {
            self.declare_pattern(&declarator.name);
        }
    }

    /// Declares the block-scoped names of a statement.
    fn hoist_statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Decl(Decl::Class(class)) => self.declare(&class.ident),
            Stmt::Decl(Decl::Fn(function)) => self.declare(&function.ident),
            Stmt::Decl(Decl::TsEnum(declaration)) => self.declare(&declaration.id),
            Stmt::Decl(Decl::Var(declaration)) if declaration.kind != VarDeclKind::Var => {
                self.declare_variables(declaration);
            }
            Stmt::Decl(Decl::Using(declaration)) => {
                for declarator in &declaration.decls {
                    self.declare_pattern(&declarator.name);
                }
            }
            _ => {}
        }
    }

    /// Declares the function-scoped names of a statement.
    fn hoist_vars(&mut self, statement: &Stmt) {
        if !self.has_var {
            return;
        }
        let mut vars = Vars { names: Vec::new() };
        statement.visit_with(&mut vars);
        for name in &vars.names {
            self.declare(name);
        }
    }

    fn function_body(&mut self, statements: &[Stmt]) {
        for statement in statements {
            self.hoist_statement(statement);
            self.hoist_vars(statement);
        }
        statements.visit_with(self);
    }

    fn mark_reassigned(&mut self, name: &Ident) {
        if let Some(id) = self.found.binding_at(name.span) {
            self.found.list[id].reassigned = true;
        }
    }

    fn define(&mut self, pattern: &Pat, given: Option<&Draft>) {
        match pattern {
            Pat::Ident(name) => self.set_value(&name.id, given.cloned()),
            Pat::Assign(assign) => {
                if let Pat::Ident(name) = &*assign.left {
                    self.set_value(&name.id, given.cloned());
                } else {
                    self.define(&assign.left, None);
                }
            }
            Pat::Array(array) => {
                for (index, element) in array.elems.iter().enumerate() {
                    if let Some(element) = element {
                        let step = Step { key: Key::Index(index), span: element.span(), optional: false };
                        let inner = given.filter(|_| !matches!(element, Pat::Rest(_)));
                        self.define(element, inner.and_then(|value| select(value, &[step])).as_ref());
                    }
                }
            }
            Pat::Object(object) => {
                for property in &object.props {
                    self.define_property(property, given);
                }
            }
            Pat::Rest(rest) => self.define(&rest.arg, None),
            Pat::Expr(_) | Pat::Invalid(_) => {}
        }
    }

    fn define_property(&mut self, property: &ObjectPatProp, given: Option<&Draft>) {
        let field = |key: Key, span: Span| {
            let step = Step { key, span, optional: false };
            given.and_then(|value| select(value, &[step]))
        };
        match property {
            ObjectPatProp::KeyValue(pair) => {
                let inner = prop_name(&pair.key).and_then(|name| field(Key::Text(name), pair.span()));
                self.define(&pair.value, inner.as_ref());
            }
            ObjectPatProp::Assign(assign) => {
                let inner = field(Key::Name(assign.key.id.sym.clone()), assign.span);
                self.set_value(&assign.key.id, inner);
            }
            ObjectPatProp::Rest(_) => {}
        }
    }

    fn set_value(&mut self, name: &Ident, value: Option<Draft>) {
        if let Some(id) = self.found.binding_at(name.span) {
            let binding = &mut self.found.list[id];
            // A second declaration of a `var` reassigns it.
            binding.reassigned |= binding.value.is_some();
            binding.value = value;
        }
    }
}

impl Visit for Binder {
    noop_visit_type!();

    fn visit_ident(&mut self, name: &Ident) {
        if let Some(&(id, _)) = self.names.get(&name.sym) {
            self.found.by_position.insert(name.span.lo, id);
        }
    }

    fn visit_function(&mut self, function: &Function) {
        self.in_scope(function.span, |binder| {
            for parameter in &function.params {
                binder.declare_pattern(&parameter.pat);
            }
            function.params.visit_with(binder);
            if let Some(body) = &function.body {
                binder.function_body(&body.stmts);
            }
        });
    }

    fn visit_arrow_expr(&mut self, arrow: &ArrowExpr) {
        self.in_scope(arrow.span, |binder| {
            for parameter in &arrow.params {
                binder.declare_pattern(parameter);
            }
            arrow.params.visit_with(binder);
            match &*arrow.body {
                ArrowFunctionBody::FunctionBody(body) => binder.function_body(&body.stmts),
                ArrowFunctionBody::Expr(expr) => expr.visit_with(binder),
            }
        });
    }

    fn visit_constructor(&mut self, constructor: &Constructor) {
        self.in_scope(constructor.span, |binder| {
            for parameter in &constructor.params {
                match parameter {
                    ParamOrTsParamProp::Param(parameter) => binder.declare_pattern(&parameter.pat),
                    ParamOrTsParamProp::TsParamProp(property) => match &property.param {
                        TsParamPropParam::Ident(name) => binder.declare(&name.id),
                        TsParamPropParam::Assign(assign) => binder.declare_pattern(&assign.left),
                    },
                }
            }
            constructor.params.visit_with(binder);
            if let Some(body) = &constructor.body {
                binder.function_body(&body.stmts);
            }
        });
    }

    fn visit_fn_expr(&mut self, function: &FnExpr) {
        self.in_scope(function.function.span, |binder| {
            if let Some(name) = &function.ident {
                binder.declare(name);
            }
            function.function.visit_with(binder);
        });
    }

    fn visit_class_expr(&mut self, class: &ClassExpr) {
        self.in_scope(class.class.span, |binder| {
            if let Some(name) = &class.ident {
                binder.declare(name);
            }
            class.class.visit_with(binder);
        });
    }

    fn visit_static_block(&mut self, block: &StaticBlock) {
        self.in_scope(block.span, |binder| binder.function_body(&block.body.stmts));
    }

    fn visit_block_stmt(&mut self, block: &BlockStmt) {
        self.in_scope(block.span, |binder| {
            for statement in &block.stmts {
                binder.hoist_statement(statement);
            }
            block.stmts.visit_with(binder);
        });
    }

    fn visit_switch_stmt(&mut self, switch: &SwitchStmt) {
        switch.discriminant.visit_with(self);
        self.in_scope(switch.span, |binder| {
            for statement in switch.cases.iter().flat_map(|case| &case.cons) {
                binder.hoist_statement(statement);
            }
            switch.cases.visit_with(binder);
        });
    }

    fn visit_catch_clause(&mut self, clause: &CatchClause) {
        self.in_scope(clause.span, |binder| {
            if let Some(parameter) = &clause.param {
                binder.declare_pattern(parameter);
            }
            clause.visit_children_with(binder);
        });
    }

    fn visit_for_stmt(&mut self, statement: &ForStmt) {
        self.in_scope(statement.span, |binder| {
            if let Some(VarDeclOrExpr::VarDecl(declaration)) = &statement.init
                && declaration.kind != VarDeclKind::Var
            {
                binder.declare_variables(declaration);
            }
            statement.visit_children_with(binder);
        });
    }

    fn visit_for_of_stmt(&mut self, statement: &ForOfStmt) {
        self.in_scope(statement.span, |binder| {
            binder.for_head(&statement.left);
            statement.visit_children_with(binder);
            binder.loop_assigns(&statement.left);
        });
    }

    fn visit_for_in_stmt(&mut self, statement: &ForInStmt) {
        self.in_scope(statement.span, |binder| {
            binder.for_head(&statement.left);
            statement.visit_children_with(binder);
            binder.loop_assigns(&statement.left);
        });
    }

    fn visit_labeled_stmt(&mut self, statement: &LabeledStmt) {
        statement.body.visit_with(self);
    }

    fn visit_break_stmt(&mut self, _: &BreakStmt) {}

    fn visit_continue_stmt(&mut self, _: &ContinueStmt) {}

    fn visit_var_declarator(&mut self, declarator: &VarDeclarator) {
        declarator.visit_children_with(self);
        let Some(init) = &declarator.init else { return };
        let given = Some(draft_of(&self.found, init)).filter(|value| value.size() <= MAX_VALUE);
        match &declarator.name {
            Pat::Ident(name) => self.set_value(&name.id, given),
            pattern => self.define(pattern, given.as_ref()),
        }
    }

    fn visit_assign_expr(&mut self, assignment: &AssignExpr) {
        assignment.visit_children_with(self);
        match &assignment.left {
            AssignTarget::Simple(SimpleAssignTarget::Ident(name)) => self.mark_reassigned(&name.id),
            AssignTarget::Simple(_) => {}
            AssignTarget::Pat(pattern) => {
                let mut names = PatternNames { names: Vec::new() };
                pattern.visit_with(&mut names);
                for name in &names.names {
                    self.mark_reassigned(name);
                }
            }
        }
    }

    fn visit_update_expr(&mut self, update: &UpdateExpr) {
        update.visit_children_with(self);
        if let Expr::Ident(name) = &*update.arg {
            self.mark_reassigned(name);
        }
    }
}

impl Binder {
    fn for_head(&mut self, head: &ForHead) {
        match head {
            ForHead::VarDecl(declaration) if declaration.kind != VarDeclKind::Var => {
                self.declare_variables(declaration);
            }
            ForHead::UsingDecl(declaration) => {
                for declarator in &declaration.decls {
                    self.declare_pattern(&declarator.name);
                }
            }
            _ => {}
        }
    }

    /// A loop variable has another value in each iteration.
    fn loop_assigns(&mut self, head: &ForHead) {
        let mut names = PatternNames { names: Vec::new() };
        head.visit_with(&mut names);
        for name in &names.names {
            self.mark_reassigned(name);
        }
    }
}
