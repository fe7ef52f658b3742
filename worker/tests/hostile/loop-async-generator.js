// expect: limit cpu_time|memory
async function* g() { for (;;) yield 1 } for await (const x of g()) { }
