// expect: limit memory|cpu_time|thrown
let x = 3n; for (;;) x *= x
