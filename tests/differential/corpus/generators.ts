function* ids(from: number): Generator<number, string, boolean> {
  let more = true;
  while (more) more = (yield from++) ?? from < 4;
  return "done";
}
async function* pages() { for (const id of ids(1)) yield (await mcp.page.get({ n: id })).value; yield* [10, 11] }
const seen = [];
for await (const page of pages()) seen.push(page);
const it = ids(7);
const steps = [it.next(), it.next(true), it.next(false)];
const object = { *[Symbol.iterator]() { yield 1; yield* new Set([2, 3]) }, async *later() { yield 1 } };
return [seen, steps, [...object], Array.from(ids(3))];
