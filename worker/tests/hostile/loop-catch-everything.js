// expect: limit cpu_time
for (;;) { try { for (;;); } catch { } }
