// args: [{"items": [1, 2, 3, 4]}]
const even = [] as number[];
args.items.forEach((n: number) => { if (n % 2 === 0) even.push(n); });
const doubled = await Promise.all(even.map((n) => mcp.c.double({ value: n })));
const total = await args.items.reduce(async (sum: Promise<number>, n: number) => (await sum) + (await mcp.c.add({ value: n })).value, Promise.resolve(0));
return [doubled.map((d) => d.value), total, args.items.some((n: number) => n > 3)];
