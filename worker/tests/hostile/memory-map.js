// expect: limit memory
// limits: cpu_time=10s
const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })
