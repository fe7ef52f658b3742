// expect: value 1
// limits: memory=64MiB cpu_time=2s
let p = Promise.resolve(); for (let i = 0; i < 5e4; i++) p = p.then(() => { }); p = null; return 1
