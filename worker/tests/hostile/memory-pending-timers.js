// expect: limit memory|cpu_time
for (;;) setTimeout(() => { }, 1e6)
