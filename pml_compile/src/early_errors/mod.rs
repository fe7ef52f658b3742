//! Early errors of the standard that the parser doesn't check: duplicate declarations, misplaced `super` and private names,
//! invalid regular expressions. The engine would report them too, but only at run time.

mod classes;
mod declarations;
mod jumps;
mod literals;

use swc_common::{Span, Spanned};
use swc_ecma_ast::*;
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::error::{CompileError, ErrorKind};
use super::parse::{Parsed, offset};
use classes::Classes;
use declarations::{Declarations, Kind};
use jumps::Jumps;
use literals::Literals;

/// Returns the first early error in the code.
pub(crate) fn check(parsed: &Parsed<'_>) -> Result<(), CompileError> {
    literals::check_words(parsed)?;
    let mut checker = Checker {
        code: parsed.code,
        declarations: Declarations::new(),
        classes: Classes::default(),
        jumps: Jumps::default(),
        literals: Literals::of(parsed.code),
        has_this: parsed.marks.has_this,
        first: None,
    };
    for statement in parsed.statements() {
        checker.hoist(statement, Kind::Function);
    }
    for statement in parsed.statements() {
        statement.visit_with(&mut checker);
    }
    checker.first.map_or(Ok(()), Err)
}

struct Checker<'a> {
    code: &'a str,
    declarations: Declarations,
    classes: Classes,
    jumps: Jumps,
    literals: Literals,
    has_this: bool,
    first: Option<CompileError>,
}

impl Checker<'_> {
    fn refuse(&mut self, span: Span, message: impl Into<String>, hint: &str) {
        if self.first.is_none() {
            let at = offset(span.lo);
            self.first = Some(CompileError::at(self.code, at, ErrorKind::Syntax, message, Some(hint)));
        }
    }

    /// The body of any kind of function; `parameters` declares its parameters.
    fn body(&mut self, is_generator: bool, parameters: impl FnOnce(&mut Self), statements: &[Stmt]) {
        let jumps = Jumps::of_function(is_generator);
        let outer = (self.declarations.enter_function(), std::mem::replace(&mut self.jumps, jumps));
        parameters(self);
        self.hoist_all(statements, Kind::Function);
        statements.visit_with(self);
        self.declarations.leave(outer.0);
        self.jumps = outer.1;
    }

    /// An overload has no body, only types.
    fn function(&mut self, function: &Function) {
        if let Some(body) = &function.body {
            let parameters = |checker: &mut Self| {
                for parameter in &function.params {
                    checker.parameter(&parameter.pat);
                }
            };
            self.body(function.is_generator, parameters, &body.stmts);
        }
    }

    fn method_of_object(&mut self, key: &PropName, function: &Function) {
        key.visit_with(self);
        if function.body.is_none() {
            self.refuse(
                key.span(),
                "a method of an object needs a body",
                "add `{ … }`, or write `name: value`",
            );
        }
        self.in_method(false, |checker| checker.function(function));
    }

    fn parameter(&mut self, pattern: &Pat) {
        if let Some(span) = expression_in(pattern) {
            self.refuse(span, "a parameter can only be a name or a pattern", "remove the parentheses");
        }
        self.declare_pattern(pattern, Kind::Parameter);
        // The type of `this`, which is no parameter.
        if !matches!(pattern, Pat::Ident(name) if name.sym == *"this") {
            pattern.visit_with(self);
        }
    }

    fn block(&mut self, inside: impl FnOnce(&mut Self)) {
        let outer = self.declarations.enter_block();
        inside(self);
        self.declarations.leave(outer);
    }
}

impl Visit for Checker<'_> {
    noop_visit_type!();

    fn visit_decl(&mut self, declaration: &Decl) {
        match declaration {
            Decl::Fn(function) if function.declare => {}
            Decl::Class(class) if class.declare => {}
            Decl::Var(variables) if variables.declare => {}
            Decl::TsInterface(_) | Decl::TsTypeAlias(_) | Decl::TsModule(_) => {}
            Decl::TsEnum(declaration) if declaration.declare => {}
            Decl::TsEnum(declaration) => {
                // It compiles to a `var`.
                self.declare_var(&declaration.id);
                declaration.members.visit_with(self);
            }
            _ => declaration.visit_children_with(self),
        }
    }

    fn visit_var_decl(&mut self, variables: &VarDecl) {
        if variables.kind == VarDeclKind::Var {
            for declarator in &variables.decls {
                self.declare_vars(&declarator.name);
            }
        }
        variables.decls.visit_with(self);
    }

    fn visit_function(&mut self, function: &Function) {
        self.outside_methods(|checker| checker.function(function));
    }

    fn visit_arrow_expr(&mut self, arrow: &ArrowExpr) {
        self.line_before_arrow(arrow);
        // `strip` reports an `await` in its parameters.
        let parameters = |checker: &mut Self| {
            arrow.params.iter().for_each(|parameter| checker.parameter(parameter));
            if let ArrowFunctionBody::Expr(value) = &*arrow.body {
                value.visit_with(checker);
            }
        };
        match &*arrow.body {
            ArrowFunctionBody::FunctionBody(body) => {
                self.body(self.jumps.can_yield(), parameters, &body.stmts);
            }
            ArrowFunctionBody::Expr(_) => self.body(self.jumps.can_yield(), parameters, &[]),
        }
    }

    fn visit_method_prop(&mut self, method: &MethodProp) {
        self.async_method(method);
        self.method_of_object(&method.key, &method.function);
    }

    fn visit_getter_prop(&mut self, getter: &GetterProp) {
        self.method_of_object(&getter.key, &getter.function);
    }

    fn visit_setter_prop(&mut self, setter: &SetterProp) {
        self.method_of_object(&setter.key, &setter.function);
    }

    fn visit_class(&mut self, class: &Class) {
        self.class(class);
    }

    fn visit_private_name(&mut self, name: &PrivateName) {
        self.private_name(name);
    }

    fn visit_super_prop_expr(&mut self, expr: &SuperPropExpr) {
        self.super_property(expr.span);
        expr.visit_children_with(self);
    }

    fn visit_callee(&mut self, callee: &Callee) {
        if let Callee::Super(word) = callee {
            self.super_call(word.span);
        }
        callee.visit_children_with(self);
    }

    fn visit_new_expr(&mut self, made: &NewExpr) {
        if has_optional_chain(&made.callee) {
            self.refuse(
                made.span,
                "`new` can't be used with `?.`",
                "put the optional chain into parentheses",
            );
        }
        made.visit_children_with(self);
    }

    fn visit_unary_expr(&mut self, unary: &UnaryExpr) {
        if unary.op == UnaryOp::Delete {
            self.delete(&unary.arg);
        }
        unary.visit_children_with(self);
    }

    fn visit_bin_expr(&mut self, binary: &BinExpr) {
        self.private_operand(binary);
        binary.visit_children_with(self);
    }

    fn visit_block_stmt(&mut self, block: &BlockStmt) {
        self.block(|checker| {
            checker.hoist_all(&block.stmts, Kind::Lexical);
            block.stmts.visit_with(checker);
        });
    }

    fn visit_switch_stmt(&mut self, switch: &SwitchStmt) {
        switch.discriminant.visit_with(self);
        self.block(|checker| {
            for case in &switch.cases {
                checker.hoist_all(&case.cons, Kind::Lexical);
            }
            checker.in_switch(|checker| switch.cases.visit_with(checker));
        });
    }

    fn visit_catch_clause(&mut self, clause: &CatchClause) {
        self.block(|checker| {
            if let Some(parameter) = &clause.param {
                let kind = if parameter.is_ident() { Kind::CaughtName } else { Kind::Lexical };
                checker.declare_pattern(parameter, kind);
                parameter.visit_with(checker);
            }
            checker.hoist_all(&clause.body.stmts, Kind::Lexical);
            clause.body.stmts.visit_with(checker);
        });
    }

    fn visit_for_stmt(&mut self, statement: &ForStmt) {
        self.block(|checker| {
            if let Some(VarDeclOrExpr::VarDecl(variables)) = &statement.init {
                checker.loop_variables(variables);
                checker.bare_in(variables);
            }
            statement.init.visit_with(checker);
            if let Some(test) = &statement.test {
                checker.semicolon_behind(test);
                test.visit_with(checker);
            }
            statement.update.visit_with(checker);
            checker.in_loop(&statement.body);
        });
    }

    fn visit_for_in_stmt(&mut self, statement: &ForInStmt) {
        self.for_each(&statement.left, &statement.right, &statement.body);
    }

    fn visit_for_of_stmt(&mut self, statement: &ForOfStmt) {
        self.for_each(&statement.left, &statement.right, &statement.body);
    }

    fn visit_if_stmt(&mut self, statement: &IfStmt) {
        self.single_statement(&statement.cons);
        statement.alt.iter().for_each(|alternative| self.single_statement(alternative));
        statement.visit_children_with(self);
    }

    fn visit_while_stmt(&mut self, statement: &WhileStmt) {
        statement.test.visit_with(self);
        self.in_loop(&statement.body);
    }

    fn visit_do_while_stmt(&mut self, statement: &DoWhileStmt) {
        self.in_loop(&statement.body);
        statement.test.visit_with(self);
    }

    fn visit_labeled_stmt(&mut self, statement: &LabeledStmt) {
        self.labeled(statement);
    }

    fn visit_break_stmt(&mut self, statement: &BreakStmt) {
        self.break_statement(statement);
    }

    fn visit_continue_stmt(&mut self, statement: &ContinueStmt) {
        self.continue_statement(statement);
    }

    fn visit_yield_expr(&mut self, expr: &YieldExpr) {
        if !self.jumps.can_yield() {
            self.refuse(expr.span, "`yield` is only allowed in a generator", "write `function*`");
        }
        expr.visit_children_with(self);
    }

    fn visit_object_lit(&mut self, object: &ObjectLit) {
        self.object(object);
        object.visit_children_with(self);
    }

    fn visit_assign_pat_prop(&mut self, property: &AssignPatProp) {
        self.shorthand_target(&property.key.id);
        property.value.visit_with(self);
    }

    fn visit_str(&mut self, text: &Str) {
        self.string(text);
    }

    fn visit_tpl(&mut self, template: &Tpl) {
        self.template(template);
        template.exprs.visit_with(self);
    }

    fn visit_tagged_tpl(&mut self, tagged: &TaggedTpl) {
        if has_optional_chain(&tagged.tag) {
            self.refuse(
                tagged.span,
                "a tagged template can't be used with `?.`",
                "put the optional chain into parentheses",
            );
        }
        // Its text may have invalid escapes: the tag gets the raw text.
        tagged.tag.visit_with(self);
        tagged.tpl.exprs.visit_with(self);
    }

    fn visit_regex(&mut self, regex: &Regex) {
        self.regular_expression(regex);
    }

    fn visit_ident(&mut self, name: &Ident) {
        if self.has_this && name.sym == *"this" {
            self.refuse(name.span, "`this` can't be the name of a variable", "choose another name");
        }
    }

    // Nothing to look at inside.
    fn visit_ident_name(&mut self, _: &IdentName) {}
}

/// Whether the expression is an optional chain, which in `a?.b!.c` the `!` hides from the parser.
fn has_optional_chain(expr: &Expr) -> bool {
    let mut expr = expr;
    loop {
        expr = match expr {
            Expr::Member(member) => &member.obj,
            Expr::TsNonNull(inner) => &inner.expr,
            Expr::TsInstantiation(inner) => &inner.expr,
            _ => return expr.is_opt_chain(),
        };
    }
}

/// The expression that `[(a)]` became where only names are allowed.
fn expression_in(pattern: &Pat) -> Option<Span> {
    match pattern {
        Pat::Ident(_) | Pat::Invalid(_) => None,
        Pat::Expr(expr) => Some(expr.span()),
        Pat::Array(array) => array.elems.iter().flatten().find_map(expression_in),
        Pat::Rest(rest) => expression_in(&rest.arg),
        Pat::Assign(assign) => expression_in(&assign.left),
        Pat::Object(object) => object.props.iter().find_map(|property| match property {
            ObjectPatProp::KeyValue(pair) => expression_in(&pair.value),
            ObjectPatProp::Assign(_) => None,
            ObjectPatProp::Rest(rest) => expression_in(&rest.arg),
        }),
    }
}

#[cfg(test)]
mod tests;
