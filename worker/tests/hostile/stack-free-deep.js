// expect: value 1
// limits: memory=64MiB cpu_time=2s
let o = null; for (let i = 0; i < 1e5; i++) o = { o }; o = null; return 1
