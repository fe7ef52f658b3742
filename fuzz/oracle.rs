//! What others make of the same code: the engine that will run it, and a stripper of types that isn't ours.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pml_compile::{CompileError, ErrorKind};
use rquickjs::{Context, Runtime, Value};
use swc_common::errors::Handler;
use swc_common::sync::Lrc;
use swc_common::{BytePos, EqIgnoreSpan, SourceMap};
use swc_ecma_ast::{ClassMember, Decl, Expr, Function, Module, ModuleItem, Stmt};
use swc_ecma_parser::{EsSyntax, Parser, StringInput, Syntax};
use swc_ecma_visit::{VisitMut, VisitMutWith};

/// Code is the body of such a function, which is strict in a module.
const BEFORE: &str = "async function main(args, mcp, capabilities) {";
const AFTER: &str = "\n}";

/// Both parsers recurse, and what is nested just not too deeply for the compiler needs more than the usual stack.
const STACK: usize = 256 << 20;

/// Why code is refused that can be erased and that the engine takes: parts of our messages.
const REASONS: &[&str] = &[
    // The sandbox has no modules, and the probes have names of their own.
    "isn't available in a capability",
    "is reserved",
    "the character U+0000",
    // The engine takes it, but our parser can't: it reads a module.
    "'new.target' is only allowed",
    "`await` cannot be used as an identifier",
    // The standard forbids these; the engine forgets some of them.
    "is already declared",
    "a private field can't be deleted",
    "an `in` needs parentheses here",
    // The check for depth doesn't know it, and says what to do.
    "could be a division or a regular expression",
    // The parser loses the error of an open literal in types that it tries, or in a conflict marker's line.
    "to end this string",
    "to end this template",
    // Right in some places, but no two parsers agree on which.
    "can't contain an escape",
];

/// What the engine says against the code, if it doesn't take it.
pub fn engine_refusal(code: &str) -> Option<String> {
    // As the worker has it: the code may declare names like those of its arguments.
    let source = [
        "(function (args, mcp, capabilities) { return async function main() { \"use strict\"; ",
        code,
        "\n} })",
    ];
    stacker::grow(STACK, || {
        let runtime = Runtime::new().expect("a runtime");
        runtime.set_max_stack_size(STACK / 2);
        Context::full(&runtime).expect("a context").with(|ctx| {
            if ctx.eval::<Value<'_>, _>(source.concat()).is_ok() {
                return None;
            }
            let thrown = ctx.catch();
            Some(thrown.as_exception().and_then(rquickjs::Exception::message).unwrap_or_default())
        })
    })
}

/// The code as `swc_ts_fast_strip` gives it, if all of it that is TypeScript can be erased. It doesn't guard itself against
/// deep nesting, so the compiler must have found the code not to be too complex.
pub fn erased(code: &str) -> Option<String> {
    let sources = Lrc::new(SourceMap::default());
    let handler = Handler::with_emitter_writer(Box::new(std::io::sink()), Some(sources.clone()));
    let wrapped = [BEFORE, code, AFTER].concat();
    let options = swc_ts_fast_strip::Options { module: Some(true), ..Default::default() };
    let erase = || swc_ts_fast_strip::operate(&sources, &handler, wrapped, options);
    // Its parser panics where ours does.
    let output = catch_unwind(AssertUnwindSafe(|| stacker::grow(STACK, erase))).ok()?.ok()?.code;
    // Text like `} {` isn't the body of a function.
    main_function(&output)?;
    output.strip_prefix(BEFORE)?.strip_suffix(AFTER).map(str::to_owned)
}

/// Whether both are the body of a function in JavaScript, and the same but for parentheses and empty statements.
pub fn same_program(one: &str, other: &str) -> bool {
    let body = |code: &str| {
        let mut function = main_function(&[BEFORE, code, AFTER].concat())?;
        stacker::grow(STACK, || function.visit_mut_with(&mut Plain));
        Some(function)
    };
    match (body(one), body(other)) {
        (Some(one), Some(other)) => stacker::grow(STACK, || one.eq_ignore_span(&other)),
        _ => false,
    }
}

/// Whether it is known that code is refused for this though it could be erased.
pub fn is_known_refusal(error: &CompileError) -> bool {
    error.kind == ErrorKind::TooComplex || REASONS.iter().any(|reason| error.message.contains(reason))
}

/// The one function of the text.
fn main_function(text: &str) -> Option<Function> {
    let input = StringInput::new(text, BytePos(1), BytePos(1 + text.len() as u32));
    let mut parser = Parser::new(Syntax::Es(EsSyntax::default()), input, None);
    let Module { mut body, .. } = stacker::grow(STACK, || parser.parse_module()).ok()?;
    match (body.pop(), body.is_empty() && parser.take_errors().is_empty()) {
        (Some(ModuleItem::Stmt(Stmt::Decl(Decl::Fn(function)))), true) => Some(*function.function),
        _ => None,
    }
}

/// Removes what means nothing.
struct Plain;

impl VisitMut for Plain {
    fn visit_mut_expr(&mut self, expr: &mut Expr) {
        while let Expr::Paren(paren) = expr {
            *expr = *std::mem::take(&mut paren.expr);
        }
        expr.visit_mut_children_with(self);
    }

    fn visit_mut_stmts(&mut self, statements: &mut Vec<Stmt>) {
        statements.retain(|statement| !statement.is_empty());
        statements.visit_mut_children_with(self);
    }

    fn visit_mut_class_members(&mut self, members: &mut Vec<ClassMember>) {
        members.retain(|member| !member.is_empty());
        members.visit_mut_children_with(self);
    }
}
