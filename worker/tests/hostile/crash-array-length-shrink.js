// expect: value 0
// limits: cpu_time=10s
const a = new Array(1e5).fill(1); a.sort((x, y) => { a.length = 0; return x - y }); return 0
