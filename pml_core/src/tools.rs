//! The MCP tools that code calls, as far as they are written out: `mcp.server.tool(…)` and its spellings with brackets.

use swc_ecma_ast::{CallExpr, Callee, Expr, Lit, MemberExpr, MemberProp, OptCall, OptChainBase};
use swc_ecma_visit::{Visit, VisitWith};

use crate::{
    compile::{on_own_stack, parse},
    error::Result,
};

/// The tools, as `server:tool`, each once, in the order of their first call.
pub fn tools_used(code: &str) -> Result<Vec<String>> {
    on_own_stack(|| {
        let parsed = parse(code)?;
        let mut calls = Calls { tools: Vec::new() };
        for statement in parsed.statements() {
            statement.visit_with(&mut calls);
        }
        Ok(calls.tools)
    })
}

struct Calls {
    tools: Vec<String>,
}

impl Calls {
    fn called(&mut self, callee: &Expr) {
        let Some(path) = path_below_mcp(callee) else { return };
        let tool = path.join(":");
        if tool.contains(':') && !self.tools.contains(&tool) {
            self.tools.push(tool);
        }
    }
}

impl Visit for Calls {
    fn visit_call_expr(&mut self, call: &CallExpr) {
        if let Callee::Expr(callee) = &call.callee {
            self.called(callee);
        }
        call.visit_children_with(self);
    }

    fn visit_opt_call(&mut self, call: &OptCall) {
        self.called(&call.callee);
        call.visit_children_with(self);
    }
}

/// The property names from `mcp` down to this expression, if they are all written out.
fn path_below_mcp(expression: &Expr) -> Option<Vec<String>> {
    let member = match expression {
        Expr::Ident(name) => return (name.sym == *"mcp").then(Vec::new),
        Expr::Paren(inner) => return path_below_mcp(&inner.expr),
        Expr::TsNonNull(inner) => return path_below_mcp(&inner.expr),
        Expr::TsAs(inner) => return path_below_mcp(&inner.expr),
        Expr::OptChain(chain) => match &*chain.base {
            OptChainBase::Member(member) => member,
            OptChainBase::Call(_) => return None,
        },
        Expr::Member(member) => member,
        _ => return None,
    };
    let mut path = path_below_mcp(&member.obj)?;
    path.push(property_name(member)?);
    Some(path)
}

fn property_name(member: &MemberExpr) -> Option<String> {
    match &member.prop {
        MemberProp::Ident(name) => Some(name.sym.to_string()),
        MemberProp::Computed(computed) => match &*computed.expr {
            Expr::Lit(Lit::Str(text)) => Some(text.value.to_string_lossy().into_owned()),
            _ => None,
        },
        MemberProp::PrivateName(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::tools_used;

    #[test]
    fn every_spelling_of_a_call() {
        let code = r#"
            const a = await mcp.fs.read({ path: args.path });
            await mcp["db"].query(a); await mcp.git["log"](); await mcp["shell:exec"]("ls");
            await mcp.fs?.stat?.(a); await (mcp as any).http.get(); await mcp.fs.read(a);
            const text = "mcp.not.this()"; // mcp.nor.that()
        "#;
        let expected = ["fs:read", "db:query", "git:log", "shell:exec", "fs:stat", "http:get"];
        assert_eq!(tools_used(code).unwrap(), expected);
    }

    #[test]
    fn what_is_no_call_of_a_tool() {
        assert_eq!(
            tools_used("return [mcp.fs, mcp[args.x].y(), other.fs.read(), mcp.x()]").unwrap(),
            [""; 0]
        );
    }
}
