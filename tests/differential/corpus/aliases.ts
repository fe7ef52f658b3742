const { read, write: w } = mcp.fs;
const fs = mcp.fs;
const m = mcp;
await read({ path: "a" });
await w({ path: "b" });
await fs.stat({ path: "c" });
return (await m.fs.list({ path: "d" })).target;
