// expect: value [1,2,3]
const f = mcp.test.echo; return await Promise.all([f(1), f(2), f(3)].map((p) => p.then((x) => x)))
