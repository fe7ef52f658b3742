//! Lifting: literals that look like secrets or settings become parameters; a setting keeps its value as the default, a secret doesn't.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::*;
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::bindings::Bindings;
use super::edits::Edits;
use super::parse::{Parsed, range};
use super::value::{Root, as_member, chain_of, prop_name_text, static_text, text_of, unwrap};

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

const SECRET_NAMES: &[&str] = &[
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "authorization",
    "credential",
    "privatekey",
    "accesskey",
    "passphrase",
];

/// How the secrets of well-known services start.
const SECRET_STARTS: &[&str] = &[
    "sk-",
    "sk_live_",
    "sk_test_",
    "pk_live_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "AIza",
    "Bearer ",
    "Basic ",
    "-----BEGIN",
    "eyJhbGci",
    "npm_",
    "hf_",
];

const SETTING_NAMES: &[&str] = &[
    "url",
    "uri",
    "endpoint",
    "host",
    "hostname",
    "port",
    "path",
    "file",
    "filename",
    "directory",
    "dir",
    "folder",
    "email",
    "channel",
    "bucket",
    "region",
    "database",
    "table",
    "timeout",
    "timeoutms",
    "limit",
    "retries",
    "interval",
    "model",
    "repo",
    "repository",
    "owner",
    "branch",
];

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
            LiftedKind::Secret => format!("args.{parameter}"),
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
    /// Names that are parameters already.
    used: BTreeSet<String>,
    /// What the value that comes next is called.
    name: Option<String>,
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

    /// Removes the default of a parameter, from the end of what it is a default for, if it is a secret.
    fn drop_secret(&mut self, name: Option<&str>, default: &Expr, from: BytePos) {
        if let Expr::Lit(Lit::Str(text)) = unwrap(default)
            && text_of(text).is_some_and(|text| is_secret(name.unwrap_or_default(), text))
        {
            self.dropped.push((Span::new(from, default.span().hi), name.unwrap_or_default().to_owned()));
        }
    }

    /// A parameter taken out of `args`, which has its name already.
    fn parameter(&mut self, property: &ObjectPatProp) {
        match property {
            ObjectPatProp::Assign(assign) => {
                self.used.insert(assign.key.id.sym.as_str().to_owned());
                if let Some(default) = &assign.value {
                    self.drop_secret(Some(&assign.key.id.sym), default, assign.key.id.span.hi);
                }
            }
            ObjectPatProp::KeyValue(pair) => {
                let name = prop_name_text(&pair.key).unwrap_or_default();
                if let Pat::Assign(assign) = &*pair.value {
                    self.drop_secret(Some(&name), &assign.right, assign.left.span().hi);
                }
                self.used.insert(name);
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

fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn is_setting_name(name: &str) -> bool {
    let words = super::names::snake_case(name);
    let last = words.rsplit(['_', '-']).next().unwrap_or_default();
    SETTING_NAMES.contains(&last) || SETTING_NAMES.contains(&plain(name).as_str())
}

/// Whether a text must not be kept as a default.
pub(crate) fn is_secret(name: &str, text: &str) -> bool {
    kind_of_text(name, text) == Some(LiftedKind::Secret)
}

fn kind_of_text(name: &str, text: &str) -> Option<LiftedKind> {
    let plain_name = plain(name);
    let named_secret = SECRET_NAMES.iter().any(|secret| plain_name.ends_with(secret)) && text.len() >= 4;
    if named_secret
        || SECRET_STARTS.iter().any(|start| text.len() > start.len() + 3 && text.starts_with(start))
        || looks_random(text)
    {
        return Some(LiftedKind::Secret);
    }
    let is_url = text.split_once("://").is_some_and(|(scheme, rest)| {
        !rest.is_empty()
            && !scheme.is_empty()
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+')
    });
    // A password inside a URL makes the whole of it a secret.
    if is_url
        && text.split_once("://").is_some_and(|(_, rest)| {
            rest.split('/')
                .next()
                .and_then(|authority| authority.rsplit_once('@'))
                .is_some_and(|(user, _)| user.contains(':'))
        })
    {
        return Some(LiftedKind::Secret);
    }
    if is_url && text.split_once('?').is_some_and(|(_, query)| query.split('&').any(is_secret_field)) {
        return Some(LiftedKind::Secret);
    }
    let is_path = text.len() > 1
        && (text.starts_with('/') || text.starts_with("~/"))
        && !text.contains(char::is_whitespace);
    let is_email = text
        .split_once('@')
        .is_some_and(|(user, host)| !user.is_empty() && host.contains('.') && !text.contains(' '));
    (is_url || is_path || is_email || (is_setting_name(name) && !text.is_empty()))
        .then_some(LiftedKind::Setting)
}

/// `token=…` in a URL.
fn is_secret_field(field: &str) -> bool {
    field.split_once('=').is_some_and(|(name, value)| {
        let name = plain(name);
        value.len() >= 4 && (name == "key" || SECRET_NAMES.iter().any(|secret| name.ends_with(secret)))
    })
}

/// Long, without spaces, and with digits among the letters of both cases: nobody writes that by hand.
fn looks_random(text: &str) -> bool {
    let has = |test: fn(&char) -> bool| text.chars().any(|c| test(&c));
    text.len() >= 32
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+/=_-".contains(c))
        && has(char::is_ascii_digit)
        && ((has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase))
            || text.chars().all(|c| c.is_ascii_hexdigit()))
}

fn parameter_name(name: &str, kind: LiftedKind) -> String {
    let mut camel = String::new();
    for (index, word) in super::names::snake_case(name)
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .enumerate()
    {
        let mut letters = word.chars();
        match (index, letters.next()) {
            (0, Some(first)) => camel.push(first),
            (_, Some(first)) => camel.extend(first.to_uppercase()),
            (_, None) => {}
        }
        camel.push_str(letters.as_str());
    }
    if !camel.starts_with(|c: char| c.is_ascii_alphabetic()) {
        camel = if kind == LiftedKind::Secret { "secret".to_owned() } else { "setting".to_owned() };
    }
    camel
}

/// What the last field of a chain is called.
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
            // What is a fallback of a parameter already was lifted before, and only a secret has to go.
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
        self.named(prop_name_text(&pair.key), &pair.value);
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
            self.named(prop_name_text(&property.key), value);
        }
    }

    fn visit_private_prop(&mut self, property: &PrivateProp) {
        if let Some(value) = &property.value {
            self.named(Some(property.key.name.as_str().to_owned()), value);
        }
    }

    fn visit_expr_stmt(&mut self, statement: &ExprStmt) {
        // A directive like 'use strict' is no value.
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
mod tests {
    use crate::compile::{LiftedKind, infer_parameters, lift_literals};

    fn lifted(code: &str) -> String {
        lift_literals(code).unwrap_or_else(|error| panic!("{code}: {error}")).code
    }

    #[test]
    fn secrets_leave_the_code() {
        for (code, expected) in [
            ("const API_KEY = 'abcd1234'", "const API_KEY = args.apiKey"),
            ("mcp.a.b({ token: 'hunter2!' })", "mcp.a.b({ token: args.token })"),
            ("mcp.a.b({ x: 'sk-0123456789' })", "mcp.a.b({ x: args.x })"),
            ("f('ghp_0123456789abcdef')", "f(args.secret)"),
            ("f('0123456789abcdef0123456789abcdef')", "f(args.secret)"),
            ("const db = 'postgres://u:pw@h/d'", "const db = args.db"),
            (
                "const h = { Authorization: 'Bearer abcdef' }",
                "const h = { Authorization: args.authorization }",
            ),
        ] {
            assert_eq!(lifted(code), expected);
        }
    }

    #[test]
    fn a_secret_is_found_wherever_a_value_has_a_name() {
        for (code, expected) in [
            ("cfg.apiKey = 'abcd1234'", "cfg.apiKey = args.apiKey"),
            ("cfg['api-key'] = 'abcd1234'", "cfg['api-key'] = args.apiKey"),
            ("function f(token = 'abcd1234') {}", "function f(token = args.token) {}"),
            ("const { token = 'abcd1234' } = cfg", "const { token = args.token } = cfg"),
            (
                "class A { #token = 'abcd1234'; apiKey = 'efgh5678' }",
                "class A { #token = args.token; apiKey = args.apiKey }",
            ),
            ("const key = `-----BEGIN RSA`", "const key = args.key"),
            ("f('https://x.y/z?q=1&api_key=abcd')", "f(args.secret)"),
            ("mcp.a.b({ password: args.password ?? 'hunter2' })", "mcp.a.b({ password: args.password })"),
            (
                "const { password = 'hunter2', a: token = 'abcd' } = args",
                "const { password, a: token = 'abcd' } = args",
            ),
            ("const { token: t = 'abcd1234' } = args", "const { token: t } = args"),
        ] {
            assert_eq!(lifted(code), expected);
            assert_eq!(lifted(expected), expected, "lifting twice is lifting once");
        }
        let code = "f(args.password ?? 'hunter2')";
        let literals = lift_literals(code).expect("lifts").literals;
        assert_eq!((literals[0].parameter.as_str(), literals[0].kind), ("password", LiftedKind::Secret));
    }

    #[test]
    fn settings_keep_their_value_as_the_default() {
        let code = "await mcp.http.get({ url: 'https://example.org/api', timeoutMs: 500 })";
        let lifted = lift_literals(code).expect("lifts");
        assert_eq!(
            lifted.code,
            "await mcp.http.get({ url: (args.url ?? 'https://example.org/api'), timeoutMs: (args.timeoutMs ?? 500) })"
        );
        assert_eq!(lifted.literals.len(), 2);
        assert_eq!(lifted.literals[0].kind, LiftedKind::Setting);
        let schema = infer_parameters(&lifted.code).expect("parses");
        assert_eq!(schema["properties"]["url"]["default"], "https://example.org/api");
        assert_eq!(schema["properties"]["timeoutMs"]["default"], 500);
    }

    #[test]
    fn ordinary_literals_stay() {
        for code in [
            "mcp.a.b({ title: 'Hello', n: 3 })",
            "'use strict'",
            "x['sk-0123456789']",
            "switch (x) { case '/tmp/a': y() }",
            "function f(args) { return g({ url: 'https://a.b' }) }",
            "enum E { A = '/etc/x' }",
            "if (a === 1) b('text')",
        ] {
            assert_eq!(lifted(code), code);
        }
    }

    #[test]
    fn names_are_free_and_one_value_is_one_parameter() {
        let code =
            "f(args.url); g({ url: 'https://a.b' }); h({ url: 'https://a.b' }); i({ url: 'https://c.d' })";
        let expected = "f(args.url); g({ url: (args.url2 ?? 'https://a.b') }); h({ url: (args.url2 ?? 'https://a.b') }); i({ url: (args.url3 ?? 'https://c.d') })";
        assert_eq!(lifted(code), expected);
        assert_eq!(lifted(expected), expected);
    }
}
