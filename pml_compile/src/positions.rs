//! Positions that the engine lacks: it has none for patterns and for fields of `this`, whose errors it reports at an earlier
//! statement, and a thrown value that isn't an error has no stack.

use swc_common::Spanned;
use swc_ecma_ast::*;
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::bindings::Bindings;
use super::edits::Edits;
use super::parse::{Parsed, range};
use super::value::{as_member, unwrap, without_types};

/// An expression statement has a position, which the code behind it keeps until the next one. It does nothing.
const POSITION: &str = "0; ";

/// What gives the engine the position of each pattern that may fail and of each thrown value.
pub(crate) fn positions(parsed: &Parsed<'_>, bindings: &Bindings) -> Edits {
    let mut positions = Positions { bindings, edits: Edits::default(), place: Place::Body };
    for statement in parsed.statements() {
        positions.listed(statement);
    }
    positions.edits
}

struct Positions<'a> {
    bindings: &'a Bindings,
    edits: Edits,
    place: Place,
}

/// Where a statement stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// In a list, where others can be put before it.
    List,
    /// The body of an `if` or a loop.
    Body,
    /// Behind a label, which has the position already.
    Label,
}

impl Positions<'_> {
    fn listed(&mut self, statement: &Stmt) {
        self.place = Place::List;
        statement.visit_with(self);
    }

    fn lacks_position(&self, statement: &Stmt) -> bool {
        let declares = |declaration: &VarDecl| {
            !declaration.declare
                && declaration.decls.iter().any(|one| {
                    self.may_fail(&one.name, one.init.as_deref())
                        || one.init.as_deref().is_some_and(starts_without_position)
                })
        };
        match statement {
            Stmt::Decl(Decl::Var(declaration)) => declares(declaration),
            Stmt::For(ForStmt { init: Some(VarDeclOrExpr::VarDecl(declaration)), .. }) => {
                declares(declaration)
            }
            Stmt::ForOf(statement) => match &statement.left {
                ForHead::VarDecl(declaration) => declares(declaration),
                ForHead::Pat(pattern) => self.may_fail(pattern, None),
                ForHead::UsingDecl(_) => false,
            },
            Stmt::Return(ReturnStmt { arg: Some(value), .. }) => starts_without_position(value),
            Stmt::Labeled(labeled) => self.lacks_position(&labeled.body),
            _ => false,
        }
    }

    /// Whether taking a value apart may throw.
    fn may_fail(&self, pattern: &Pat, value: Option<&Expr>) -> bool {
        match pattern {
            Pat::Object(object) => !(is_flat(object) && value.is_some_and(|value| self.is_object(value))),
            Pat::Array(_) => true,
            _ => false,
        }
    }

    /// Whether a value can't be null or undefined, as far as one can see.
    fn is_object(&self, value: &Expr) -> bool {
        match without_types(value) {
            Expr::Object(_) | Expr::Array(_) => true,
            Expr::Ident(name) => name.sym == *"args" && self.bindings.binding_at(name.span).is_none(),
            Expr::Bin(binary) if matches!(binary.op, BinaryOp::NullishCoalescing | BinaryOp::LogicalOr) => {
                self.is_object(&binary.right)
            }
            _ => false,
        }
    }
}

/// `this.a` and `null.a`: names and calls have positions, these don't.
fn starts_without_position(value: &Expr) -> bool {
    let mut value = unwrap(value);
    let mut is_field = false;
    while let Some((member, ..)) = as_member(value) {
        value = unwrap(&member.obj);
        is_field = true;
    }
    is_field && matches!(value, Expr::This(_) | Expr::Lit(Lit::Null(_)))
}

/// `{ a, b: c = 1, ...rest }`: nothing in it is taken apart again.
fn is_flat(object: &ObjectPat) -> bool {
    object.props.iter().all(|property| match property {
        ObjectPatProp::Assign(_) => true,
        ObjectPatProp::KeyValue(pair) => match &*pair.value {
            Pat::Assign(assign) => assign.left.is_ident(),
            value => value.is_ident(),
        },
        ObjectPatProp::Rest(rest) => rest.arg.is_ident(),
    })
}

impl Visit for Positions<'_> {
    noop_visit_type!();

    fn visit_stmts(&mut self, statements: &[Stmt]) {
        statements.iter().for_each(|statement| self.listed(statement));
    }

    fn visit_stmt(&mut self, statement: &Stmt) {
        let place = std::mem::replace(&mut self.place, Place::Body);
        if place != Place::Label && self.lacks_position(statement) {
            match place {
                Place::List => self.edits.insert(range(statement.span()).start, POSITION),
                _ => self.edits.wrap(range(statement.span()), ["{ ", POSITION].concat(), " }"),
            }
        }
        if statement.is_labeled() {
            self.place = Place::Label;
        }
        statement.visit_children_with(self);
    }

    fn visit_throw_stmt(&mut self, statement: &ThrowStmt) {
        // An error has a stack of its own.
        if !without_types(&statement.arg).is_new() {
            self.edits.wrap(range(statement.arg.span()), "__pml.thrown((", "))");
        }
        statement.visit_children_with(self);
    }

    // Enums become other code.
    fn visit_ts_enum_decl(&mut self, _: &TsEnumDecl) {}
}

#[cfg(test)]
mod tests {
    use crate::{CompileOptions, compile};

    fn executable(code: &str) -> String {
        compile(code, &CompileOptions::default()).unwrap_or_else(|error| panic!("{code}: {error}")).executable
    }

    #[test]
    fn what_may_fail_without_a_position_gets_one() {
        for (code, expected) in [
            ("let z = 1\n\nconst { b } = args.foo", "let z = 1\n\n0; const { b } = args.foo"),
            ("const [a] = args", "0; const [a] = args"),
            ("const { a: { b } } = args", "0; const { a: { b } } = args"),
            ("const f = (args) => { const { a } = args }", "const f = (args) => { 0; const { a } = args }"),
            ("for (const { a } of b) c(a)", "0; for (const { a } of b) c(a)"),
            ("for ([a] of b) c(a)", "0; for ([a] of b) c(a)"),
            ("for (let { a } = b; a;) c(a)", "0; for (let { a } = b; a;) c(a)"),
            ("a: for (const { b } of c) continue a", "0; a: for (const { b } of c) continue a"),
            (
                "for (const x of y) for (const { a } of x) f(a)",
                "for (const x of y) { 0; for (const { a } of x) f(a) }",
            ),
            ("return null.a", "0; return null.a"),
            (
                "class A { m() { if (b) return (this.c as T).d } }",
                "class A { m() { if (__pml.branch(\"d1\", (b))) { 0; return (this.c).d } } }",
            ),
            ("const { a }: T = b as T", "0; const { a } = b"),
            ("throw 'text'", "throw __pml.thrown(('text'))"),
            ("throw (a, b) as T", "throw __pml.thrown(((a, b)))"),
        ] {
            let squeeze = |text: &str| text.replace(' ', "");
            assert_eq!(squeeze(&executable(code)), squeeze(expected), "{code}");
        }
        assert_eq!(
            executable("switch (a) { case 1: const [b] = a }").matches("0; const").count(),
            1,
            "in a case too"
        );
    }

    #[test]
    fn what_can_not_fail_stays_as_it_is() {
        for code in [
            "const { a, b: c = 1, ...rest } = args",
            "const { a } = b ?? {}",
            "const { a } = { a: 1 }",
            "const a = b",
            "for (const a of b) c(a)",
            "({ a } = b)",
            "return this",
            "throw new Error('x')",
        ] {
            assert_eq!(executable(code), code);
        }
    }
}
