// expect: limit cpu_time
await { then(resolve) { resolve(this) } }
