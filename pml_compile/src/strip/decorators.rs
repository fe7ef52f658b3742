//! Decorators as the standard has them: each decorated class gets an object (`__pml_class1`) that collects the decorators
//! where they stand, between the members' own computed names, and applies them in a static block before all others.

use std::fmt::Write;
use std::ops::Range;

use swc_common::{Span, Spanned};
use swc_ecma_ast::*;
use swc_ecma_parser::unstable::Token;
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

use super::Stripper;
use crate::parse::{offset, range};
use crate::value::prop_name;

/// What the decorators need when they run; its first line is put before the code, so that no line moves.
const RUNTIME: &str = include_str!("decorators.js");

/// The runtime in one line.
pub(super) fn runtime() -> String {
    RUNTIME.lines().flat_map(|line| [line.trim(), " "]).collect()
}

/// Whether a class is written as a statement or as an expression.
pub(super) enum Form<'a> {
    Declaration(&'a Ident),
    /// Its own name, and the name that it gets from where it stands.
    Expression(Option<&'a Ident>, Option<String>),
}

/// A member with decorators, or an `accessor`.
struct Element<'a> {
    kind: &'static str,
    is_static: bool,
    decorators: &'a [Decorator],
    key: ElementKey<'a>,
    span: Span,
}

enum ElementKey<'a> {
    Public(&'a PropName),
    Private(&'a PrivateName),
}

impl ElementKey<'_> {
    fn range(&self) -> Range<usize> {
        match self {
            ElementKey::Public(name) => range(name.span()),
            ElementKey::Private(name) => range(name.span),
        }
    }

    /// The name as a literal; nothing where it is computed.
    fn literal(&self) -> String {
        let name = match self {
            ElementKey::Public(PropName::Computed(_)) => return "undefined".to_owned(),
            ElementKey::Public(PropName::BigInt(number)) => number.value.to_string(),
            ElementKey::Public(name) => prop_name(name).unwrap_or_default().as_str().to_owned(),
            ElementKey::Private(name) => format!("#{}", name.name),
        };
        serde_json::Value::from(name).to_string()
    }
}

impl<'a> Element<'a> {
    fn of(member: &'a ClassMember) -> Option<Self> {
        let kind = |kind: MethodKind| match kind {
            MethodKind::Method => "method",
            MethodKind::Getter => "getter",
            MethodKind::Setter => "setter",
        };
        let element = match member {
            ClassMember::Method(method) => Self {
                kind: kind(method.kind),
                is_static: method.is_static,
                decorators: &method.function.decorators,
                key: ElementKey::Public(&method.key),
                span: method.span,
            },
            ClassMember::PrivateMethod(method) => Self {
                kind: kind(method.kind),
                is_static: method.is_static,
                decorators: &method.function.decorators,
                key: ElementKey::Private(&method.key),
                span: method.span,
            },
            ClassMember::ClassProp(property) => Self {
                kind: "field",
                is_static: property.is_static,
                decorators: &property.decorators,
                key: ElementKey::Public(&property.key),
                span: property.span,
            },
            ClassMember::PrivateProp(property) => Self {
                kind: "field",
                is_static: property.is_static,
                decorators: &property.decorators,
                key: ElementKey::Private(&property.key),
                span: property.span,
            },
            ClassMember::AutoAccessor(accessor) => Self {
                kind: "accessor",
                is_static: accessor.is_static,
                decorators: &accessor.decorators,
                key: match &accessor.key {
                    Key::Public(name) => ElementKey::Public(name),
                    Key::Private(name) => ElementKey::Private(name),
                },
                span: accessor.span,
            },
            _ => return None,
        };
        (element.kind == "accessor" || !element.decorators.is_empty()).then_some(element)
    }

    /// What holds the value of an accessor; what takes the place of the class doesn't.
    fn holder(&self, state: &str) -> String {
        if self.is_static { format!("{state}.home()") } else { "this".to_owned() }
    }

    fn modifier(&self) -> &'static str {
        if self.is_static { "static " } else { "" }
    }
}

/// The decorators of a class member, of whatever kind.
pub(super) fn decorators_of(member: &ClassMember) -> &[Decorator] {
    match member {
        ClassMember::Method(method) => &method.function.decorators,
        ClassMember::PrivateMethod(method) => &method.function.decorators,
        ClassMember::ClassProp(property) => &property.decorators,
        ClassMember::PrivateProp(property) => &property.decorators,
        ClassMember::AutoAccessor(accessor) => &accessor.decorators,
        _ => &[],
    }
}

/// Whether a function or class gets its name from where it stands.
pub(super) fn is_anonymous(expr: &Expr) -> bool {
    match expr {
        Expr::Arrow(_) => true,
        Expr::Fn(function) => function.ident.is_none(),
        Expr::Class(class) => class.ident.is_none(),
        _ => false,
    }
}

impl Stripper<'_> {
    /// Writes what the decorators and accessors of a class stand for. To be called when its inside is done: what encloses a
    /// piece is added after what is in it.
    pub(super) fn decorate(&mut self, class: &Class, form: &Form<'_>) {
        let elements: Vec<Element<'_>> = class.body.iter().filter_map(Element::of).collect();
        if elements.is_empty() && class.decorators.is_empty() {
            return;
        }
        self.decorated_classes += 1;
        let state = format!("__pml_class{}", self.decorated_classes);
        let mut secrets = String::new();
        for (index, element) in elements.iter().enumerate() {
            self.element(&state, index, element, &mut secrets);
        }
        for (member, index) in class.body.iter().filter(|member| Element::of(member).is_some()).zip(0..) {
            self.value(&state, index, member);
        }
        self.class_head(&state, class, form, &elements, &secrets);
    }

    /// The parser reads decorators before what can't have any, and forgets them.
    pub(super) fn refuse_forgotten(&mut self) {
        if !self.code.contains('@') {
            return;
        }
        self.decorators.sort_unstable();
        let mut signs = self.tokens.iter().filter(|token| token.token == Token::At).map(|token| token.span);
        if let Some(forgotten) = signs.find(|sign| self.decorators.binary_search(&sign.lo).is_err()) {
            let hint = "decorate a class, a method, a getter, a setter or a field";
            self.refuse(forgotten, "a decorator of anything else than a class or one of its members", hint);
        }
    }

    fn class_head(
        &mut self,
        state: &str,
        class: &Class,
        form: &Form<'_>,
        elements: &[Element<'_>],
        secrets: &str,
    ) {
        let name = match form {
            Form::Declaration(name) => Some(name.sym.as_str()),
            Form::Expression(name, given) => name.map(|name| name.sym.as_str()).or(given.as_deref()),
        };
        let name_literal = serde_json::Value::from(name).to_string().replace("null", "undefined");
        let own_name = match form {
            Form::Declaration(name) => Some(*name),
            Form::Expression(name, _) => *name,
        };
        // What a class decorator returns takes the place of the class, for the code inside of it too.
        let replaced = own_name.filter(|_| !class.decorators.is_empty());
        let assign = replaced.map_or_else(String::new, |name| format!("{} = ", name.sym));
        let mut first = format!(" static {{ {assign}{state}.apply(this, {{{secrets}}}); }}");
        if elements.iter().any(|element| !element.is_static && element.kind != "field") {
            let _ = write!(first, " #{state} = {state}.start(this);");
        }
        self.edits.insert(self.start_of_body(class), first);

        let start = class.decorators.first().map_or(class.span.lo, |first| first.span.lo.min(class.span.lo));
        let whole = offset(start)..range(class.span).end;
        let declare = replaced.map_or_else(String::new, |name| format!("let {}; ", name.sym));
        let made = format!("{state} = __pml_decorators([");
        match (form, class.decorators.is_empty()) {
            (Form::Declaration(_), true) => {
                let first_word = self.first_word(class);
                self.edits.insert(first_word, format!("const {made}], {name_literal}); "));
            }
            (Form::Declaration(_), false) => {
                self.list(
                    &class.decorators,
                    &format!("const {made}"),
                    &format!("], {name_literal}); {declare}{assign}{state}.finish("),
                );
                self.edits.insert(whole.end, ");");
            }
            (Form::Expression(..), true) => {
                self.edits.wrap(
                    whole,
                    format!("(({state}) => "),
                    format!(")(__pml_decorators([], {name_literal}))"),
                );
            }
            (Form::Expression(..), false) => {
                self.list(
                    &class.decorators,
                    "",
                    &format!("], {name_literal}); {declare}return {state}.finish("),
                );
                self.edits.wrap(whole, format!("((() => {{ const {made}"), "); })())");
            }
        }
        if let Some(name) = replaced {
            self.remove(range(name.span));
        }
        if matches!(form, Form::Expression(..)) {
            let mut waits = Waits { found: None };
            class.visit_with(&mut waits);
            if let Some(span) = waits.found {
                let hint = "compute it before the class, or make the class a statement of its own";
                self.refuse(span, "waiting inside of a decorated class expression", hint);
            }
        }
    }

    /// Where the text of a class starts, behind its decorators.
    fn first_word(&self, class: &Class) -> usize {
        let from = class.decorators.last().map_or(class.span.lo, |last| last.span.hi);
        let at = self.tokens.partition_point(|token| token.span.lo < from);
        // The span of an abstract class starts behind that word.
        let before = at.checked_sub(1).and_then(|before| self.tokens.get(before));
        let is_abstract = class.is_abstract && before.is_some_and(|token| token.token == Token::Abstract);
        let first = if is_abstract { before } else { self.tokens.get(at) };
        first.map_or(offset(from), |token| offset(token.span.lo))
    }

    /// Behind the brace that opens a class.
    pub(super) fn start_of_body(&self, class: &Class) -> usize {
        let head = [
            Some(class.span.lo),
            class.decorators.last().map(|last| last.span.hi),
            class.type_params.as_ref().map(|list| list.span.hi),
            class.super_class.as_ref().map(|expr| expr.span().hi),
            class.super_type_params.as_ref().map(|list| list.span.hi),
            class.implements.last().map(|last| last.span.hi),
        ];
        let from = head.into_iter().flatten().max().unwrap_or(class.span.lo);
        let at = self.tokens.partition_point(|token| token.span.lo < from);
        let brace = self.tokens[at..].iter().find(|token| token.token == Token::LBrace);
        brace.map_or(offset(from), |brace| range(brace.span).end)
    }

    /// Turns decorators into the items of a list.
    fn list(&mut self, decorators: &[Decorator], open: &str, close: &str) {
        let (Some(first), Some(last)) = (decorators.first(), decorators.last()) else { return };
        self.decorators.extend(decorators.iter().map(|decorator| decorator.span.lo));
        for (index, decorator) in decorators.iter().enumerate() {
            let at = range(decorator.span).start;
            self.edits.replace(at..at + 1, if index == 0 { "" } else { ", " });
        }
        let whole = range(first.span).start..range(last.span).end;
        self.edits.wrap(whole, open.to_owned(), close.to_owned());
    }

    fn element(&mut self, state: &str, index: usize, element: &Element<'_>, secrets: &mut String) {
        let Element { kind, is_static, decorators, key, span } = element;
        let modifier = element.modifier();
        // A static method that is gone before anybody sees it: its name is computed where the decorators stand.
        let open = format!(";static [{state}.element(\"{kind}\", {is_static}, {}, [", key.literal());
        let mut close = "])]() {}".to_owned();
        let storage = format!("#{state}_{index}");
        match key {
            ElementKey::Public(PropName::Computed(computed)) => {
                self.edits.wrap(range(computed.expr.span()), format!("{state}.key({index}, "), ")");
            }
            ElementKey::Public(_) => {}
            ElementKey::Private(name) => {
                let name = &name.name;
                let _ = write!(
                    secrets,
                    "{index}: [(it) => it.#{name}, (it, to) => {{ it.#{name} = to; }}, (it) => #{name} in it"
                );
                if *kind == "accessor" {
                    let holder = element.holder(state);
                    let _ = write!(
                        secrets,
                        ", function () {{ return {holder}.{storage}; }}, function (to) {{ {holder}.{storage} = to; }}"
                    );
                }
                secrets.push_str("], ");
                let stand_in = match *kind {
                    "method" => format!(" {modifier}get #{name}() {{ return {state}.method({index}); }}"),
                    "getter" => format!(" {modifier}get #{name}() {{ return {state}.get({index}, this); }}"),
                    "setter" => format!(" {modifier}set #{name}(to) {{ {state}.set({index}, this, to); }}"),
                    _ => String::new(),
                };
                if !stand_in.is_empty() {
                    close.push_str(&stand_in);
                    close.push(' ');
                    self.edits.replace(key.range(), format!("[{state}.hidden({index})]"));
                }
            }
        }
        if decorators.is_empty() {
            self.edits.insert(range(*span).start, [open, close].concat() + " ");
        } else {
            self.list(decorators, &open, &close);
        }
    }

    /// Lets the initializers of a field or accessor see its value.
    fn value(&mut self, state: &str, index: usize, member: &ClassMember) {
        let Some(element) = Element::of(member) else { return };
        let (value, annotation) = match member {
            ClassMember::ClassProp(property) => (&property.value, &property.type_ann),
            ClassMember::PrivateProp(property) => (&property.value, &property.type_ann),
            ClassMember::AutoAccessor(accessor) => (&accessor.value, &accessor.type_ann),
            _ => return,
        };
        let end_of_key = annotation.as_ref().map_or(element.key.range().end, |it| range(it.span).end);
        let modifier = element.modifier();
        let storage = format!("#{state}_{index}");
        if element.kind == "accessor" {
            self.accessor(state, index, &element, end_of_key, &storage);
        }
        match value {
            Some(value) if is_anonymous(value) => {
                let open = format!("{state}.initial({index}, this, {state}.named({index}, ");
                self.edits.wrap(range(value.span()), open, "))");
            }
            Some(value) => {
                self.edits.wrap(range(value.span()), format!("{state}.initial({index}, this, "), ")");
            }
            None => self.edits.insert(end_of_key, format!(" = {state}.initial({index}, this)")),
        }
        let whole = range(element.span);
        let end = if self.text(whole.clone()).ends_with(';') { "" } else { ";" };
        self.edits
            .insert(whole.end, format!("{end} {modifier}{storage}_after = {state}.after({index}, this);"));
    }

    /// `accessor x = 1` → `get x() { … } set x(to) { … } #x = 1`
    fn accessor(
        &mut self,
        state: &str,
        index: usize,
        element: &Element<'_>,
        end_of_key: usize,
        storage: &str,
    ) {
        let key = element.key.range();
        let at = self.tokens.partition_point(|token| offset(token.span.lo) < key.start);
        let word = self.tokens[..at].iter().rev().find(|token| token.token == Token::Accessor);
        let Some(word) = word.map(|word| range(word.span)) else { return };
        self.edits.replace(word, "get");
        let modifier = element.modifier();
        let (get, set, name) = match &element.key {
            ElementKey::Private(name) => (
                format!("return {state}.get({index}, this);"),
                format!("{state}.set({index}, this, to);"),
                format!("#{}", name.name),
            ),
            ElementKey::Public(name) => (
                format!("return {}.{storage};", element.holder(state)),
                format!("{}.{storage} = to;", element.holder(state)),
                match name {
                    PropName::Computed(_) => format!("[{state}.name({index})]"),
                    _ => self.text(key).to_owned(),
                },
            ),
        };
        let text = format!("() {{ {get} }} {modifier}set {name}(to) {{ {set} }} {modifier}{storage}");
        self.edits.insert(end_of_key, text);
    }
}

/// Finds an `await` or `yield` of the function around a class.
struct Waits {
    found: Option<Span>,
}

impl Visit for Waits {
    noop_visit_type!();

    fn visit_await_expr(&mut self, expr: &AwaitExpr) {
        self.found.get_or_insert(expr.span);
    }

    fn visit_yield_expr(&mut self, expr: &YieldExpr) {
        self.found.get_or_insert(expr.span);
    }

    fn visit_function(&mut self, function: &Function) {
        function.decorators.visit_with(self);
    }

    fn visit_arrow_expr(&mut self, _: &ArrowExpr) {}
    fn visit_constructor(&mut self, _: &Constructor) {}
}
