// expect: value 1
// limits: cpu_time=2s
for (let i = 0; i < 20000; i++) __pml.visit('n' + i); return 1
