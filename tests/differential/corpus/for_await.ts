async function* pages(): AsyncGenerator<number, void, unknown> {
  for (let p = 0; p < 3; p++) yield (await mcp.page.get({ value: p })).value;
}
const all: number[] = [];
for await (const page of pages()) all.push(page);
return all;
