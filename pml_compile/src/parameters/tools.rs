//! What the schemas of called tools say about the parameters passed to them.

use super::*;

/// What is known about the tools and capabilities that the code calls.
pub(crate) struct Called<'a> {
    pub(crate) references: &'a References,
    pub(crate) lookup: &'a Lookup,
    pub(crate) schemas: &'a HashMap<String, ToolSchema>,
}

impl<'a> Called<'a> {
    pub(super) fn input(&self, call: Span) -> Option<&'a Json> {
        let reference = &self.references.found[*self.references.by_call.get(&call)?];
        let schema = match reference.target(self.lookup) {
            Some(fqdn) => self.schemas.get(fqdn),
            None => reference.candidates.iter().find_map(|name| self.schemas.get(name)),
        };
        schema.map(|schema| &schema.input)
    }
}

impl Inference<'_> {
    /// The arguments of a call, and what the schema of the called tool says about the first.
    pub(super) fn arguments(&mut self, args: &[ExprOrSpread], call: Span) {
        let input = self.called.input(call);
        for (index, argument) in args.iter().enumerate() {
            if argument.spread.is_some() {
                self.needs(&argument.expr);
            } else if index == 0
                && let Some(input) = input
            {
                self.give(&argument.expr, input, true);
                // A closed schema lists every field, so `args` needn't be open.
                if self.is_whole(&argument.expr) && input["additionalProperties"] == false {
                    self.inside_chain(&argument.expr);
                    continue;
                }
            }
            argument.expr.visit_with(self);
        }
    }

    /// Notes that a value is passed to a tool with this schema.
    pub(super) fn give(&mut self, expr: &Expr, schema: &Json, is_required: bool) {
        match unwrap(expr) {
            Expr::Object(object) => {
                let is_needed = |name: &str| {
                    is_required
                        && schema["required"]
                            .as_array()
                            .is_some_and(|names| names.iter().any(|other| other == name))
                };
                for property in &object.props {
                    match property {
                        PropOrSpread::Spread(spread) => self.give(&spread.expr, schema, is_required),
                        PropOrSpread::Prop(property) => match &**property {
                            Prop::KeyValue(pair) => {
                                if let Some(name) = prop_name(&pair.key) {
                                    let field = &schema["properties"][&*name];
                                    self.give(&pair.value, field, is_needed(&name));
                                }
                            }
                            Prop::Shorthand(name) => {
                                let field = &schema["properties"][&*name.sym];
                                self.give(&Expr::Ident(name.clone()), field, is_needed(&name.sym));
                            }
                            _ => {}
                        },
                    }
                }
            }
            Expr::Array(array) => {
                for element in array.elems.iter().flatten().filter(|element| element.spread.is_none()) {
                    self.give(&element.expr, &schema["items"], false);
                }
            }
            Expr::Bin(binary) if matches!(binary.op, BinaryOp::NullishCoalescing | BinaryOp::LogicalOr) => {
                self.give(&binary.left, schema, false);
            }
            other => {
                let Some(steps) = self.path(other) else { return };
                let is_needed = is_required && self.is_certain;
                let parameter = if steps.is_empty() { Some(&mut self.root) } else { self.parameter(&steps) };
                let Some(parameter) = parameter else { return };
                if !steps.is_empty() {
                    parameter.given_to_tool(schema);
                    parameter.needed |= is_needed;
                    return;
                }
                let required = schema["required"].as_array();
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    let field = parameter.field(name);
                    field.given_to_tool(property);
                    field.needed |=
                        is_needed && required.is_some_and(|names| names.iter().any(|other| *other == **name));
                }
            }
        }
    }
}
