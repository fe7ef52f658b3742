// args: [{"map": {"x": 1, "y": 2}}]
let sum = 0;
for (const key in args.map) sum += (await mcp.m.get({ value: args.map[key] })).value;
for (let i = 0; i < 2; i++) await mcp.m.tick({ i });
return sum;
