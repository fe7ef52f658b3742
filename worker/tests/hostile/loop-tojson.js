// expect: limit cpu_time
return { toJSON() { for (;;); } }
