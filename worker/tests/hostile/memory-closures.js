// expect: limit memory
// limits: cpu_time=10s
let f = () => 1; for (;;) { const g = f; f = () => g() }
