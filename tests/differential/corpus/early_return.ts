// args: [{}, {"name": "x"}]
if (!args.name) return { error: "no name" };
const { target } = await mcp.e.go({ name: args.name });
return target;
