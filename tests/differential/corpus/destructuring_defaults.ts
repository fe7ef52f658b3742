// args: [{"user":{"name":"A"},"list":[1,[2,3]]},{"user":{},"list":[4,[]],"limit":5}]
const { user: { name = "nobody", address: { city = (await mcp.geo.find({ n: 1 })).value } = {} }, list: [first, [second = 9, ...others]], limit = 10, ...rest }: any = args;
const f = ({ a = 1, b: [c = a] = [] }: { a?: number; b?: number[] } = {}, [d = c]: number[] = [], ...{ length }: number[]) => [a, c, d, length];
let x = 1, y = 2;
[x, y = 5] = [y, x];
({ x, y: y = 7 } = { x: x + 1, y: undefined as any });
const swap: { [k: string]: number } = {};
[swap.a, swap["b"]] = [1, 2];
for (const [k, { v = k } = {} as any] of Object.entries({ p: { v: 1 }, q: {} as any })) swap[k] = v as any;
return [name, city, first, second, others, limit, Object.keys(rest), f(), f({ a: 2, b: [] }, [3], 4, 5), x, y, swap];
