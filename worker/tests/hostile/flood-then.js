// expect: limit memory|cpu_time
for (;;) Promise.resolve().then(() => { })
