const a = await mcp["fs"].read({ n: 1 });
const b = await mcp.fs["read"]({ n: 2 });
const c = await mcp["fs:read"]({ n: 3 });
const d = await mcp[`fs:read`]({ n: 4 });
const name = "dyn:call";
const e = await mcp[name]({ n: 5 });
return [a, b, c, d, e].map((r) => r.target);
