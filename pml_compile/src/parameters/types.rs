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
                TsKeywordTypeKind::TsObjectKeyword => parameter.declare("object"),
                TsKeywordTypeKind::TsUndefinedKeyword => {
                    parameter.optional = true;
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
            TsType::TsTypeRef(reference) => return self.named(parameter, reference, depth),
            TsType::TsParenthesizedType(inner) => {
                return self.declare_at(parameter, &inner.type_ann, depth + 1);
            }
            TsType::TsUnionOrIntersectionType(TsUnionOrIntersectionType::TsUnionType(union)) => {
                let alternatives = union.types.iter().map(|member| {
                    let mut alternative = Parameter::default();
                    self.declare_at(&mut alternative, member, depth + 1);
                    alternative
                });
                let alternatives: Vec<Parameter> = alternatives.collect();
                parameter.optional |= alternatives.iter().any(|alternative| alternative.optional);
                if !alternatives.iter().any(Parameter::is_undeclared)
                    && let Some(any) = alternatives.into_iter().reduce(Parameter::or)
                {
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
                _ => {}
            },
            TsType::TsTypeLit(literal) => self.members(parameter, &literal.members, depth),
            _ => return,
        }
        parameter.needed = true;
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
                if let Some(alias) = self.aliases.get(name) {
                    self.declare_at(parameter, alias, depth + 1);
                } else if let Some(interface) = self.interfaces.get(name) {
                    self.members(parameter, &interface.body.body, depth);
                    for extended in &interface.extends {
                        match &*extended.expr {
                            Expr::Ident(base) if depth < DEEPEST => {
                                if let Some(base) = self.interfaces.get(&*base.sym) {
                                    self.members(parameter, &base.body.body, depth + 1);
                                }
                            }
                            // Its other members are unknown.
                            _ => parameter.is_open = true,
                        }
                    }
                    parameter.needed = true;
                }
            }
        }
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
            field.needed = true;
            if let Some(annotation) = &property.type_ann {
                self.declare_at(field, &annotation.type_ann, depth + 1);
            }
        }
    }
}

fn property_name(property: &TsPropertySignature) -> Option<String> {
    match &*property.key {
        Expr::Ident(name) if !property.computed => Some(name.sym.as_str().to_owned()),
        key => static_text(key),
    }
}
