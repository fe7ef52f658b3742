// expect: limit cpu_time
try { for (;;); } finally { for (;;); }
