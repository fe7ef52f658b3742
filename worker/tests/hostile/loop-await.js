// expect: limit cpu_time|memory
for (;;) await null
