let log: string[] = [];
const pick = (log.push("a"), log.push("b"), await mcp.comma.call({ n: log.length }));
for (let i = 0, j = 10; i < j; i += 4, j -= 3) log.push(`${i}:${j}`), void mcp.comma.tick({ n: i });
const f = (x: number) => (log.push("f"), x);
const g = f(1), h = (f(2), f(3));
if ((log.push("test"), pick.ok)) log.push("yes");
return [log, g, h, void 0, typeof undeclared, !(1, 0), delete (log as any)[0]];
