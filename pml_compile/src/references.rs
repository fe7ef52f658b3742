//! References: every place where the code names a tool or capability, and every use that can't be resolved statically.

use pml_core::fqdn::Fqdn;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use swc_common::Span;
use swc_ecma_ast::*;
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::bindings::Bindings;
use super::error::Places;
use super::names::{candidates, plain_candidates, split_version};
use super::parse::{Parsed, range};
use super::value::{
    Chain, Key, Root, as_call, as_member, chain_of, chain_of_name, global_of, global_root, unwrap,
};

/// A place that names a tool or capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// The byte range that linking replaces.
    pub start: usize,
    pub end: usize,
    /// The candidate names, best first; empty if it names an FQDN.
    pub candidates: Vec<String>,
    /// The version after `@` in the name, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Set if the code names the FQDN itself: it is already linked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fqdn: Option<String>,
    /// Written as `capabilities.…`: it can't be a tool.
    pub capability_only: bool,
    /// Whether it is called here, or passed on as a value.
    pub called: bool,
    #[serde(skip)]
    pub(crate) written: Written,
}

/// How a reference is written, which decides how it is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Written {
    #[default]
    Expression,
    /// `{ read }`, where a replacement must become `{ read: … }`.
    Shorthand,
    /// Both `mcp` and `capabilities` are shadowed here: it isn't replaced.
    Unreachable,
    /// `mcp` is shadowed here, `capabilities` isn't.
    ThroughCapabilities,
}

/// A use of `mcp` or `capabilities` that can't be resolved statically.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unresolved {
    pub start: usize,
    pub end: usize,
    pub line: usize,
    pub column: usize,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct References {
    pub found: Vec<Reference>,
    pub unresolved: Vec<Unresolved>,
    /// The called reference, by the span of the call.
    #[serde(skip)]
    pub(crate) by_call: FxHashMap<Span, usize>,
}

impl References {
    /// Every candidate name, once each.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.found.iter().flat_map(|reference| &reference.candidates).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    pub(crate) fn of(parsed: &Parsed<'_>, bindings: &Bindings) -> Self {
        let mut finder =
            Finder { code: parsed.code, places: Places::of(parsed.code), bindings, found: Self::default() };
        finder.found.found.reserve(16);
        finder.found.by_call.reserve(16);
        for statement in parsed.statements() {
            statement.visit_with(&mut finder);
        }
        finder.found
    }
}

/// What a chain of fields from `mcp` or `capabilities` names.
enum Meaning {
    /// The step that completes the name, and the candidates.
    Action {
        step: usize,
        candidates: Vec<String>,
        version: Option<String>,
        fqdn: Option<String>,
        capability_only: bool,
    },
    /// `mcp` or `mcp.ns`: not a complete name.
    Incomplete,
    Dynamic,
    Unrelated,
}

fn meaning(chain: &Chain, called: bool) -> Meaning {
    let Root::Global(root) = &chain.root else { return Meaning::Unrelated };
    let capability_only = match &**root {
        "mcp" => false,
        "capabilities" => true,
        _ => return Meaning::Unrelated,
    };
    let Some(first) = chain.steps.first() else { return Meaning::Incomplete };
    let Some(first_key) = first.key.as_text() else { return Meaning::Dynamic };
    let is_whole = capability_only
        || (matches!(first.key, Key::Text(_)) && first_key.contains([':', '.', '@']))
        || (chain.steps.len() == 1 && called);
    if is_whole {
        let (name, version) = split_version(first_key);
        let fqdn = Fqdn::parse(name).is_ok().then(|| name.to_owned());
        let candidates = match (&fqdn, name.split_once(':')) {
            (Some(_), _) => Vec::new(),
            (None, Some((namespace, action))) => candidates(namespace, action),
            (None, None) => plain_candidates(name),
        };
        return Meaning::Action {
            step: 0,
            candidates,
            version: version.map(str::to_owned),
            fqdn,
            capability_only,
        };
    }
    let Some(second) = chain.steps.get(1) else { return Meaning::Incomplete };
    let Some(action) = second.key.as_text() else { return Meaning::Dynamic };
    let (action, version) = match second.key {
        Key::Text(_) => split_version(action),
        _ => (action, None),
    };
    Meaning::Action {
        step: 1,
        candidates: candidates(first_key, action),
        version: version.map(str::to_owned),
        fqdn: None,
        capability_only,
    }
}

fn is_ours(name: &swc_atoms::Atom) -> bool {
    matches!(&**name, "mcp" | "capabilities")
}

struct Finder<'a> {
    code: &'a str,
    places: Places<'a>,
    bindings: &'a Bindings,
    found: References,
}

impl Finder<'_> {
    /// Handles a chain of fields; true if it starts from `mcp` or `capabilities`.
    fn chain(&mut self, chain: Chain, called: Option<Span>, shorthand: bool) -> bool {
        let whole = chain.steps.last().map_or(chain.root_span, |step| step.span);
        let root_span = chain.root_span;
        let Some(chain) = self.bindings.follow_chain(chain) else { return false };
        match meaning(&chain, called.is_some()) {
            Meaning::Unrelated => return false,
            Meaning::Incomplete => {
                self.unresolved(whole, "is passed on here, so its calls can't be resolved");
            }
            Meaning::Dynamic => self.unresolved(whole, "is indexed by a value known only at run time"),
            Meaning::Action { step, candidates, version, fqdn, capability_only } => {
                let through_variable = step < chain.inherited;
                let span = if through_variable { root_span } else { chain.steps[step].span };
                let mcp_hidden = self.bindings.is_shadowed("mcp", span);
                let capabilities_hidden = self.bindings.is_shadowed("capabilities", span);
                let written = match (mcp_hidden, capabilities_hidden) {
                    (true, true) => Written::Unreachable,
                    (true, false) => Written::ThroughCapabilities,
                    _ if shorthand => Written::Shorthand,
                    _ => Written::Expression,
                };
                let is_last = step + 1 == chain.steps.len();
                if let Some(call) = called.filter(|_| is_last) {
                    self.found.by_call.insert(call, self.found.found.len());
                }
                let bytes = range(span);
                self.found.found.push(Reference {
                    start: bytes.start,
                    end: bytes.end,
                    candidates,
                    version,
                    fqdn,
                    capability_only,
                    called: called.is_some() && is_last,
                    written,
                });
            }
        }
        true
    }

    fn unresolved(&mut self, span: Span, reason: &str) {
        let bytes = range(span);
        let (line, column) = self.places.at(bytes.start);
        let text = self.code.get(bytes.clone()).unwrap_or_default();
        let shown: String = text.chars().take(40).collect();
        let reason = format!("`{shown}` {reason}");
        self.found.unresolved.push(Unresolved { start: bytes.start, end: bytes.end, line, column, reason });
    }

    /// Visits the computed keys of a chain (`mcp[f(x)]`) and its root.
    fn inside_chain(&mut self, expr: &Expr) {
        let mut expr = unwrap(expr);
        while let Some((member, ..)) = as_member(expr) {
            if let MemberProp::Computed(computed) = &member.prop {
                computed.expr.visit_with(self);
            }
            expr = unwrap(&member.obj);
        }
        if !matches!(expr, Expr::Ident(_)) {
            expr.visit_with(self);
        }
    }

    fn expression(&mut self, expr: &Expr, called: Option<Span>) {
        let unwrapped = unwrap(expr);
        if !matches!(unwrapped, Expr::Ident(_)) && as_member(unwrapped).is_none() {
            expr.visit_children_with(self);
            return;
        }
        if global_root(self.bindings, unwrapped).is_some_and(is_ours)
            && let Some(chain) = chain_of(self.bindings, unwrapped)
        {
            self.chain(chain, called, false);
        }
        self.inside_chain(unwrapped);
    }

    /// `const fs = mcp.fs` and `const { read } = mcp.fs` are resolved where the names are used; true if this is one.
    fn is_followed_alias(&self, declarator: &VarDeclarator) -> bool {
        let Some(init) = &declarator.init else { return false };
        if !global_root(self.bindings, init).is_some_and(is_ours) {
            return false;
        }
        let Some(chain) = chain_of(self.bindings, init).and_then(|chain| self.bindings.follow_chain(chain))
        else {
            return false;
        };
        match meaning(&chain, false) {
            Meaning::Incomplete => self.all_followed(&declarator.name),
            Meaning::Action { step, .. } if step + 1 == chain.steps.len() => {
                matches!(declarator.name, Pat::Ident(_)) && self.all_followed(&declarator.name)
            }
            _ => false,
        }
    }

    fn all_followed(&self, pattern: &Pat) -> bool {
        let has_value = |name: &Ident| {
            self.bindings.binding_at(name.span).is_some_and(|binding| self.bindings.value(binding).is_some())
        };
        match pattern {
            Pat::Ident(name) => has_value(&name.id),
            Pat::Object(object) => object.props.iter().all(|property| match property {
                ObjectPatProp::KeyValue(pair) => self.all_followed(&pair.value),
                ObjectPatProp::Assign(assign) => assign.value.is_none() && has_value(&assign.key.id),
                ObjectPatProp::Rest(_) => false,
            }),
            _ => false,
        }
    }
}

impl Visit for Finder<'_> {
    noop_visit_type!();

    fn visit_expr(&mut self, expr: &Expr) {
        if let Some((callee, args, span, _)) = as_call(expr) {
            self.expression(callee, Some(span));
            args.visit_with(self);
            return;
        }
        match expr {
            Expr::Unary(unary) if unary.op == UnaryOp::TypeOf && matches!(&*unary.arg, Expr::Ident(_)) => {}
            _ => self.expression(expr, None),
        }
    }

    fn visit_prop(&mut self, property: &Prop) {
        match property {
            Prop::Shorthand(name) => {
                if global_of(self.bindings, name).is_some_and(is_ours) {
                    self.chain(chain_of_name(self.bindings, name), None, true);
                }
            }
            _ => property.visit_children_with(self),
        }
    }

    fn visit_var_declarator(&mut self, declarator: &VarDeclarator) {
        declarator.name.visit_with(self);
        match &declarator.init {
            Some(init) if self.is_followed_alias(declarator) => self.inside_chain(init),
            Some(init) => init.visit_with(self),
            None => {}
        }
    }

    fn visit_simple_assign_target(&mut self, target: &SimpleAssignTarget) {
        if let SimpleAssignTarget::Member(member) = target {
            if global_root(self.bindings, &member.obj).is_some_and(is_ours) {
                self.unresolved(member.span, "is assigned to, so its calls can't be resolved");
            } else {
                member.visit_with(self);
            }
            return;
        }
        target.visit_children_with(self);
    }

    /// A member that isn't an expression: the target of an assignment.
    fn visit_member_expr(&mut self, member: &MemberExpr) {
        if let MemberProp::Computed(computed) = &member.prop {
            computed.expr.visit_with(self);
        }
        self.inside_chain(&member.obj);
    }
}
