const a = await mcp.s.one({ n: 1 })
const b = a.ok
  ? await mcp.s.two({ n: 2 })
  : null
let c = b!.value as number
if (c) c++
else c--
for (const x of [1, 2]) c += x
return c
