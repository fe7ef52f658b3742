const steps: string[] = [];
await first();
await second(2);
async function first(): Promise<void> { steps.push((await mcp.f.first({})).target); }
const helper = async (n: number): Promise<number> => n <= 0 ? 0 : (await mcp.f.rec({ n })).value + (await helper(n - 1));
async function second(n: number) { steps.push(String(await helper(n))); }
return steps;
