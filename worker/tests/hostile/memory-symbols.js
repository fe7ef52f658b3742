// expect: limit memory
// limits: cpu_time=10s
const a = []; for (;;) a.push(Symbol('x'.repeat(1000)))
