// expect: limit cpu_time
const { x = (() => { for (;;); })() } = {}; return x
