// args: [{"n": 1}, {"n": 2}, {"n": 3}]
let result: string;
if (args.n === 1) result = (await mcp.a.one({ n: args.n })).target;
else if (args.n === 2) result = (await mcp.a.two({ n: args.n })).target;
else result = (await mcp.a.other({ n: args.n })).target;
return result;
