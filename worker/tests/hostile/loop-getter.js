// expect: limit cpu_time
return { get x() { for (;;); } }.x
