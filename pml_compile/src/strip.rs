//! Strips types without moving a line: most are removed in place, enums and parameter properties become the equivalent
//! JavaScript, and what has no equivalent is refused.
//!
//! `swc_ts_fast_strip` does the same for what can be erased, and is the oracle of the fuzz target `compile`. It isn't used here
//! because it maps text to text: the code would be parsed twice, and types are one of three kinds of edits (with links and
//! probes) that are applied at once. It also refuses enums and parameter properties, or moves lines.

mod line_separators;
mod parameter_properties;

use std::ops::Range;

use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::*;
use swc_ecma_parser::unstable::TokenAndSpan;
use swc_ecma_visit::{Visit, VisitWith};

use super::edits::{Edits, line_ends};
use super::enums::enum_edits;
use super::error::{CompileError, ErrorKind};
use super::parse::{Parsed, offset, range};
use super::pauses::first_pause;
use super::value::without_types;

/// Modifiers of class members and parameters that exist only for the type checker.
const MODIFIERS: &[&str] = &["public", "private", "protected", "readonly", "override", "abstract", "declare"];

/// The edits from TypeScript to JavaScript.
pub(crate) struct Stripped {
    pub(crate) edits: Edits,
    /// Where the parser backtracks (generic functions, assertions, calls with type arguments) it doesn't record errors that it
    /// could recover from.
    pub(crate) may_hide_errors: bool,
}

pub(crate) fn strip(parsed: &Parsed<'_>) -> Result<Stripped, CompileError> {
    let mut stripper = Stripper {
        code: parsed.code,
        tokens: &parsed.tokens,
        edits: Edits::with_capacity(128),
        tried_until: 0,
        may_hide_errors: false,
        refused: None,
    };
    for item in &parsed.items {
        match item {
            ModuleItem::Stmt(statement) => stripper.listed(statement),
            // Only type-only ones get this far.
            ModuleItem::ModuleDecl(declaration) => stripper.remove_statement(range(declaration.span())),
        }
    }
    stripper.separators_after_comments();
    match stripper.refused {
        Some(error) => Err(error),
        None => Ok(Stripped { edits: stripper.edits, may_hide_errors: stripper.may_hide_errors }),
    }
}

/// The next position at or after `from` that isn't a blank or comment.
pub(crate) fn skip_blanks(code: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let rest = code.get(at..).unwrap_or_default();
        let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        at += rest.len() - trimmed.len();
        let comment = if trimmed.starts_with("//") {
            trimmed.find(['\n', '\r', '\u{2028}', '\u{2029}']).unwrap_or(trimmed.len())
        } else if trimmed.starts_with("/*") {
            trimmed.find("*/").map_or(trimmed.len(), |end| end + 2)
        } else {
            return at;
        };
        at += comment;
    }
}

struct Stripper<'a> {
    code: &'a str,
    tokens: &'a [TokenAndSpan],
    edits: Edits,
    /// The end of the last construct in which the parser backtracks.
    tried_until: usize,
    may_hide_errors: bool,
    refused: Option<CompileError>,
}

impl Stripper<'_> {
    fn refuse_syntax(&mut self, span: Span, message: String, hint: &str) {
        let error = CompileError::at(self.code, offset(span.lo), ErrorKind::Syntax, message, Some(hint));
        self.refused = self.refused.take().or(Some(error));
    }

    fn refuse(&mut self, span: Span, what: &str, hint: &str) {
        if self.refused.is_none() {
            let message = format!("{what} aren't supported");
            let error =
                CompileError::at(self.code, offset(span.lo), ErrorKind::Unsupported, message, Some(hint));
            self.refused = Some(error);
        }
    }

    fn text(&self, range: Range<usize>) -> &str {
        self.code.get(range).unwrap_or_default()
    }

    fn remove(&mut self, range: Range<usize>) {
        self.edits.remove(self.code, range);
    }

    /// Removes a statement or member; the semicolon keeps its neighbours apart.
    fn remove_statement(&mut self, range: Range<usize>) {
        let kept = line_ends(self.text(range.clone()));
        self.edits.replace(range, format!(";{kept}"));
    }

    /// Removes a mark like `?` or `!` that follows a name.
    fn remove_mark(&mut self, after: usize, marks: &[char]) {
        let at = skip_blanks(self.code, after);
        if self.text(at..self.code.len()).starts_with(marks) {
            self.remove(at..at + 1);
        }
    }

    /// Removes a word if it is among these tokens, and returns its range.
    fn remove_word(&mut self, word: &str, tokens: Range<usize>) -> Option<Range<usize>> {
        let mut found = self.tokens.get(tokens)?.iter().map(|token| range(token.span));
        let place = found.find(|place| self.code.get(place.clone()) == Some(word))?;
        self.remove(place.clone());
        Some(place)
    }

    /// The end of an identifier, whose span may include a `?`.
    fn end_of_name(&self, name: &Ident) -> usize {
        let start = offset(name.span.lo);
        let text = self.text(start..self.code.len());
        let length = text.find(|c: char| {
            !(c.is_alphanumeric() || c == '_' || c == '$' || c == '\\' || c == '\u{200c}' || c == '\u{200d}')
        });
        start + length.unwrap_or(text.len())
    }

    fn remove_modifiers(&mut self, from: BytePos, key: Span) {
        let mut at = skip_blanks(self.code, offset(from));
        let end = offset(key.lo);
        while at < end {
            let text = self.text(at..end);
            let length = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
            if MODIFIERS.contains(&&text[..length]) {
                self.remove(at..at + length);
            }
            at = skip_blanks(self.code, at + length.max(1));
        }
    }

    /// Removes type parameters; their line ends move after the parenthesis, where they can't split an `async` or an arrow.
    fn type_parameters(&mut self, parameters: Option<&TsTypeParamDecl>) {
        let Some(parameters) = parameters else { return };
        let removed = range(parameters.span);
        let paren = skip_blanks(self.code, removed.end);
        let lines = line_ends(self.text(removed.start..paren));
        if !lines.is_empty() && self.text(paren..paren + 1) == "(" {
            self.edits.replace(removed.start..paren, "");
            self.edits.insert(paren + 1, lines);
        } else {
            self.remove(removed);
        }
    }

    /// `expr as T`: if the next line starts with a bracket, only the type made it a separate statement.
    fn remove_type_after(&mut self, expr: &Expr, whole: Span) {
        let removed = range(expr.span()).end..range(whole).end;
        let next = skip_blanks(self.code, removed.end);
        let between = self.text(removed.end..next);
        let hazard = !line_ends(between).is_empty() && self.text(next..next + 1).starts_with(['(', '[', '`']);
        if hazard {
            let kept = line_ends(self.text(removed.clone()));
            self.edits.replace(removed, format!(";{kept}"));
        } else {
            self.remove(removed);
        }
        expr.visit_with(self);
    }

    /// `expr<T>`: after `?.` the parser includes the type arguments in the expression's span.
    fn remove_type_arguments(&mut self, instantiation: &TsInstantiation) {
        // A bracket on the next line continues the expression, for TypeScript too.
        self.remove(range(instantiation.type_args.span));
        instantiation.expr.visit_with(self);
    }

    /// `expr!<T>?.(…)`: the parser drops these type arguments, so they aren't in the tree.
    fn types_before_optional(&mut self, chain: &OptChainExpr) {
        let base = match &*chain.base {
            OptChainBase::Member(member) => member.obj.span(),
            OptChainBase::Call(call) => call.callee.span(),
        };
        if !self.has_dropped_types(base) {
            return;
        }
        // `?.` is one token or two, and a type can contain `?.5`.
        let is_sign = |at: &usize| {
            let rest = self.text(*at..self.code.len()).strip_prefix("?.");
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let at = self.tokens.partition_point(|token| token.span.lo < base.hi);
        let mut places = self.tokens.iter().skip(at).map(|token| range(token.span).start);
        if let Some(sign) = places.find(is_sign) {
            self.remove(range(base).end..sign);
        }
    }

    /// `expr()<T>.field`: dropped too, before the `.` that comes before the field.
    fn types_before_field(&mut self, member: &MemberExpr) {
        let base = member.obj.span();
        if member.prop.is_computed() || !self.has_dropped_types(base) {
            return;
        }
        let at = self.tokens.partition_point(|token| token.span.lo < member.prop.span().lo);
        let dot = self.tokens.get(at.wrapping_sub(1)).map(|token| range(token.span).start);
        if let Some(dot) = dot.filter(|dot| !self.text(0..*dot).ends_with('?')) {
            self.remove(range(base).end..dot);
        }
    }

    fn has_dropped_types(&self, base: Span) -> bool {
        let end = range(base).end;
        match self.code.as_bytes().get(end) {
            // Most have none, and nothing in between.
            None | Some(b'.' | b'?' | b'[') => false,
            Some(_) => self.text(skip_blanks(self.code, end)..self.code.len()).starts_with('<'),
        }
    }

    /// A statement in a list.
    fn listed(&mut self, statement: &Stmt) {
        if let Stmt::Expr(ExprStmt { expr, span }) = statement
            && let Expr::Arrow(arrow) = first_of(expr)
            && bare_async_parameter(arrow).is_some()
        {
            // The parenthesis that it gets would continue the statement before it.
            self.edits.insert(range(*span).start, ";");
        }
        statement.visit_with(self);
    }

    /// `expr!`: the next line continues the expression or not, with the mark or without.
    fn remove_bang(&mut self, expr: &Expr, whole: Span) {
        self.remove(range(expr.span()).end..range(whole).end);
        expr.visit_with(self);
    }

    /// Notes expressions in which the parser may have lost an error while backtracking.
    fn note_tried(&mut self, expr: &Expr) {
        let is_tried = match expr {
            Expr::TsTypeAssertion(_) => true,
            Expr::Call(call) => call.type_args.is_some(),
            Expr::OptChain(chain) => {
                matches!(&*chain.base, OptChainBase::Call(call) if call.type_args.is_some())
            }
            Expr::TaggedTpl(template) => template.type_params.is_some(),
            _ => false,
        };
        if is_tried {
            self.tried_until = self.tried_until.max(range(expr.span()).end);
        } else if offset(expr.span().lo) < self.tried_until {
            self.may_hide_errors |= matches!(
                expr,
                Expr::Assign(_)
                    | Expr::Update(_)
                    | Expr::Unary(_)
                    | Expr::Arrow(_)
                    | Expr::Fn(_)
                    | Expr::Class(_)
                    | Expr::Yield(_)
            );
        }
    }

    /// `<T>expr`: a line end after `return` would end the statement, so it goes inside parentheses.
    fn remove_type_before(&mut self, expr: &Expr, whole: Span) {
        let removed = range(whole).start..range(expr.span()).start;
        let lines = line_ends(self.text(removed.clone()));
        // At the start of a statement or an arrow function's body, these would mean something else.
        let rest = self.text(removed.end..self.code.len());
        let starts_anew =
            ["{", "function", "class", "async", "let"].iter().any(|word| rest.starts_with(word));
        if lines.is_empty() && !starts_anew {
            self.remove(removed);
        } else {
            self.edits.replace(removed, format!("({lines}"));
            self.edits.insert(range(whole).end, ")");
        }
        expr.visit_with(self);
    }
}

/// `async => 1`: a parameter of this name, without parentheses.
fn bare_async_parameter(arrow: &ArrowExpr) -> Option<&Ident> {
    match &arrow.params[..] {
        [Pat::Ident(name)] if name.id.sym == *"async" && name.id.span.lo == arrow.span.lo => Some(&name.id),
        _ => None,
    }
}

/// The first expression of a sequence.
fn first_of(expr: &Expr) -> &Expr {
    match expr {
        Expr::Seq(sequence) => sequence.exprs.first().map_or(expr, |first| first),
        _ => expr,
    }
}

impl Visit for Stripper<'_> {
    fn visit_stmts(&mut self, statements: &[Stmt]) {
        statements.iter().for_each(|statement| self.listed(statement));
    }

    fn visit_stmt(&mut self, statement: &Stmt) {
        let is_type = match statement {
            Stmt::Decl(Decl::TsInterface(_) | Decl::TsTypeAlias(_)) => true,
            Stmt::Decl(Decl::Fn(function)) => function.declare || function.function.body.is_none(),
            Stmt::Decl(Decl::Class(class)) => class.declare,
            Stmt::Decl(Decl::Var(variable)) => variable.declare,
            Stmt::Decl(Decl::TsEnum(declaration)) => declaration.declare,
            Stmt::Decl(Decl::TsModule(module)) => {
                if !module.declare {
                    self.refuse(module.span, "namespaces", "use an object or plain functions");
                }
                true
            }
            _ => false,
        };
        match statement {
            _ if is_type => self.remove_statement(range(statement.span())),
            Stmt::Decl(Decl::TsEnum(declaration)) => match enum_edits(self.code, declaration) {
                Ok(edits) => {
                    self.edits.append(edits);
                    for member in &declaration.members {
                        member.init.visit_with(self);
                    }
                }
                Err(error) => self.refused = self.refused.take().or(Some(error)),
            },
            _ => statement.visit_children_with(self),
        }
    }

    fn visit_using_decl(&mut self, declaration: &UsingDecl) {
        self.refuse(declaration.span, "`using` declarations", "use `const` and a `finally` block");
    }

    fn visit_assign_pat(&mut self, pattern: &AssignPat) {
        // The parser accepts it if there is a type in between.
        if matches!(&*pattern.left, Pat::Rest(_)) {
            self.refuse(pattern.span, "rest parameters with a default", "it is an empty array by default");
        }
        pattern.visit_children_with(self);
    }

    fn visit_ts_type_ann(&mut self, annotation: &TsTypeAnn) {
        self.remove(range(annotation.span));
    }

    fn visit_ts_type_param_decl(&mut self, parameters: &TsTypeParamDecl) {
        self.remove(range(parameters.span));
    }

    fn visit_ts_type_param_instantiation(&mut self, arguments: &TsTypeParamInstantiation) {
        self.remove(range(arguments.span));
    }

    /// Only patterns can have these, and the parser has converted patterns already.
    fn visit_assign_prop(&mut self, property: &AssignProp) {
        let message = format!("unexpected `=` after the field `{}` of an object", property.key.sym);
        let hint = format!("write `{}: …`", property.key.sym);
        self.refuse_syntax(property.key.span, message, &hint);
    }

    fn visit_unary_expr(&mut self, unary: &UnaryExpr) {
        if unary.op == UnaryOp::Delete && without_types(&unary.arg).is_ident() {
            let message = "`delete` takes a field, not a variable".to_owned();
            self.refuse_syntax(unary.span, message, "set the variable to undefined");
        }
        unary.visit_children_with(self);
    }

    fn visit_expr(&mut self, expr: &Expr) {
        self.note_tried(expr);
        match expr {
            Expr::TsAs(inner) => self.remove_type_after(&inner.expr, inner.span),
            Expr::TsSatisfies(inner) => self.remove_type_after(&inner.expr, inner.span),
            Expr::TsInstantiation(inner) => self.remove_type_arguments(inner),
            Expr::TsNonNull(inner) => self.remove_bang(&inner.expr, inner.span),
            Expr::TsTypeAssertion(inner) => self.remove_type_before(&inner.expr, inner.span),
            Expr::TsConstAssertion(inner) if inner.expr.span().lo > inner.span.lo => {
                self.remove_type_before(&inner.expr, inner.span);
            }
            Expr::TsConstAssertion(inner) => self.remove_type_after(&inner.expr, inner.span),
            Expr::OptChain(chain) => {
                if chain.optional {
                    self.types_before_optional(chain);
                }
                chain.visit_children_with(self);
            }
            _ => expr.visit_children_with(self),
        }
    }

    fn visit_member_expr(&mut self, member: &MemberExpr) {
        self.types_before_field(member);
        member.visit_children_with(self);
    }

    fn visit_simple_assign_target(&mut self, target: &SimpleAssignTarget) {
        match target {
            SimpleAssignTarget::TsAs(inner) => self.remove_type_after(&inner.expr, inner.span),
            SimpleAssignTarget::TsSatisfies(inner) => self.remove_type_after(&inner.expr, inner.span),
            SimpleAssignTarget::TsNonNull(inner) => self.remove_bang(&inner.expr, inner.span),
            SimpleAssignTarget::TsTypeAssertion(inner) => self.remove_type_before(&inner.expr, inner.span),
            SimpleAssignTarget::TsInstantiation(inner) => self.remove_type_arguments(inner),
            _ => target.visit_children_with(self),
        }
    }

    fn visit_binding_ident(&mut self, name: &BindingIdent) {
        if name.id.optional {
            self.remove_mark(self.end_of_name(&name.id), &['?']);
        }
        name.type_ann.visit_with(self);
    }

    fn visit_var_declarator(&mut self, declarator: &VarDeclarator) {
        if let (true, Pat::Ident(name)) = (declarator.definite, &declarator.name) {
            self.remove_mark(self.end_of_name(&name.id), &['!']);
        }
        declarator.name.visit_with(self);
        declarator.init.visit_with(self);
    }

    fn visit_function(&mut self, function: &Function) {
        self.type_parameters(function.type_params.as_deref());
        if let Some(this) = &function.this_param {
            let end = range(this.span).end;
            let comma = skip_blanks(self.code, end);
            let end = if self.text(comma..comma + 1) == "," { comma + 1 } else { end };
            self.remove(range(this.span).start..end);
        }
        function.params.visit_with(self);
        function.return_type.visit_with(self);
        function.body.visit_with(self);
    }

    fn visit_arrow_expr(&mut self, arrow: &ArrowExpr) {
        if let Some(pause) = first_pause(&arrow.params) {
            let message = format!("`{}` isn't allowed in an arrow function's parameters", pause.word);
            self.refuse_syntax(pause.span, message, "assign the default in the function's body");
        }
        let end = skip_blanks(self.code, range(arrow.span).end);
        let is_tried_in_choice =
            arrow.return_type.is_some() && self.text(end..self.code.len()).starts_with(':');
        self.may_hide_errors |= arrow.type_params.is_some() || is_tried_in_choice;
        self.type_parameters(arrow.type_params.as_deref());
        if let Some(name) = bare_async_parameter(arrow) {
            // The engine would read it as the start of an async function.
            self.edits.wrap(range(name.span), "(", ")");
        }
        arrow.params.visit_with(self);
        if let Some(annotation) = &arrow.return_type {
            // A line end isn't allowed between the parameters and the arrow.
            let at = self.tokens.partition_point(|token| token.span.lo < annotation.span.lo);
            let before = self.tokens.get(at.wrapping_sub(1)).map(|token| range(token.span).end);
            let annotation = range(annotation.span);
            let removed = before.unwrap_or(annotation.start)..annotation.end;
            let sign = skip_blanks(self.code, removed.end);
            let lines = line_ends(self.text(removed.start..sign));
            if lines.is_empty() || self.text(sign..sign + 2) != "=>" {
                self.remove(removed);
            } else {
                self.edits.replace(removed.start..sign + 2, format!("=>{lines}"));
            }
        }
        arrow.body.visit_with(self);
    }

    fn visit_class(&mut self, class: &Class) {
        if class.is_abstract {
            // The span starts at the word or after it.
            let at = self.tokens.partition_point(|token| token.span.lo <= class.span.lo);
            self.remove_word("abstract", at.saturating_sub(2)..at);
        }
        class.type_params.visit_with(self);
        class.super_class.visit_with(self);
        class.super_type_params.visit_with(self);
        if let (Some(first), Some(last)) = (class.implements.first(), class.implements.last()) {
            let at = self.tokens.partition_point(|token| token.span.lo < first.span.lo);
            if let Some(word) = self.remove_word("implements", at.saturating_sub(1)..at) {
                self.remove(word.end..range(last.span).end);
            }
        }
        for member in &class.body {
            match member {
                ClassMember::Constructor(constructor) if constructor.body.is_some() => {
                    self.parameter_properties(constructor, class);
                }
                _ => {}
            }
            member.visit_with(self);
        }
    }

    fn visit_class_member(&mut self, member: &ClassMember) {
        let (is_type, key) = match member {
            ClassMember::TsIndexSignature(_) => (true, None),
            ClassMember::Constructor(constructor) => {
                (constructor.body.is_none(), Some(constructor.key.span()))
            }
            ClassMember::Method(method) => (method.function.body.is_none(), Some(method.key.span())),
            ClassMember::PrivateMethod(method) => (method.function.body.is_none(), Some(method.key.span)),
            ClassMember::ClassProp(property) => {
                (property.declare || property.is_abstract, Some(property.key.span()))
            }
            ClassMember::PrivateProp(property) => (false, Some(property.key.span)),
            _ => (false, None),
        };
        if is_type {
            self.remove_statement(range(member.span()));
            return;
        }
        if let Some(key) = key {
            self.remove_modifiers(member.span().lo, key);
            let is_marked = match member {
                ClassMember::Method(method) => method.is_optional,
                ClassMember::ClassProp(property) => property.is_optional || property.definite,
                ClassMember::PrivateProp(property) => property.is_optional || property.definite,
                ClassMember::PrivateMethod(method) => method.is_optional,
                _ => false,
            };
            if is_marked {
                self.remove_mark(range(key).end, &['?', '!']);
            }
        }
        if let ClassMember::ClassProp(ClassProp { key: PropName::Ident(name), value: None, span, .. }) =
            member
            && matches!(&*name.sym, "get" | "set" | "static" | "async")
            && !self.text(range(*span)).ends_with(';')
        {
            // With a `*` on the next line, the engine would read it as the start of a method.
            self.edits.insert(range(*span).end, ";");
        }
        member.visit_children_with(self);
    }

    fn visit_ts_param_prop(&mut self, property: &TsParamProp) {
        self.remove_modifiers(property.span.lo, property.param.span());
        property.param.visit_with(self);
    }
}
