const base = { get now() { return 1 }, set now(v) { base.last = v }, last: 0, async load() { return (await mcp.acc.load({ n: this.last })).value }, *gen() { yield this.now } } as any;
base.now = 5;
const copy = { ...base, extra: await base.load(), ...(base.last && { flag: true }), ...null };
const call = (...xs: number[]) => Math.max(...xs, ...[...base.gen()]);
const opt = base?.missing?.deep?.[await mcp.acc.never({})] ?? base.load?.().constructor.name;
const del = base?.["last"];
const chain = (base?.load)?.();
return [copy.now, copy.extra, copy.flag, call(2, 3), opt, del, await chain];
