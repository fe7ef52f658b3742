//! Finds `await` and `yield` in an arrow function's parameters: the parser accepts some of them, the engine none.

use swc_common::Span;
use swc_ecma_ast::*;
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

/// An `await` or a `yield`.
pub(crate) struct Pause {
    pub(crate) word: &'static str,
    pub(crate) span: Span,
}

/// The first one that isn't in a nested function.
pub(crate) fn first_pause(parameters: &[Pat]) -> Option<Pause> {
    let mut search = Search { found: None };
    parameters.visit_with(&mut search);
    search.found
}

struct Search {
    found: Option<Pause>,
}

impl Search {
    fn note(&mut self, word: &'static str, span: Span) {
        self.found = self.found.take().or(Some(Pause { word, span }));
    }
}

impl Visit for Search {
    noop_visit_type!();

    fn visit_await_expr(&mut self, expr: &AwaitExpr) {
        self.note("await", expr.span);
    }

    fn visit_yield_expr(&mut self, expr: &YieldExpr) {
        self.note("yield", expr.span);
    }

    // Nested functions run on their own.
    fn visit_arrow_expr(&mut self, _: &ArrowExpr) {}

    fn visit_function(&mut self, _: &Function) {}

    fn visit_constructor(&mut self, _: &Constructor) {}

    fn visit_static_block(&mut self, _: &StaticBlock) {}

    fn visit_getter_prop(&mut self, getter: &GetterProp) {
        getter.key.visit_with(self);
    }

    fn visit_setter_prop(&mut self, setter: &SetterProp) {
        setter.key.visit_with(self);
    }
}

#[cfg(test)]
mod tests {
    use crate::{CompileOptions, ErrorKind, compile};

    #[test]
    fn an_arrow_function_s_parameters_cannot_wait() {
        for (code, column) in [
            ("async (p, o = { x: await 1 }) => o", 20),
            ("async ({ x = await 1 }) => x", 14),
            ("async ([x = [await 1]]) => x", 14),
            ("async (o = (await 1)) => o", 13),
            ("async (o = f(await 1)) => o", 14),
            ("async (o = class { [await 1] = 1 }) => o", 21),
            ("async (o = { get [await 1]() { return 1 } }) => o", 19),
            ("async <T>(o: T = { x: await 1 }) => o", 23),
            ("(o = await 1) => o", 6),
            ("function* g() { return (o = [yield 1]) => o }", 30),
        ] {
            let code = format!("const é = 1;\n{code}");
            let error = compile(&code, &CompileOptions::default()).expect_err(&code);
            assert_eq!(
                (error.kind, error.line, error.column),
                (ErrorKind::Syntax, 2, column),
                "{code}: {error}"
            );
            assert!(error.message.contains("isn't allowed in an arrow function's parameters"), "{error}");
            assert!(error.hint.is_some_and(|hint| hint.contains("the function's body")), "{code}");
        }
    }

    #[test]
    fn what_waits_later_may_stand_in_parameters() {
        for code in [
            "async (o = async () => await 1) => o",
            "async (o = async function () { await 1 }) => o",
            "async (o = { async m() { await 1 } }) => o",
            "async (o = class { async m() { await 1 } }) => o",
            "async (o = 1) => await o",
            "f(await 1, async (o) => o)",
        ] {
            assert!(compile(code, &CompileOptions::default()).is_ok(), "{code}");
        }
    }
}
