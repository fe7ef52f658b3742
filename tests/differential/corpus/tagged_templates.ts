const tag = (parts: TemplateStringsArray, ...values: unknown[]) => parts.raw.join("|") + values.join(",");
const nested = tag`a${1}\n${tag`b${`c${2}`}`}\u0041`;
const object = { tag };
const generic = object.tag<string>`x${"}"}y`;
const mcpText = `mcp.fs.read({}) \${not} ${(await mcp.text.make({ value: `in ${nested}` })).value} \``;
return [nested, generic, mcpText, `line
two`, String.raw`\x`, tag``.length];
