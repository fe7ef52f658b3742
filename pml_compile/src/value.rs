//! The static value of an expression: a chain of fields from a known root, a literal, a template, or an object or array of
//! those.

use serde_json::{Number, Value as Json};
use swc_atoms::Atom;
use swc_common::{Span, Spanned};
use swc_ecma_ast::{
    Callee, Expr, ExprOrSpread, Ident, Lit, MemberExpr, MemberProp, OptChainBase, Prop, PropName,
    PropOrSpread, Str, UnaryOp,
};

use super::bindings::{BindingId, Bindings};

/// Where a chain of fields starts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Root {
    /// A name that the code doesn't declare: `mcp`, `args`, `Promise`, …
    Global(Atom),
    Local(BindingId),
    /// The result of the call with this span.
    Call(Span),
    Other,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Key {
    Name(Atom),
    /// `x["text"]`
    Text(Atom),
    Index(usize),
    /// Known only at run time.
    Dynamic,
}

impl Key {
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Key::Name(name) => Some(name),
            Key::Text(text) => Some(text),
            Key::Index(_) | Key::Dynamic => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) key: Key,
    /// The expression up to and including this step.
    pub(crate) span: Span,
    pub(crate) optional: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chain {
    pub(crate) root: Root,
    pub(crate) root_span: Span,
    pub(crate) steps: Vec<Step>,
    /// How many of the steps came from the variables that the chain goes through.
    pub(crate) inherited: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TemplatePart {
    Text(String),
    Value(Draft),
}

/// A static value, before the ids of nodes are known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Draft {
    Chain(Chain),
    Literal(Json),
    Template(Vec<TemplatePart>),
    Object(Vec<(Atom, Draft)>),
    Array(Vec<Draft>),
    /// Anything else, as source text.
    Source(Span),
}

impl Draft {
    /// The number of values and fields in it; a long text counts as several.
    pub(crate) fn size(&self) -> usize {
        const BYTES: usize = 32;
        1 + match self {
            Draft::Chain(chain) => chain.steps.len(),
            Draft::Template(parts) => parts
                .iter()
                .map(|part| match part {
                    TemplatePart::Text(text) => 1 + text.len() / BYTES,
                    TemplatePart::Value(value) => value.size(),
                })
                .sum(),
            Draft::Object(fields) => fields.iter().map(|(_, value)| value.size()).sum(),
            Draft::Array(items) => items.iter().map(Draft::size).sum(),
            Draft::Literal(Json::String(text)) => text.len() / BYTES,
            Draft::Literal(_) | Draft::Source(_) => 0,
        }
    }
}

/// Unwraps parentheses, type syntax and `await`, none of which change the value.
pub(crate) fn unwrap(expr: &Expr) -> &Expr {
    let mut expr = without_types(expr);
    while let Expr::Await(inner) = expr {
        expr = without_types(&inner.arg);
    }
    expr
}

/// Unwraps parentheses and type syntax.
pub(crate) fn without_types(expr: &Expr) -> &Expr {
    let mut expr = expr;
    loop {
        expr = match expr {
            Expr::Paren(inner) => &inner.expr,
            Expr::TsAs(inner) => &inner.expr,
            Expr::TsNonNull(inner) => &inner.expr,
            Expr::TsTypeAssertion(inner) => &inner.expr,
            Expr::TsConstAssertion(inner) => &inner.expr,
            Expr::TsSatisfies(inner) => &inner.expr,
            Expr::TsInstantiation(inner) => &inner.expr,
            _ => return expr,
        };
    }
}

/// A member access, plain or optional.
pub(crate) fn as_member(expr: &Expr) -> Option<(&MemberExpr, Span, bool)> {
    match expr {
        Expr::Member(member) => Some((member, member.span, false)),
        Expr::OptChain(chain) => match &*chain.base {
            OptChainBase::Member(member) => Some((member, chain.span, chain.optional)),
            OptChainBase::Call(_) => None,
        },
        _ => None,
    }
}

/// A call, plain or optional: its callee, arguments, span, and whether it is written `?.()`.
pub(crate) fn as_call(expr: &Expr) -> Option<(&Expr, &[ExprOrSpread], Span, bool)> {
    match expr {
        Expr::Call(call) => match &call.callee {
            Callee::Expr(callee) => Some((callee, &call.args, call.span, false)),
            _ => None,
        },
        Expr::OptChain(chain) => match &*chain.base {
            OptChainBase::Call(call) => Some((&call.callee, &call.args, chain.span, chain.optional)),
            OptChainBase::Member(_) => None,
        },
        _ => None,
    }
}

/// `None` also for text with a NUL, which Postgres can't store: it counts as known only at run time.
pub(crate) fn text_of(literal: &Str) -> Option<&str> {
    literal.value.as_str().filter(|text| is_storable(text))
}

pub(crate) fn is_storable(text: &str) -> bool {
    !text.contains('\0')
}

/// A string constant: a string literal or a template without expressions.
pub(crate) fn static_text(expr: &Expr) -> Option<String> {
    match unwrap(expr) {
        Expr::Lit(Lit::Str(literal)) => text_of(literal).map(str::to_owned),
        Expr::Tpl(template) if template.exprs.is_empty() => {
            let text = template.quasis.first()?.cooked.as_ref()?.as_str();
            text.filter(|text| is_storable(text)).map(str::to_owned)
        }
        _ => None,
    }
}

fn key_of(property: &MemberProp) -> Key {
    match property {
        MemberProp::Ident(name) => Key::Name(name.sym.clone()),
        MemberProp::PrivateName(_) => Key::Dynamic,
        MemberProp::Computed(computed) => match (static_text(&computed.expr), unwrap(&computed.expr)) {
            (Some(text), _) => Key::Text(Atom::from(text)),
            (None, Expr::Lit(Lit::Num(number))) if number.value >= 0.0 && number.value.fract() == 0.0 => {
                Key::Index(number.value as usize)
            }
            _ => Key::Dynamic,
        },
    }
}

pub(crate) fn prop_name(name: &PropName) -> Option<Atom> {
    match name {
        PropName::Ident(name) => Some(name.sym.clone()),
        PropName::Str(literal) => text_of(literal).map(Atom::from),
        PropName::Num(number) => Some(Atom::from(number.value.to_string())),
        PropName::Computed(computed) => static_text(&computed.expr).map(Atom::from),
        PropName::BigInt(_) => None,
    }
}

/// A literal as JSON; `None` if JSON can't represent it.
pub(crate) fn literal_json(expr: &Expr) -> Option<Json> {
    match unwrap(expr) {
        Expr::Lit(Lit::Str(literal)) => text_of(literal).map(|text| Json::String(text.to_owned())),
        Expr::Lit(Lit::Bool(literal)) => Some(Json::Bool(literal.value)),
        Expr::Lit(Lit::Null(_)) => Some(Json::Null),
        Expr::Lit(Lit::Num(number)) => json_number(number.value),
        Expr::Unary(unary) if unary.op == UnaryOp::Minus => match unwrap(&unary.arg) {
            Expr::Lit(Lit::Num(number)) => json_number(-number.value),
            _ => None,
        },
        Expr::Tpl(_) => static_text(expr).map(Json::String),
        _ => None,
    }
}

fn json_number(value: f64) -> Option<Json> {
    if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_991.0 {
        return Some(Json::Number(Number::from(value as i64)));
    }
    Number::from_f64(value).map(Json::Number)
}

/// The global that a chain of fields starts from, through variables: a cheap filter before [`chain_of`].
pub(crate) fn global_root<'a>(bindings: &'a Bindings, expr: &'a Expr) -> Option<&'a Atom> {
    let mut expr = unwrap(expr);
    while let Some((member, ..)) = as_member(expr) {
        expr = unwrap(&member.obj);
    }
    match expr {
        Expr::Ident(name) => global_of(bindings, name),
        _ => None,
    }
}

/// The global that a name is, or that its variable's value starts from.
pub(crate) fn global_of<'a>(bindings: &'a Bindings, name: &'a Ident) -> Option<&'a Atom> {
    match bindings.binding_at(name.span) {
        Some(binding) => bindings.global_root(binding),
        None => Some(&name.sym),
    }
}

fn root_of_name(bindings: &Bindings, name: &Ident) -> Root {
    bindings.binding_at(name.span).map_or_else(|| Root::Global(name.sym.clone()), Root::Local)
}

/// A name as a chain without fields.
pub(crate) fn chain_of_name(bindings: &Bindings, name: &Ident) -> Chain {
    Chain { root: root_of_name(bindings, name), root_span: name.span, steps: Vec::new(), inherited: 0 }
}

/// The expression as a chain of fields; `None` if it isn't one.
pub(crate) fn chain_of(bindings: &Bindings, expr: &Expr) -> Option<Chain> {
    let mut steps = Vec::new();
    let mut expr = unwrap(expr);
    while let Some((member, span, optional)) = as_member(expr) {
        steps.push(Step { key: key_of(&member.prop), span, optional });
        expr = unwrap(&member.obj);
    }
    steps.reverse();
    let root = match expr {
        Expr::Ident(name) => root_of_name(bindings, name),
        _ if as_call(expr).is_some() => Root::Call(expr.span()),
        _ if steps.is_empty() => return None,
        _ => Root::Other,
    };
    Some(Chain { root, root_span: expr.span(), steps, inherited: 0 })
}

/// The static value of an expression, with variables replaced by their values.
pub(crate) fn draft_of(bindings: &Bindings, expr: &Expr) -> Draft {
    let expr = unwrap(expr);
    if let Some(json) = literal_json(expr) {
        return Draft::Literal(json);
    }
    match expr {
        Expr::Object(object) => {
            let mut fields = Vec::with_capacity(object.props.len());
            fields.extend(object.props.iter().map_while(|property| field_of(bindings, property)));
            if fields.len() < object.props.len() { Draft::Source(object.span) } else { Draft::Object(fields) }
        }
        Expr::Array(array) => {
            let items = array.elems.iter().map(|item| match item {
                Some(ExprOrSpread { spread: None, expr }) => Some(draft_of(bindings, expr)),
                _ => None,
            });
            items.collect::<Option<Vec<_>>>().map_or(Draft::Source(array.span), Draft::Array)
        }
        Expr::Tpl(template) => {
            let mut parts = Vec::new();
            for (i, quasi) in template.quasis.iter().enumerate() {
                let text = quasi
                    .cooked
                    .as_ref()
                    .map_or_else(String::new, |text| text.to_string_lossy().into_owned());
                if !is_storable(&text) {
                    return Draft::Source(template.span);
                }
                if !text.is_empty() {
                    parts.push(TemplatePart::Text(text));
                }
                if let Some(value) = template.exprs.get(i) {
                    parts.push(TemplatePart::Value(draft_of(bindings, value)));
                }
            }
            Draft::Template(parts)
        }
        _ => match promise_all_items(bindings, expr) {
            Some(items) => Draft::Array(items),
            None => {
                chain_of(bindings, expr).map_or(Draft::Source(expr.span()), |chain| bindings.follow(chain))
            }
        },
    }
}

/// The method in a callee `Promise.method`.
pub(crate) fn promise_method<'a>(bindings: &Bindings, callee: &'a Expr) -> Option<&'a Atom> {
    let (member, ..) = as_member(unwrap(callee))?;
    match (unwrap(&member.obj), &member.prop) {
        (Expr::Ident(object), MemberProp::Ident(method))
            if object.sym == *"Promise" && bindings.binding_at(object.span).is_none() =>
        {
            Some(&method.sym)
        }
        _ => None,
    }
}

/// The value of `Promise.all([a, b])`: the results of `a` and `b`, in this order.
fn promise_all_items(bindings: &Bindings, expr: &Expr) -> Option<Vec<Draft>> {
    let (callee, args, ..) = as_call(expr)?;
    promise_method(bindings, callee).filter(|method| **method == *"all")?;
    match args {
        [ExprOrSpread { spread: None, expr }] => match draft_of(bindings, expr) {
            Draft::Array(items) => Some(items),
            _ => None,
        },
        _ => None,
    }
}

fn field_of(bindings: &Bindings, property: &PropOrSpread) -> Option<(Atom, Draft)> {
    match property {
        PropOrSpread::Spread(spread) => Some((Atom::from("..."), draft_of(bindings, &spread.expr))),
        PropOrSpread::Prop(property) => match &**property {
            Prop::Shorthand(name) => Some((name.sym.clone(), bindings.follow(chain_of_name(bindings, name)))),
            Prop::KeyValue(pair) => Some((prop_name(&pair.key)?, draft_of(bindings, &pair.value))),
            _ => None,
        },
    }
}

/// The part of a value that the steps select.
pub(crate) fn select(value: &Draft, steps: &[Step]) -> Option<Draft> {
    let Some((first, rest)) = steps.split_first() else { return Some(value.clone()) };
    match value {
        Draft::Chain(chain) => {
            let mut chain = chain.clone();
            chain.steps.extend(steps.iter().cloned());
            Some(Draft::Chain(chain))
        }
        Draft::Object(fields) => {
            let name = first.key.as_text()?;
            let (_, field) = fields.iter().rev().find(|(field, _)| *field == *name)?;
            select(field, rest)
        }
        Draft::Array(items) => match first.key {
            Key::Index(index) => select(items.get(index)?, rest),
            _ => None,
        },
        Draft::Literal(json) => {
            let inner = match &first.key {
                Key::Index(index) => json.get(*index)?,
                key => json.get(key.as_text()?)?,
            };
            select(&Draft::Literal(inner.clone()), rest)
        }
        Draft::Template(_) | Draft::Source(_) => None,
    }
}
