//! Lifting: literals that look like secrets or settings become parameters; a setting keeps its value as the default, a secret doesn't.

mod kind;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::*;
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::bindings::Bindings;
use super::edits::Edits;
use super::parse::{Parsed, range};
use super::value::{Root, as_member, chain_of, prop_name, static_text, text_of, unwrap};
pub(crate) use kind::is_secret;
use kind::{is_setting_name, kind_of_text, parameter_name};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LiftedKind {
    Secret,
    Setting,
}

/// A literal that became a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiftedLiteral {
    pub parameter: String,
    pub kind: LiftedKind,
    pub line: usize,
    pub column: usize,
}

/// The code with its literals lifted. Secrets are gone from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifted {
    pub code: String,
    pub literals: Vec<LiftedLiteral>,
}

pub(crate) fn lift(parsed: &Parsed<'_>, bindings: &Bindings) -> Lifted {
    let mut finder =
        Finder { bindings, found: Vec::new(), dropped: Vec::new(), used: BTreeSet::new(), name: None };
    for statement in parsed.statements() {
        statement.visit_with(&mut finder);
    }
    let mut edits = Edits::default();
    let mut literals = Vec::new();
    let mut by_value: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut used = finder.used;
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut places = super::error::Places::of(parsed.code);
    for (span, base, kind) in finder.found {
        let text = parsed.text(span);
        let parameter = by_value.entry((base.clone(), text.to_owned())).or_insert_with(|| {
            let count = counts.entry(base.clone()).or_insert(0);
            loop {
                *count += 1;
                let name = if *count == 1 { base.clone() } else { format!("{base}{count}") };
                if used.insert(name.clone()) {
                    break name;
                }
            }
        });
        let replacement = match kind {
            // The `!` makes it required: a secret has no default.
            LiftedKind::Secret => format!("args.{parameter}!"),
            LiftedKind::Setting => format!("(args.{parameter} ?? {text})"),
        };
        let (line, column) = places.at(range(span).start);
        literals.push(LiftedLiteral { parameter: parameter.clone(), kind, line, column });
        edits.replace(range(span), replacement);
    }
    for (span, parameter) in finder.dropped {
        let (line, column) = places.at(range(span).start);
        literals.push(LiftedLiteral { parameter, kind: LiftedKind::Secret, line, column });
        edits.remove(parsed.code, range(span));
    }
    Lifted { code: edits.apply(parsed.code), literals }
}

struct Finder<'a> {
    bindings: &'a Bindings,
    found: Vec<(Span, String, LiftedKind)>,
    /// Secrets that are defaults of parameters, and the names of those.
    dropped: Vec<(Span, String)>,
    /// Names of existing parameters.
    used: BTreeSet<String>,
    /// The name for the next value.
    name: Option<String>,
}

fn text_of_name(name: &PropName) -> Option<String> {
    prop_name(name).map(|name| name.as_str().to_owned())
}

impl Finder<'_> {
    fn named(&mut self, name: Option<String>, value: &Expr) {
        let outer = std::mem::replace(&mut self.name, name);
        value.visit_with(self);
        self.name = outer;
    }

    fn is_from_args(&self, expr: &Expr) -> bool {
        let chain = chain_of(self.bindings, expr).and_then(|chain| self.bindings.follow_chain(chain));
        chain.is_some_and(|chain| matches!(&chain.root, Root::Global(name) if *name == *"args"))
    }

    /// Removes the default of a parameter if it is a secret.
    fn drop_secret(&mut self, name: Option<&str>, default: &Expr, from: BytePos) {
        if let Expr::Lit(Lit::Str(text)) = unwrap(default)
            && text_of(text).is_some_and(|text| is_secret(name.unwrap_or_default(), text))
        {
            self.dropped.push((Span::new(from, default.span().hi), name.unwrap_or_default().to_owned()));
        }
    }

    /// A field destructured from `args`, which already has a name.
    fn parameter(&mut self, property: &ObjectPatProp) {
        match property {
            ObjectPatProp::Assign(assign) => {
                self.used.insert(assign.key.id.sym.as_str().to_owned());
                if let Some(default) = &assign.value {
                    self.drop_secret(Some(&assign.key.id.sym), default, assign.key.id.span.hi);
                }
            }
            ObjectPatProp::KeyValue(pair) => {
                let name = prop_name(&pair.key).unwrap_or_default();
                if let Pat::Assign(assign) = &*pair.value {
                    self.drop_secret(Some(&name), &assign.right, assign.left.span().hi);
                }
                self.used.insert(name.as_str().to_owned());
            }
            ObjectPatProp::Rest(_) => {}
        }
    }

    fn template(&mut self, template: &Tpl) {
        let name = self.name.clone().unwrap_or_default();
        let text =
            template.quasis.first().and_then(|part| part.cooked.as_ref()).and_then(|text| text.as_str());
        if let Some(kind) = text.and_then(|text| kind_of_text(&name, text))
            && !self.bindings.is_shadowed("args", template.span)
        {
            self.found.push((template.span, parameter_name(&name, kind), kind));
        }
    }

    fn literal(&mut self, literal: &Lit) {
        let name = self.name.clone().unwrap_or_default();
        let kind = match literal {
            Lit::Str(text) => text_of(text).and_then(|text| kind_of_text(&name, text)),
            Lit::Num(_) if is_setting_name(&name) => Some(LiftedKind::Setting),
            _ => None,
        };
        if let Some(kind) = kind.filter(|_| !self.bindings.is_shadowed("args", literal.span())) {
            let base = parameter_name(&name, kind);
            self.found.push((literal.span(), base, kind));
        }
    }
}

/// The name of the last field of a chain.
fn last_name(expr: &Expr) -> Option<String> {
    match unwrap(expr) {
        Expr::Ident(name) => Some(name.sym.as_str().to_owned()),
        other => as_member(other).and_then(|(member, ..)| last_key(&member.prop)),
    }
}

fn last_key(property: &MemberProp) -> Option<String> {
    match property {
        MemberProp::Ident(name) => Some(name.sym.as_str().to_owned()),
        MemberProp::Computed(computed) => static_text(&computed.expr),
        MemberProp::PrivateName(name) => Some(name.name.as_str().to_owned()),
    }
}

impl Visit for Finder<'_> {
    noop_visit_type!();

    fn visit_expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Lit(literal) => self.literal(literal),
            Expr::Tpl(template) if template.exprs.is_empty() => self.template(template),
            // The fallback of a parameter is lifted already; only a secret has to be removed.
            Expr::Bin(binary)
                if self.is_from_args(&binary.left) && matches!(unwrap(&binary.right), Expr::Lit(_)) =>
            {
                binary.left.visit_with(self);
                let name = last_name(&binary.left);
                self.drop_secret(name.as_deref(), &binary.right, binary.left.span().hi);
            }
            Expr::Assign(assignment) => {
                assignment.left.visit_with(self);
                let name = match &assignment.left {
                    AssignTarget::Simple(SimpleAssignTarget::Member(member)) => last_key(&member.prop),
                    AssignTarget::Simple(SimpleAssignTarget::Ident(name)) => {
                        Some(name.id.sym.as_str().to_owned())
                    }
                    _ => None,
                };
                self.named(name, &assignment.right);
            }
            Expr::Member(member) => {
                if let (true, Some(name)) = (self.is_from_args(&member.obj), member.prop.as_ident()) {
                    self.used.insert(name.sym.as_str().to_owned());
                }
                self.named(None, &member.obj);
                if let MemberProp::Computed(computed) = &member.prop
                    && !matches!(unwrap(&computed.expr), Expr::Lit(_))
                {
                    self.named(None, &computed.expr);
                }
            }
            Expr::Object(_) | Expr::Array(_) | Expr::Paren(_) | Expr::Await(_) => {
                expr.visit_children_with(self);
            }
            _ => {
                let outer = self.name.take();
                expr.visit_children_with(self);
                self.name = outer;
            }
        }
    }

    fn visit_key_value_prop(&mut self, pair: &KeyValueProp) {
        self.named(text_of_name(&pair.key), &pair.value);
    }

    fn visit_var_declarator(&mut self, declarator: &VarDeclarator) {
        let Some(init) = &declarator.init else { return };
        match &declarator.name {
            Pat::Ident(name) => self.named(Some(name.id.sym.as_str().to_owned()), init),
            Pat::Object(pattern) if self.is_from_args(init) => {
                pattern.props.iter().for_each(|property| self.parameter(property));
            }
            pattern => {
                pattern.visit_with(self);
                self.named(None, init);
            }
        }
    }

    fn visit_assign_pat(&mut self, pattern: &AssignPat) {
        let name = pattern.left.as_ident().map(|name| name.id.sym.as_str().to_owned());
        pattern.left.visit_with(self);
        self.named(name, &pattern.right);
    }

    fn visit_assign_pat_prop(&mut self, property: &AssignPatProp) {
        if let Some(default) = &property.value {
            self.named(Some(property.key.id.sym.as_str().to_owned()), default);
        }
    }

    fn visit_class_prop(&mut self, property: &ClassProp) {
        if let Some(value) = &property.value {
            self.named(text_of_name(&property.key), value);
        }
    }

    fn visit_private_prop(&mut self, property: &PrivateProp) {
        if let Some(value) = &property.value {
            self.named(Some(property.key.name.as_str().to_owned()), value);
        }
    }

    fn visit_expr_stmt(&mut self, statement: &ExprStmt) {
        // A directive like 'use strict' isn't a value.
        if !matches!(&*statement.expr, Expr::Lit(_)) {
            statement.visit_children_with(self);
        }
    }

    fn visit_switch_case(&mut self, case: &SwitchCase) {
        case.cons.visit_with(self);
    }

    fn visit_ts_enum_decl(&mut self, _: &TsEnumDecl) {}
}

#[cfg(test)]
mod tests;
