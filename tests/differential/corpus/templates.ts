// args: [{"who": "w"}]
const r = await mcp.t.x({ text: `a ${args.who} ${`inner ${1 + 1}`} \`quoted\` \${raw}` });
const tag = (parts: TemplateStringsArray, ...values: unknown[]) => parts.join("|") + values.join(",");
return [r.content, tag`x${1}y${2}z`, `multi
line`];
