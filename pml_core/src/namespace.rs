//! Infers the namespace of a capability whose name has none from the tools that its code uses.

/// The first rule that matches any of the tools wins; a pattern is a tool's name or a prefix and `*`.
const RULES: &[(&str, &[&str])] = &[
    ("fs", &["fs:*", "filesystem:*", "file:*"]),
    ("api", &["http:*", "fetch:*", "api:*", "rest:*"]),
    ("db", &["db:*", "sql:*", "sqlite:*", "postgres:*", "mysql:*", "database:*"]),
    ("git", &["git:*", "github:*", "gitlab:*"]),
    ("shell", &["shell:*", "bash:*"]),
    ("ai", &["ai:*", "llm:*", "openai:*", "anthropic:*"]),
    ("transform", &["transform:*", "json:*", "csv:*", "xml:*", "yaml:*"]),
];

const DEFAULT: &str = "util";

pub fn infer(tools: &[impl AsRef<str>]) -> &'static str {
    RULES
        .iter()
        .find(|(_, patterns)| {
            tools.iter().any(|tool| patterns.iter().any(|pattern| fits(tool.as_ref(), pattern)))
        })
        .map_or(DEFAULT, |(namespace, _)| namespace)
}

fn fits(tool: &str, pattern: &str) -> bool {
    pattern.strip_suffix('*').map_or(tool == pattern, |prefix| tool.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::infer;

    #[test]
    fn tools_decide() {
        for (tools, namespace) in [
            (&["filesystem:read", "filesystem:write"][..], "fs"),
            (&["http:fetch"], "api"),
            (&["sql:anything"], "db"),
            (&["git:log"], "git"),
            (&["bash:run"], "shell"),
            (&["weather:today"], "util"),
            (&[], "util"),
            (&["weather:today", "fs:read"], "fs"),
        ] {
            assert_eq!(infer(tools), namespace, "{tools:?}");
        }
    }
}
