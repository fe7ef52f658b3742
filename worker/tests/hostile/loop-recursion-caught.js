// expect: limit cpu_time
const f = () => { try { f() } catch { f() } }; f()
