// expect: limit memory
// limits: cpu_time=10s
const o = {}; for (let i = 0; ; i++) o['k' + i] = i
