// expect: limit memory|cpu_time|thrown
const a = []; for (;;) a.push(new TextEncoder().encode('x'.repeat(1e5)))
