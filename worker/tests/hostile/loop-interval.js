// expect: limit wall_time
// limits: wall_time=300ms cpu_time=10s
setInterval(() => { }, 1); await new Promise(() => { })
