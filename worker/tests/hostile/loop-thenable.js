// expect: limit cpu_time|memory
await { then(resolve) { resolve(this) } }
