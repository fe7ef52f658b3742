const fns: Array<() => Promise<unknown>> = [];
for (let i = 0; i < 3; i++) fns.push(async () => (await mcp.l.go({ value: i })).value);
const out: unknown[] = [];
for (const f of fns) out.push(await f());
return out;
