// expect: limit memory
// limits: cpu_time=10s
const a = []; for (;;) a.push(`${a.length}`.padEnd(1e5))
