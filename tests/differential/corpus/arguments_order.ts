const order: string[] = [];
const note = (s: string) => { order.push(s); return s; };
await mcp.o.x({ a: note("1"), b: (await mcp.o.y({ c: note("2") })).target, d: note("3") });
return order;
