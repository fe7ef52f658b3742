const a = (mcp
  .fs
  .read as any)({ path: "a" });
const b = mcp
  .fs
  .read!({ path: "b" });
const c = await mcp
  // a comment
  .fs /* and
  another */ .read({ path: "c" });
const d = await (mcp["fs"]
  ["read"] satisfies unknown as any)({ path: "d" });
throw new Error([(await a).target, (await b).target, c.target, d.target].join()); // throws here
