const twice = <T, R>(f: (x: T) => Promise<R>) => async (x: T): Promise<[R, R]> => [await f(x), await f(x)];
const call = twice(async (n: number) => {
  const inner = async () => (await mcp.deep.call({ n })).value;
  return (async function again(): Promise<unknown> { return await inner() })();
});
const pairs = await Promise.all([1, 2].map(async (n) => { const p = await call(n); return p.join("+") }));
const later = mcp.deep.later({ value: 7 }).then(async ({ value }) => (await mcp.deep.then({ value })).value, () => -1);
return [pairs, await later, await (async () => { try { return await mcp.fail.now({}) } catch { return "caught" } finally { await mcp.deep.end({}) } })()];
