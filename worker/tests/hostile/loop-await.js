// expect: limit cpu_time
for (;;) await null
