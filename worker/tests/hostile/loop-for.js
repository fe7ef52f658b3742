// expect: limit cpu_time
for (;;);
