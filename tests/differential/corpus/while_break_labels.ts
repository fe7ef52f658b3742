let i = 0;
outer: while (true) {
  for (const x of [1, 2, 3]) {
    i += (await mcp.w.step({ value: x })).value;
    if (i > 4) break outer;
    if (x === 2) continue outer;
  }
}
do { i--; await mcp.w.down({ i }); } while (i > 3);
return i;
