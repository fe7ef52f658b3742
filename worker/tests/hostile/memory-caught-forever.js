// expect: limit cpu_time|memory
const a = []; for (;;) { try { a.push(new Array(1e6).fill(1)) } catch { } }
