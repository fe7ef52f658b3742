// expect: value 1
// limits: memory=64MiB cpu_time=2s
for (let i = 0; i < 5000; i++) Promise.reject(new Error('x')); return 1
