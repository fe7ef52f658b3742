//! Duplicate declarations.
//!
//! A scope's `let`, `const`, `class` and functions are recorded before its statements are visited, so that a `var` is checked
//! against all of them, earlier and later, and needn't be recorded itself.

use rustc_hash::FxHashMap;
use swc_atoms::Atom;
use swc_common::BytePos;
use swc_ecma_ast::*;
use swc_ecma_visit::VisitWith;

use super::Checker;
use crate::bindings::each_name;
use crate::error::line_and_column;
use crate::parse::offset;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `let`, `const`, a class, and a function in a block: nothing else may have the name.
    Lexical,
    /// A function at the top level of a function's body: other functions and `var`s may have the same name.
    Function,
    Parameter,
    /// `catch (name)`, which a `var` may redeclare.
    CaughtName,
}

#[derive(Debug, Clone, Copy)]
struct Declared {
    kind: Kind,
    depth: usize,
    at: BytePos,
    /// For a caught name, the depth and position of what it shadows that conflicts with a `var`.
    hides: Option<(usize, BytePos)>,
}

impl Declared {
    fn against_var(self) -> Option<(usize, BytePos)> {
        match self.kind {
            Kind::Lexical => Some((self.depth, self.at)),
            Kind::CaughtName => self.hides,
            Kind::Function | Kind::Parameter => None,
        }
    }
}

pub(super) struct Declarations {
    /// The innermost declaration of each name.
    names: FxHashMap<Atom, Declared>,
    /// Shadowed declarations, restored at the end of the scope that shadows them.
    hidden: Vec<(Atom, Option<Declared>)>,
    depth: usize,
    /// The depth of the enclosing function, to which a `var` is hoisted.
    function_depth: usize,
}

pub(super) struct OuterScope {
    hidden: usize,
    function_depth: usize,
}

impl Declarations {
    pub(super) fn new() -> Self {
        // Room for the names of most code, so that the map doesn't grow step by step.
        Self {
            names: FxHashMap::with_capacity_and_hasher(56, Default::default()),
            hidden: Vec::with_capacity(56),
            depth: 0,
            function_depth: 0,
        }
    }

    pub(super) fn enter_block(&mut self) -> OuterScope {
        self.depth += 1;
        OuterScope { hidden: self.hidden.len(), function_depth: self.function_depth }
    }

    pub(super) fn leave(&mut self, outer: OuterScope) {
        self.depth -= 1;
        self.function_depth = outer.function_depth;
        for (name, before) in self.hidden.drain(outer.hidden..).rev() {
            match before {
                Some(before) => self.names.insert(name, before),
                None => self.names.remove(&name),
            };
        }
    }

    pub(super) fn enter_function(&mut self) -> OuterScope {
        let outer = self.enter_block();
        self.function_depth = self.depth;
        outer
    }

    /// Records a declaration; returns the one in this scope that it conflicts with.
    fn declare(&mut self, name: &Ident, kind: Kind) -> Option<BytePos> {
        let mut declared = Declared { kind, depth: self.depth, at: name.span.lo, hides: None };
        if kind == Kind::CaughtName {
            declared.hides = self.names.get(&name.sym).and_then(|hidden| hidden.against_var());
        }
        let before = self.names.insert(name.sym.clone(), declared);
        match before.filter(|before| before.depth == self.depth) {
            Some(before) => {
                let may_share =
                    kind == Kind::Function && matches!(before.kind, Kind::Function | Kind::Parameter);
                (!may_share).then_some(before.at)
            }
            None => {
                self.hidden.push((name.sym.clone(), before));
                None
            }
        }
    }

    /// What a `var` conflicts with: a declaration between it and its function.
    fn against_var(&self, name: &Atom) -> Option<BytePos> {
        let (depth, at) = self.names.get(name)?.against_var()?;
        (depth >= self.function_depth).then_some(at)
    }
}

impl Checker<'_> {
    fn declared_twice(&mut self, name: &Ident, before: BytePos) {
        if self.first.is_none() {
            let (line, _) = line_and_column(self.code, offset(before));
            let message = format!("`{}` is already declared on line {line}", name.sym);
            self.refuse(name.span, message, "give one of the two another name");
        }
    }

    pub(super) fn declare(&mut self, name: &Ident, kind: Kind) {
        if let Some(before) = self.declarations.declare(name, kind) {
            self.declared_twice(name, before);
        }
    }

    pub(super) fn declare_pattern(&mut self, pattern: &Pat, kind: Kind) {
        each_name(pattern, &mut |name| self.declare(name, kind));
    }

    pub(super) fn declare_var(&mut self, name: &Ident) {
        if let Some(before) = self.declarations.against_var(&name.sym) {
            // Hoisted names are recorded first, but the error is reported at the second one in the source.
            if before < name.span.lo {
                self.declared_twice(name, before);
            } else {
                let second = Ident { span: swc_common::Span::new(before, before), ..name.clone() };
                self.declared_twice(&second, name.span.lo);
            }
        }
    }

    pub(super) fn declare_vars(&mut self, pattern: &Pat) {
        each_name(pattern, &mut |name| self.declare_var(name));
    }

    pub(super) fn hoist_all(&mut self, statements: &[Stmt], functions: Kind) {
        statements.iter().for_each(|statement| self.hoist(statement, functions));
    }

    /// Records the block-scoped declarations of a statement.
    pub(super) fn hoist(&mut self, statement: &Stmt, functions: Kind) {
        match statement {
            Stmt::Decl(Decl::Class(class)) if !class.declare => self.declare(&class.ident, Kind::Lexical),
            Stmt::Decl(Decl::Fn(function)) if !function.declare && function.function.body.is_some() => {
                self.declare(&function.ident, functions);
            }
            Stmt::Decl(Decl::Var(variables)) if !variables.declare => self.loop_variables(variables),
            _ => {}
        }
    }

    /// `let` and `const`.
    pub(super) fn loop_variables(&mut self, variables: &VarDecl) {
        if variables.kind != VarDeclKind::Var {
            for declarator in &variables.decls {
                self.declare_pattern(&declarator.name, Kind::Lexical);
            }
        }
    }

    pub(super) fn for_each(&mut self, left: &ForHead, right: &Expr, body: &Stmt) {
        self.block(|checker| {
            if let ForHead::VarDecl(variables) = left {
                checker.loop_variables(variables);
            }
            left.visit_with(checker);
            right.visit_with(checker);
            checker.in_loop(body);
        });
    }
}
