//! The tools that code names, in the spelling that is written: `mcp.server.tool`, with brackets, or taken apart first.

use crate::{compile::references, error::Result};

/// The tools, as `server:tool`, each once, in source order.
pub fn tools_used(code: &str) -> Result<Vec<String>> {
    let mut tools: Vec<String> = Vec::new();
    for reference in references(code)?.found.iter().filter(|reference| !reference.capability_only) {
        let written = reference.candidates.first().filter(|name| name.contains(':'));
        if let Some(name) = written.filter(|name| !tools.contains(name)) {
            tools.push(name.clone());
        }
    }
    Ok(tools)
}

#[cfg(test)]
mod tests {
    use super::tools_used;

    #[test]
    fn every_spelling() {
        let code = r#"
            const a = await mcp.fs.read({ path: args.path });
            await mcp["db"].query(a); await mcp.git["log"](); await mcp["shell:exec"]("ls");
            await mcp.fs?.stat?.(a); await (mcp as any).http.get(); await mcp.fs.read(a);
            const { write } = mcp.fs; await write(a);
            const text = "mcp.not.this()"; // mcp.nor.that()
        "#;
        let expected = ["fs:read", "db:query", "git:log", "shell:exec", "fs:stat", "http:get", "fs:write"];
        assert_eq!(tools_used(code).unwrap(), expected);
    }

    #[test]
    fn what_names_no_tool() {
        let code = "function f(mcp) { return mcp.fs.read() } return [mcp[args.x].y(), other.fs.read()]";
        assert_eq!(tools_used(code).unwrap(), [""; 0]);
    }
}
