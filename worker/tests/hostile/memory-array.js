// expect: limit memory
// limits: cpu_time=10s
const a = []; for (;;) a.push(new Array(1000).fill(1))
