//! Oracles for the compiler: the engine that runs the code, and another type stripper, `swc_ts_fast_strip`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pml_compile::{CompileError, ErrorKind};
use rquickjs::{Context, Runtime, Value};
use swc_common::errors::Handler;
use swc_common::sync::Lrc;
use swc_common::{BytePos, EqIgnoreSpan, SourceMap};
use swc_ecma_ast::{ClassMember, Decl, Expr, Function, Module, ModuleItem, Stmt};
use swc_ecma_parser::{EsSyntax, Parser, StringInput, Syntax};
use swc_ecma_visit::{VisitMut, VisitMutWith};

/// Code is the body of such a function; in a module it is strict.
const BEFORE: &str = "async function main(args, mcp, capabilities) {";
const AFTER: &str = "\n}";

/// Both parsers are recursive, and code just below the compiler's depth limit needs more than the usual stack.
const STACK: usize = 256 << 20;

/// Known reasons, by parts of our messages, to refuse code that can be erased and that the engine accepts.
const REASONS: &[&str] = &[
    // The sandbox has no modules, and the probes have names of their own.
    "isn't available in a capability",
    "is reserved",
    "the character U+0000",
    // Empty ones and a `global` block could be erased, but have no use.
    "namespaces aren't supported",
    // The engine accepts these, but our parser doesn't, since it parses a module.
    "'new.target' is only allowed",
    "`await` cannot be used as an identifier",
    // The standard forbids these; the engine doesn't check some of them.
    "is already declared",
    "a private field can't be deleted",
    "an `in` needs parentheses here",
    // Ambiguous for the depth check, whose message says what to do.
    "could be a division or a regular expression",
    // The parser loses the error of an open literal in types that it tries, or in a conflict marker's line.
    "to end this string",
    "to end this template",
    // Allowed in some places, but parsers disagree on which.
    "can't contain an escape",
];

/// The engine's syntax error, if it refuses the code.
pub fn engine_refusal(code: &str) -> Option<String> {
    // Wrapped as in the worker, so that the code may redeclare the names of its arguments.
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

/// The code stripped by `swc_ts_fast_strip`, if all of its TypeScript can be erased. It has no depth limit, so only code that
/// the compiler didn't find too complex may be passed.
pub fn erased(code: &str) -> Option<String> {
    let sources = Lrc::new(SourceMap::default());
    let handler = Handler::with_emitter_writer(Box::new(std::io::sink()), Some(sources.clone()));
    let wrapped = [BEFORE, code, AFTER].concat();
    let options = swc_ts_fast_strip::Options { module: Some(true), ..Default::default() };
    let erase = || swc_ts_fast_strip::operate(&sources, &handler, wrapped, options);
    // It uses the same parser, which can panic.
    let output = catch_unwind(AssertUnwindSafe(|| stacker::grow(STACK, erase))).ok()?.ok()?.code;
    // Text like `} {` isn't the body of a function.
    main_function(&output)?;
    output.strip_prefix(BEFORE)?.strip_suffix(AFTER).map(str::to_owned)
}

/// Whether both are valid function bodies with the same syntax tree, except for parentheses and empty statements.
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

/// Whether this refusal is known to be right or harmless though the code can be erased.
pub fn is_known_refusal(code: &str, error: &CompileError) -> bool {
    error.kind == ErrorKind::TooComplex
        || REASONS.iter().any(|reason| error.message.contains(reason))
        || has_conflict_marker(code)
        || (error.message.contains("to end this regular expression") && has_several_bangs(code))
}

/// Whether a merge conflict's marker may be in it. The parser skips the rest of such a line, whatever it is; we may refuse it.
fn has_conflict_marker(code: &str) -> bool {
    ["<<<<<<<", "=======", ">>>>>>>", "|||||||"].iter().any(|marker| code.contains(marker))
}

/// `a!!/b`: nobody writes this, and to tell the division from `!!/regex/` on a line of its own would cost real code.
fn has_several_bangs(code: &str) -> bool {
    let marks: String = code.split_whitespace().collect();
    marks.contains("!!")
}

/// The only function in the text.
fn main_function(text: &str) -> Option<Function> {
    let input = StringInput::new(text, BytePos(1), BytePos(1 + text.len() as u32));
    let mut parser = Parser::new(Syntax::Es(EsSyntax::default()), input, None);
    let Module { mut body, .. } = stacker::grow(STACK, || parser.parse_module()).ok()?;
    match (body.pop(), body.is_empty() && parser.take_errors().is_empty()) {
        (Some(ModuleItem::Stmt(Stmt::Decl(Decl::Fn(function)))), true) => Some(*function.function),
        _ => None,
    }
}

/// Removes parentheses and empty statements.
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
