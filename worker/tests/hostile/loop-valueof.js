// expect: limit cpu_time
return +{ valueOf() { for (;;); } }
