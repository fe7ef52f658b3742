const seen: string[] = [];
outer: for (let i = 0; i < 3; i++) {
  inner: for (const j of [0, 1, 2]) {
    if (j === 1) continue outer;
    if (i === 2) break outer;
    const r = await mcp.work.step({ n: i * 10 + j });
    seen.push(String(r.value));
    block: {
      if (r.ok) break block;
      await mcp.work.never({});
    }
    continue inner;
  }
}
let n = 0;
do { n++; if (n === 2) continue; await mcp.work.tick({ n }) } while (n < 4);
for (; ; ) { if (++n > 6) break; await mcp.work.last({ n }) }
return [seen, n];
