// expect: value 1
// limits: memory=64MiB cpu_time=2s
let A = class { }; for (let i = 0; i < 2e4; i++) A = class extends A { }; A = null; return 1
