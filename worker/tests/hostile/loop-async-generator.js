// expect: limit cpu_time
async function* g() { for (;;) yield 1 } for await (const x of g()) { }
