//! What TypeScript types and the names of methods say about a parameter.

use swc_ecma_ast::*;

use super::schema::Parameter;
use crate::value::{static_text, text_of};

/// The type that has a method of this name, if only one has.
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

/// Takes over what a type annotation says.
pub(super) fn declare_type(parameter: &mut Parameter, declared: &TsType) {
    match declared {
        TsType::TsKeywordType(keyword) => match keyword.kind {
            TsKeywordTypeKind::TsStringKeyword => parameter.add_type("string"),
            TsKeywordTypeKind::TsNumberKeyword => parameter.add_type("number"),
            TsKeywordTypeKind::TsBooleanKeyword => parameter.add_type("boolean"),
            TsKeywordTypeKind::TsObjectKeyword => parameter.add_type("object"),
            TsKeywordTypeKind::TsUndefinedKeyword | TsKeywordTypeKind::TsNullKeyword => {
                parameter.optional = true;
            }
            _ => {}
        },
        TsType::TsArrayType(array) => {
            parameter.add_type("array");
            declare_type(parameter.item(), &array.elem_type);
        }
        TsType::TsTypeRef(reference) => {
            let name = match &reference.type_name {
                TsEntityName::Ident(name) => &*name.sym,
                TsEntityName::TsQualifiedName(_) => return,
            };
            let arguments = reference.type_params.as_ref().map(|list| &list.params[..]).unwrap_or_default();
            match (name, arguments) {
                ("Array" | "ReadonlyArray", [item]) => {
                    parameter.add_type("array");
                    declare_type(parameter.item(), item);
                }
                ("Record", _) => parameter.add_type("object"),
                _ => {}
            }
        }
        TsType::TsParenthesizedType(inner) => declare_type(parameter, &inner.type_ann),
        TsType::TsUnionOrIntersectionType(TsUnionOrIntersectionType::TsUnionType(union)) => {
            union.types.iter().for_each(|member| declare_type(parameter, member));
        }
        TsType::TsLitType(literal) => match &literal.lit {
            TsLit::Str(text) => {
                if let Some(text) = text_of(text) {
                    parameter.add_choice(text);
                }
            }
            TsLit::Bool(_) => parameter.add_type("boolean"),
            TsLit::Number(_) => parameter.add_type("number"),
            _ => {}
        },
        TsType::TsTypeLit(literal) => {
            parameter.add_type("object");
            for member in &literal.members {
                let TsTypeElement::TsPropertySignature(property) = member else { continue };
                let Some(name) = property_name(property) else { continue };
                let field = parameter.field(&name);
                field.optional |= property.optional;
                if let Some(annotation) = &property.type_ann {
                    declare_type(field, &annotation.type_ann);
                }
            }
        }
        _ => {}
    }
}

fn property_name(property: &TsPropertySignature) -> Option<String> {
    match &*property.key {
        Expr::Ident(name) if !property.computed => Some(name.sym.as_str().to_owned()),
        key => static_text(key),
    }
}
