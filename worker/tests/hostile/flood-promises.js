// expect: limit memory|cpu_time
const a = []; for (;;) a.push(new Promise(() => { }))
