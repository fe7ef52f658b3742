//! What TypeScript types and the names of methods say about a parameter.

use std::cell::Cell;

use rustc_hash::FxHashMap;
use swc_ecma_ast::*;

use super::schema::Parameter;
use crate::parse::Parsed;
use crate::value::{static_text, text_of};

/// The only type that has a method of this name.
pub(super) fn method_type(method: &str) -> Option<&'static str> {
    match method {
        "toUpperCase" | "toLowerCase" | "trim" | "trimStart" | "trimEnd" | "startsWith" | "endsWith"
        | "split" | "replace" | "replaceAll" | "charAt" | "charCodeAt" | "codePointAt" | "padStart"
        | "padEnd" | "match" | "matchAll" | "substring" | "substr" | "localeCompare" | "normalize"
        | "repeat" | "search" => Some("string"),
        "map" | "filter" | "forEach" | "reduce" | "reduceRight" | "push" | "pop" | "shift" | "unshift"
        | "join" | "some" | "every" | "find" | "findIndex" | "findLast" | "flat" | "flatMap" | "sort"
        | "reverse" | "splice" | "fill" | "toSorted" | "toReversed" => Some("array"),
        "toFixed" | "toPrecision" | "toExponential" => Some("number"),
        _ => None,
    }
}

/// The types that the code itself declares, by name.
#[derive(Default)]
pub(super) struct DeclaredTypes<'a> {
    aliases: FxHashMap<&'a str, &'a TsType>,
    interfaces: FxHashMap<&'a str, &'a TsInterfaceDecl>,
    looked_at: Cell<usize>,
}

/// Types may be recursive.
const DEEPEST: usize = 16;
const MOST_TYPES: usize = 10_000;

impl<'a> DeclaredTypes<'a> {
    pub(super) fn of(parsed: &'a Parsed<'_>) -> Self {
        let mut types = Self::default();
        for item in &parsed.items {
            let declaration = match item {
                ModuleItem::Stmt(Stmt::Decl(declaration)) => declaration,
                ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(export)) => &export.decl,
                _ => continue,
            };
            match declaration {
                Decl::TsTypeAlias(alias) => {
                    types.aliases.insert(&alias.id.sym, &alias.type_ann);
                }
                Decl::TsInterface(interface) => {
                    types.interfaces.insert(&interface.id.sym, interface);
                }
                _ => {}
            }
        }
        types
    }

    /// Applies a type annotation.
    pub(super) fn declare(&self, parameter: &mut Parameter, declared: &TsType) {
        self.declare_at(parameter, declared, 0);
    }

    fn declare_at(&self, parameter: &mut Parameter, declared: &TsType, depth: usize) {
        self.looked_at.set(self.looked_at.get() + 1);
        if depth > DEEPEST || self.looked_at.get() > MOST_TYPES {
            return;
        }
        match declared {
            TsType::TsKeywordType(keyword) => match keyword.kind {
                TsKeywordTypeKind::TsStringKeyword => parameter.declare_any_string(),
                TsKeywordTypeKind::TsNumberKeyword => parameter.declare("number"),
                TsKeywordTypeKind::TsBooleanKeyword => parameter.declare("boolean"),
                TsKeywordTypeKind::TsObjectKeyword => {
                    parameter.declare("object");
                    parameter.is_open = true;
                }
                TsKeywordTypeKind::TsUndefinedKeyword => {
                    parameter.optional = true;
                    parameter.is_undefined = true;
                    return;
                }
                TsKeywordTypeKind::TsNullKeyword => {
                    parameter.declare("null");
                    parameter.optional = true;
                    return;
                }
                // `any` and `unknown` say nothing, not even that it is present.
                _ => return,
            },
            TsType::TsArrayType(array) => {
                parameter.declare("array");
                self.declare_at(parameter.item(), &array.elem_type, depth + 1);
            }
            TsType::TsTupleType(tuple) => {
                parameter.declare("array");
                let elements = tuple.elem_types.iter().map(|element| match &*element.ty {
                    TsType::TsOptionalType(optional) => self.alternative(&optional.type_ann, depth),
                    // A rest is declared by its array, not by its elements.
                    TsType::TsRestType(_) => Parameter::default(),
                    element => self.alternative(element, depth),
                });
                if let Some(any) = elements.reduce(Parameter::or) {
                    parameter.item().take_over(any);
                }
            }
            TsType::TsTypeRef(reference) => return self.named(parameter, reference, depth),
            TsType::TsParenthesizedType(inner) => {
                return self.declare_at(parameter, &inner.type_ann, depth + 1);
            }
            TsType::TsUnionOrIntersectionType(TsUnionOrIntersectionType::TsUnionType(union)) => {
                let alternatives = union.types.iter().map(|member| self.alternative(member, depth));
                if let Some(any) = alternatives.reduce(Parameter::or) {
                    parameter.take_over(any);
                }
                return;
            }
            TsType::TsUnionOrIntersectionType(TsUnionOrIntersectionType::TsIntersectionType(both)) => {
                for member in &both.types {
                    self.declare_at(parameter, member, depth + 1);
                }
                return;
            }
            TsType::TsTypeOperator(operator) if operator.op == TsTypeOperatorOp::ReadOnly => {
                return self.declare_at(parameter, &operator.type_ann, depth + 1);
            }
            TsType::TsLitType(literal) => match &literal.lit {
                TsLit::Str(text) => {
                    if let Some(text) = text_of(text) {
                        parameter.add_choice(text);
                    }
                }
                TsLit::Bool(_) => parameter.declare("boolean"),
                TsLit::Number(_) => parameter.declare("number"),
                TsLit::Tpl(_) => parameter.declare_any_string(),
                _ => {}
            },
            TsType::TsTypeLit(literal) => self.members(parameter, &literal.members, depth),
            _ => return,
        }
        parameter.needed = true;
    }

    fn alternative(&self, declared: &TsType, depth: usize) -> Parameter {
        let mut alternative = Parameter::default();
        self.declare_at(&mut alternative, declared, depth + 1);
        alternative
    }

    fn named(&self, parameter: &mut Parameter, reference: &TsTypeRef, depth: usize) {
        let TsEntityName::Ident(name) = &reference.type_name else { return };
        let arguments = reference.type_params.as_ref().map(|list| &list.params[..]).unwrap_or_default();
        match (&*name.sym, arguments) {
            ("Array" | "ReadonlyArray", [item]) => {
                parameter.declare("array");
                parameter.needed = true;
                self.declare_at(parameter.item(), item, depth + 1);
            }
            ("Record", _) => {
                parameter.declare("object");
                parameter.needed = true;
                parameter.is_open = true;
            }
            ("Readonly" | "Required" | "NonNullable", [inner]) => {
                self.declare_at(parameter, inner, depth + 1);
            }
            ("Partial", [inner]) => {
                self.declare_at(parameter, inner, depth + 1);
                parameter.make_fields_optional();
            }
            (name, _) => {
                self.declare_named(parameter, name, depth);
            }
        }
    }

    /// False if the code declares no type of this name.
    fn declare_named(&self, parameter: &mut Parameter, name: &str, depth: usize) -> bool {
        if let Some(alias) = self.aliases.get(name) {
            self.declare_at(parameter, alias, depth + 1);
            return true;
        }
        let Some(interface) = self.interfaces.get(name).filter(|_| depth < DEEPEST) else { return false };
        self.members(parameter, &interface.body.body, depth);
        for extended in &interface.extends {
            let is_seen = matches!(&*extended.expr, Expr::Ident(base)
                if self.declare_named(parameter, &base.sym, depth + 1));
            // Its other members are unknown.
            parameter.is_open |= !is_seen;
        }
        parameter.needed = true;
        true
    }

    fn members(&self, parameter: &mut Parameter, members: &[TsTypeElement], depth: usize) {
        parameter.declare("object");
        for member in members {
            let property = match member {
                TsTypeElement::TsPropertySignature(property) => property,
                TsTypeElement::TsIndexSignature(_) => {
                    parameter.is_open = true;
                    continue;
                }
                _ => continue,
            };
            let Some(name) = property_name(property) else { continue };
            let field = parameter.field(&name);
            field.optional |= property.optional;
            field.needed |=
                property.type_ann.as_ref().is_some_and(|declared| !is_anything(&declared.type_ann));
            if let Some(annotation) = &property.type_ann {
                self.declare_at(field, &annotation.type_ann, depth + 1);
            }
        }
    }
}

/// `any` and `unknown`, which allow `undefined` too.
fn is_anything(declared: &TsType) -> bool {
    match declared {
        TsType::TsKeywordType(keyword) => {
            matches!(keyword.kind, TsKeywordTypeKind::TsAnyKeyword | TsKeywordTypeKind::TsUnknownKeyword)
        }
        TsType::TsParenthesizedType(inner) => is_anything(&inner.type_ann),
        TsType::TsUnionOrIntersectionType(TsUnionOrIntersectionType::TsUnionType(union)) => {
            union.types.iter().any(|member| is_anything(member))
        }
        _ => false,
    }
}

fn property_name(property: &TsPropertySignature) -> Option<String> {
    match &*property.key {
        Expr::Ident(name) if !property.computed => Some(name.sym.as_str().to_owned()),
        key => static_text(key),
    }
}
