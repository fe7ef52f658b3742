//! The names in patterns and declarations.

use swc_ecma_ast::*;
use swc_ecma_visit::{Visit, VisitWith, noop_visit_type};

/// The `var` names of a function, nested blocks included, nested functions not.
pub(super) struct Vars {
    pub(super) names: Vec<Ident>,
}

impl Visit for Vars {
    noop_visit_type!();

    fn visit_var_decl(&mut self, declaration: &VarDecl) {
        if declaration.kind == VarDeclKind::Var {
            for declarator in &declaration.decls {
                each_name(&declarator.name, &mut |name| self.names.push(name.clone()));
            }
        }
    }

    // Declarations are statements, so none are inside expressions; nested functions and classes have their own.
    fn visit_expr(&mut self, _: &Expr) {}
    fn visit_function(&mut self, _: &Function) {}
    fn visit_class(&mut self, _: &Class) {}
}

/// The names that a pattern assigns to.
pub(super) struct PatternNames {
    pub(super) names: Vec<Ident>,
}

impl Visit for PatternNames {
    noop_visit_type!();

    fn visit_binding_ident(&mut self, name: &BindingIdent) {
        self.names.push(name.id.clone());
    }

    fn visit_pat(&mut self, pattern: &Pat) {
        match pattern {
            Pat::Expr(expr) => {
                if let Expr::Ident(name) = &**expr {
                    self.names.push(name.clone());
                }
            }
            _ => pattern.visit_children_with(self),
        }
    }

    fn visit_expr(&mut self, _: &Expr) {}
}

pub(crate) fn each_name(pattern: &Pat, found: &mut impl FnMut(&Ident)) {
    match pattern {
        Pat::Ident(name) => found(&name.id),
        Pat::Array(array) => array.elems.iter().flatten().for_each(|element| each_name(element, found)),
        Pat::Rest(rest) => each_name(&rest.arg, found),
        Pat::Object(object) => {
            for property in &object.props {
                match property {
                    ObjectPatProp::KeyValue(pair) => each_name(&pair.value, found),
                    ObjectPatProp::Assign(assign) => found(&assign.key.id),
                    ObjectPatProp::Rest(rest) => each_name(&rest.arg, found),
                }
            }
        }
        Pat::Assign(assign) => each_name(&assign.left, found),
        Pat::Invalid(_) | Pat::Expr(_) => {}
    }
}
