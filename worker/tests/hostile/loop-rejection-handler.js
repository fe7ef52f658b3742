// expect: limit cpu_time
const f = async () => { throw 1 }; for (;;) await f().catch(() => 0)
