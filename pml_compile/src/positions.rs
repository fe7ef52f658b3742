//! Positions that the engine lacks: it has none for patterns and for fields of `this`, whose errors it reports at an earlier
//! statement; a thrown value that isn't an error has no stack, nor has a result that can't be JSON.

use swc_common::Spanned;
use swc_ecma_ast::*;
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::bindings::{BindingId, Bindings};
use super::edits::{Edits, line_ends};
use super::parse::{Parsed, range};
use super::strip::skip_blanks;
use super::value::{as_member, unwrap, without_types};

/// An expression statement has a position, which the code behind it keeps until the next one. It does nothing.
const POSITION: &str = "0; ";

/// What gives the engine the position of each pattern that may fail, of each thrown value and of each result.
pub(crate) fn positions(parsed: &Parsed<'_>, bindings: &Bindings) -> Edits {
    let mut positions = Positions {
        code: parsed.code,
        bindings,
        edits: Edits::default(),
        place: Place::Body,
        is_in_function: false,
        rejecting: Vec::new(),
    };
    for statement in parsed.statements() {
        positions.listed(statement);
    }
    positions.edits
}

struct Positions<'a> {
    code: &'a str,
    bindings: &'a Bindings,
    edits: Edits,
    place: Place,
    /// In a function of the code, whose `return` doesn't end the run.
    is_in_function: bool,
    /// What the code calls to reject promises that it makes.
    rejecting: Vec<BindingId>,
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
            !declaration.declare && declaration.decls.iter().any(|one| self.declarator_lacks_position(one))
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

    fn declarator_lacks_position(&self, declarator: &VarDeclarator) -> bool {
        let value = declarator.init.as_deref();
        self.may_fail(&declarator.name, value) || value.is_some_and(starts_without_position)
    }

    /// `const a = 1,\n [b] = c` becomes `const a = 1;\n 0; const [b] = c`: the position of a declaration is its first line.
    fn split_declaration(&mut self, declaration: &VarDecl) {
        let mut position = range(declaration.span).start;
        for pair in declaration.decls.windows(2) {
            let [before, declarator] = pair else { continue };
            let start = range(declarator.span).start;
            let comma = skip_blanks(self.code, range(before.span).end);
            if self.declarator_lacks_position(declarator)
                && self.code.get(position..start).is_some_and(|text| !line_ends(text).is_empty())
                && self.code.as_bytes().get(comma) == Some(&b',')
            {
                self.edits.replace(comma..comma + 1, ";");
                self.edits.insert(start, [POSITION, declaration.kind.as_str(), " "].concat());
                position = start;
            }
        }
    }

    /// `reject` in `new Promise((resolve, reject) => …)`.
    fn rejecting_in(&self, new: &NewExpr) -> Option<BindingId> {
        let is_promise =
            |name: &Ident| name.sym == *"Promise" && self.bindings.binding_at(name.span).is_none();
        unwrap(&new.callee).as_ident().filter(|name| is_promise(name))?;
        let name = match unwrap(&new.args.as_ref()?.first()?.expr) {
            Expr::Arrow(arrow) => arrow.params.get(1)?.as_ident()?,
            Expr::Fn(function) => function.function.params.get(1)?.pat.as_ident()?,
            _ => return None,
        };
        self.bindings.binding_at(name.id.span)
    }

    fn rejects(&self, callee: &Callee) -> bool {
        let name = callee.as_expr().and_then(|callee| unwrap(callee).as_ident());
        let binding = name.and_then(|name| self.bindings.binding_at(name.span));
        binding.is_some_and(|binding| self.rejecting.contains(&binding))
    }

    /// Wraps what is returned, thrown or rejected; the second text is for `throw"x"`, where a name would join the keyword.
    fn probe(&mut self, value: &Expr, [open, apart]: [&'static str; 2]) {
        let value = range(value.span());
        let is_apart = self.code.get(..value.start).is_some_and(|before| !before.ends_with(['n', 'w']));
        self.edits.wrap(value, if is_apart { open } else { apart }, "))");
    }

    fn inside_function(&mut self, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.is_in_function, true);
        visit(self);
        self.is_in_function = outer;
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

/// Whether a value is JSON whatever happens.
fn is_json(value: &Expr) -> bool {
    match without_types(value) {
        Expr::Lit(_) | Expr::Tpl(_) | Expr::Unary(_) | Expr::Update(_) => true,
        Expr::Bin(binary) => {
            !matches!(binary.op, BinaryOp::LogicalAnd | BinaryOp::LogicalOr | BinaryOp::NullishCoalescing)
        }
        Expr::Object(object) => object.props.is_empty(),
        Expr::Array(array) => array.elems.is_empty(),
        _ => false,
    }
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
        if let Stmt::Decl(Decl::Var(declaration)) = statement
            && declaration.decls.len() > 1
            && place != Place::Label
            && !declaration.declare
        {
            self.split_declaration(declaration);
        }
        if statement.is_labeled() {
            self.place = Place::Label;
        }
        statement.visit_children_with(self);
    }

    fn visit_function(&mut self, function: &Function) {
        self.inside_function(|inside| function.visit_children_with(inside));
    }

    fn visit_constructor(&mut self, constructor: &Constructor) {
        self.inside_function(|inside| constructor.visit_children_with(inside));
    }

    fn visit_arrow_expr(&mut self, arrow: &ArrowExpr) {
        self.inside_function(|inside| arrow.visit_children_with(inside));
    }

    fn visit_return_stmt(&mut self, statement: &ReturnStmt) {
        if let Some(value) = &statement.arg
            && !self.is_in_function
            && !is_json(value)
        {
            self.probe(value, ["__pml.returned((", " __pml.returned(("]);
        }
        statement.visit_children_with(self);
    }

    fn visit_new_expr(&mut self, new: &NewExpr) {
        self.rejecting.extend(self.rejecting_in(new));
        new.visit_children_with(self);
    }

    // The engine tells of a rejection while it happens only if nobody waits for the promise yet.
    fn visit_call_expr(&mut self, call: &CallExpr) {
        if !self.rejecting.is_empty()
            && let Some(reason) = call.args.first().filter(|reason| reason.spread.is_none())
            && !without_types(&reason.expr).is_new()
            && self.rejects(&call.callee)
        {
            self.probe(&reason.expr, ["__pml.thrown(("; 2]);
        }
        call.visit_children_with(self);
    }

    fn visit_throw_stmt(&mut self, statement: &ThrowStmt) {
        // An error has a stack of its own.
        if !without_types(&statement.arg).is_new() {
            self.probe(&statement.arg, ["__pml.thrown((", " __pml.thrown(("]);
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
            ("return null.a", "0; return __pml.returned((null.a))"),
            ("return (a as T)", "return __pml.returned(((a)))"),
            ("const f = () => { return a }; f()", "const f = () => { return a }; f()"),
            ("const a = 1,\n [b] = a", "0; const a = 1;\n 0; const [b] = a"),
            ("let a!: T // x\n , b: T, { c }: T = a, d", "0; let a // x\n , b; 0; let { c } = a, d"),
            ("while (a) var b = 1,\n c = this.d.e", "while (a) { 0; var b = 1;\n 0; var c = this.d.e }"),
            ("for (let a = 1,\n [b] = a;;) ;", "0; for (let a = 1,\n [b] = a;;) ;"),
            (
                "class A { m() { if (b) return (this.c as T).d } }",
                "class A { m() { if (__pml.branch(\"d1\", (b))) { 0; return (this.c).d } } }",
            ),
            ("const { a }: T = b as T", "0; const { a } = b"),
            ("throw 'text'", "throw __pml.thrown(('text'))"),
            ("throw'text'", "throw __pml.thrown(('text'))"),
            ("return[a]", "return __pml.returned(([a]))"),
            ("throw (a, b) as T", "throw __pml.thrown(((a, b)))"),
            (
                "new Promise<T>((_, no: N) => setTimeout(() => no('a' as T), 1))",
                "new Promise((_, no) => setTimeout(() => no(__pml.thrown(('a'))), 1))",
            ),
            (
                "new Promise(function (yes, no) { no(); yes(1); if (a) no(b, c) })",
                "new Promise(function (yes, no) { no(); yes(1); if (__pml.branch(\"d1\", (a))) no(__pml.thrown((b)), c) })",
            ),
        ] {
            let squeeze =
                |text: &str| text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
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
            "return 'this'",
            "return args.a + args.b",
            "return []",
            "const a = 1,\n b = 2",
            "throw new Error('x')",
            "new Promise((yes, no) => { no(new Error('x')); no(...a); { const no = f; no(1) } })",
            "no(1); new Promise((yes, no) => no); new Queue((yes, no) => no(1))",
        ] {
            assert_eq!(executable(code), code);
        }
    }
}
