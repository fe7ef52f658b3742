// expect: limit output|memory|cpu_time
const a = []; a[4294967294] = 1; return a
