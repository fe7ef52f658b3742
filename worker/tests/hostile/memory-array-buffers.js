// expect: limit memory
// limits: cpu_time=10s
const a = []; for (;;) a.push(new ArrayBuffer(2 ** 20))
